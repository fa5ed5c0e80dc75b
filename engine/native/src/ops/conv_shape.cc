#include "conv_shape.h"

namespace lite {
namespace {

// Attribute of one value per spatial axis (h, w); a rank-3 tensor has only w. Of depth, which comes first in
// rank 5, only the value that does nothing.
bool read_pair(const Step& step, Env& env, const char* name, int spatial, int64_t otherwise,
               int64_t lowest, int64_t out[2]) {
  int count = 0;
  const int64_t* values = attr_ints(step, name, &count);
  out[0] = out[1] = otherwise;
  if (spatial == 1) out[0] = lowest > 0 ? 1 : 0;
  if (count == 0) return true;
  if (count != spatial) return env.fail("%s has %d values, expected %d", name, count, spatial);
  for (int i = 0; i < spatial; ++i) {
    const int64_t v = values[i];
    const int axis = 2 - spatial + i;
    if (v < lowest || v > (axis < 0 ? otherwise : 1 << 20)) {
      return env.fail("%s[%d] is %lld", name, i, static_cast<long long>(v));
    }
    if (axis >= 0) out[axis] = v;
  }
  return true;
}

// Left-over pixels that automatic padding puts on both ends of an axis, split as ONNX splits them.
int64_t first_of(int64_t total, bool more_at_start) {
  if (total < 0) total = 0;
  return more_at_start ? total - total / 2 : total / 2;
}

// Fills s->pad. Explicit pads must give the output's dims; automatic ones follow from them.
bool read_pads(const Step& step, Env& env, int spatial, bool transposed, ConvShape* s) {
  int count = 0;
  const int64_t* pads = attr_ints(step, "pads", &count);
  if (count != 0 && count != 2 * spatial) return env.fail("pads has %d values", count);
  const char* mode = attr_string(step, "auto_pad", "NOTSET");
  const bool lower = strcmp(mode, "SAME_LOWER") == 0, upper = strcmp(mode, "SAME_UPPER") == 0;
  int shape_count = 0;
  attr_ints(step, "output_shape", &shape_count);
  const bool automatic = lower || upper || (transposed && shape_count > 0);
  const bool none = automatic || strcmp(mode, "VALID") == 0;
  const int64_t in_dims[2] = {s->in.h, s->in.w}, out_dims[2] = {s->out.h, s->out.w};
  if (spatial == 3 && !none && count && (pads[0] != 0 || pads[3] != 0)) return env.fail("padding of depth");
  for (int axis = spatial == 1; axis < 2; ++axis) {
    const int i = axis - (2 - spatial);
    const int64_t low = none || !count ? 0 : pads[i], high = none || !count ? 0 : pads[i + spatial];
    const int64_t limit = transposed ? 0 : -(1 << 20);
    if (low < limit || high < limit || low > (1 << 20) || high > (1 << 20))
      return env.fail("pads out of range");
    const int64_t reach = (s->kernel[axis] - 1) * s->dilation[axis] + 1, stride = s->stride[axis];
    const int64_t full = (in_dims[axis] - 1) * stride + reach + s->output_padding[axis];
    s->pad[axis] = low;
    if (automatic) {
      const int64_t total = transposed ? full - out_dims[axis]
                                       : (out_dims[axis] - 1) * stride + reach - in_dims[axis];
      s->pad[axis] = first_of(total, transposed ? !upper : lower);
      if (!transposed && out_dims[axis] != (in_dims[axis] + stride - 1) / stride)
        return env.fail("output axis %d is not input / stride", axis);
      continue;
    }
    const int64_t room = in_dims[axis] + low + high - reach;
    int64_t expected = transposed ? full - low - high : room < 0 ? 0 : room / stride + 1;
    if (expected < 0) expected = 0;
    if (out_dims[axis] != expected && in_dims[axis] > 0) {
      return env.fail("output axis %d is %lld, the attributes give %lld", axis,
                      static_cast<long long>(out_dims[axis]), static_cast<long long>(expected));
    }
  }
  return true;
}

bool fits_int32(const Tensor& t) { return t.bytes / 4 < (1u << 30); }

}  // namespace

bool pixel_view(const Tensor& t, PixelView* view) {
  if (t.rank < 3 || t.rank > 5) return false;
  int64_t strides[kMaxRank];
  view->origin = strides_of(t, strides);
  const int r = t.rank;
  view->images = r == 5 ? t.dims[0] * t.dims[1] : t.dims[0];
  view->h = r == 3 ? 1 : t.dims[r - 3];
  view->w = t.dims[r - 2];
  view->c = t.dims[r - 1];
  view->image = strides[r == 5];
  view->row = r == 3 ? strides[0] : strides[r - 3];
  view->pixel = strides[r - 2];
  for (int i = 0; i < 4; ++i) view->halo[i] = r == 4 ? t.halo[i] : 0;
  return true;
}

bool read_conv(const Step& step, Env& env, bool transposed, ConvShape* s, DType values) {
  const ConvOperands o{input_of(step, 0), input_of(step, 1), input_of(step, 2), input_of(step, 3),
                       output_of(step, 0)};
  const Tensor* all[] = {o.x, o.w, o.b, o.residual, o.y};
  for (const Tensor* t : all) {
    const DType wanted = t == o.w || t == o.b ? DType::kF32 : values;
    if (t && t->dtype != wanted) {
      return env.fail("'%s' is %s, this kernel takes %s", t->name, dtype_name(t->dtype),
                      dtype_name(wanted));
    }
  }
  return read_conv_shape(step, env, o, transposed, s) &&
         parse_activation(step, env, &s->activation);
}

bool read_conv_shape(const Step& step, Env& env, const ConvOperands& o, bool transposed,
                     ConvShape* s) {
  const Tensor *x = o.x, *w = o.w, *b = o.b, *r = o.residual, *y = o.y;
  *s = ConvShape{};
  if (!x || !w || !y) return env.fail("needs inputs x and w and an output");
  if (!is_weight(*w) || (b && !is_weight(*b))) return env.fail("weights and bias must be constant");
  if (!pixel_view(*x, &s->in) || !pixel_view(*y, &s->out) || x->rank != y->rank ||
      w->rank != x->rank) {
    return env.fail("x, w and y must all have rank 3, 4 or 5, got %d, %d, %d", x->rank, w->rank,
                    y->rank);
  }
  if (!fits_int32(*x) || !fits_int32(*y)) return env.fail("tensors of 4 GiB and more");
  s->has_residual = r != nullptr;
  s->residual_tensor = r;
  if (r && (!same_dims(*r, *y) || !pixel_view(*r, &s->residual))) {
    return env.fail("the residual must have the output's dims");
  }
  const int spatial = x->rank - 2;
  s->kernel[0] = spatial == 1 ? 1 : w->dims[spatial];
  s->kernel[1] = w->dims[spatial + 1];
  s->groups = attr_int(step, "group", 1);
  const int64_t in_c = s->in.c, out_c = s->out.c;
  if (s->groups < 1 || in_c % s->groups || out_c % s->groups) {
    return env.fail("group %lld does not divide %lld and %lld channels",
                    static_cast<long long>(s->groups), static_cast<long long>(in_c),
                    static_cast<long long>(out_c));
  }
  s->group_in = in_c / s->groups;
  s->group_out = out_c / s->groups;
  const int64_t w0 = transposed ? in_c : out_c, w1 = transposed ? s->group_out : s->group_in;
  if (w->dims[0] != w0 || w->dims[1] != w1 || s->kernel[0] < 1 || s->kernel[1] < 1) {
    return env.fail("weights are %lldx%lld channels, expected %lldx%lld",
                    static_cast<long long>(w->dims[0]), static_cast<long long>(w->dims[1]),
                    static_cast<long long>(w0), static_cast<long long>(w1));
  }
  if (spatial == 3 && w->dims[2] != 1) return env.fail("a kernel over depth");
  if (b && b->size != out_c) return env.fail("bias has the wrong size");
  if (s->kernel[0] > 4096 || s->kernel[1] > 4096) return env.fail("kernel larger than 4096");
  if (!read_pair(step, env, "strides", spatial, 1, 1, s->stride) ||
      !read_pair(step, env, "dilations", spatial, 1, 1, s->dilation) ||
      !read_pair(step, env, "output_padding", spatial, 0, 0, s->output_padding)) {
    return false;
  }
  if (!read_pads(step, env, spatial, transposed, s)) return false;
  if (s->in.images != s->out.images) return env.fail("batch or depth of x and y differ");
  s->weights = w;
  s->bias = b;
  return true;
}

}  // namespace lite
