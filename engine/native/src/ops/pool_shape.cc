#include "pool_shape.h"

namespace lite {

namespace {

void describe(const Tensor& t, int64_t* image, int64_t* row, int64_t* pixel, int64_t* origin) {
  int64_t strides[kMaxRank];
  *origin = strides_of(t, strides);
  *image = strides[t.rank == 5];
  *row = t.rank == 3 ? 0 : strides[t.rank - 3];
  *pixel = strides[t.rank - 2];
}

// Attribute `name` of one value per spatial axis (rank 3 has the width only), or what is there. That of
// depth, which comes first in rank 5, must be `none`.
bool pair(const Step& step, Env& env, const char* name, int spatial, int64_t none, int64_t out[2]) {
  int count;
  const int64_t* values = attr_ints(step, name, &count);
  if (count == 0) return true;
  if (count != spatial)
    return env.fail("%s has %d values for %d spatial axes", name, count, spatial);
  for (int i = 0; i < spatial; ++i) {
    const int axis = 2 - spatial + i;
    if (values[i] < none || values[i] > (axis < 0 ? none : 65536))
      return env.fail("%s is out of range", name);
    if (axis >= 0) out[axis] = values[i];
  }
  return true;
}

bool read_pads(const Step& step, Env& env, int spatial, PoolShape* s) {
  const char* mode = attr_string(step, "auto_pad", "NOTSET");
  if (strncmp(mode, "SAME", 4) == 0) {
    const int64_t in[2] = {s->h, s->w}, out[2] = {s->out_h, s->out_w};
    for (int i = 0; i < 2; ++i) {
      const int64_t reach = (out[i] - 1) * s->stride[i] + (s->kernel[i] - 1) * s->dilation[i] + 1;
      const int64_t total = reach > in[i] ? reach - in[i] : 0;
      s->pad[i] = strcmp(mode, "SAME_LOWER") == 0 ? total - total / 2 : total / 2;
      s->pad_end[i] = total - s->pad[i];
    }
    return true;
  }
  int count;
  const int64_t* pads = attr_ints(step, "pads", &count);
  if (count == 0 || strcmp(mode, "VALID") == 0) return true;
  if (count != 2 * spatial)
    return env.fail("pads has %d values for %d spatial axes", count, spatial);
  if (spatial == 3 && (pads[0] != 0 || pads[3] != 0)) return env.fail("padding of depth");
  for (int i = spatial == 3; i < spatial; ++i) {
    if (pads[i] < 0 || pads[i] > 65536 || pads[spatial + i] < 0 || pads[spatial + i] > 65536)
      return env.fail("pads are out of range");
    s->pad[2 - spatial + i] = pads[i];
    s->pad_end[2 - spatial + i] = pads[spatial + i];
  }
  return true;
}

// Taps [begin, end) whose position first + tap * dilation lies in [0, size).
void valid_taps(int64_t first, int64_t dilation, int64_t taps, int64_t size, int64_t* begin,
                int64_t* end) {
  *begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  if (first + (taps - 1) * dilation < size) *end = taps;
  else *end = first >= size ? 0 : (size - first + dilation - 1) / dilation;
  if (*begin > *end) *begin = *end;
}

// Window cells that count: inside the image, or inside its declared padding.
int64_t counted(const PoolShape& s, int axis, int64_t first, int64_t size, int64_t valid) {
  if (!s.include_pad) return valid;
  int64_t begin, end;
  valid_taps(first + s.pad[axis], s.dilation[axis], s.kernel[axis],
             size + s.pad[axis] + s.pad_end[axis], &begin, &end);
  return end - begin;
}

}  // namespace

bool read_pool(const Step& step, Env& env, PoolShape* s) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  if (!x || !y || x->rank != y->rank || x->rank < 3 || x->rank > 5 || step.num_outputs != 1)
    return env.fail("needs one input and output of rank 3, 4 or 5, and no indices");
  *s = PoolShape{};
  const int spatial = x->rank - 2;
  s->max = strstr(step.op, "Max") != nullptr;
  s->global = strstr(step.op, "Global") != nullptr;
  int64_t out_n = y->dims[0];
  s->n = x->dims[0];
  s->h = spatial == 1 ? 1 : x->dims[spatial - 1];
  s->w = x->dims[spatial];
  s->c = last_dim(*x);
  s->out_h = spatial == 1 ? 1 : y->dims[spatial - 1];
  s->out_w = y->dims[spatial];
  describe(*x, &s->in_image, &s->in_row, &s->in_pixel, &s->in_origin);
  describe(*y, &s->out_image, &s->out_row, &s->out_pixel, &s->out_origin);
  if (spatial == 3 && s->global) {  // the rows of all frames are those of one image
    if (y->dims[1] != 1) return env.fail("a global pool gives one pixel");
    s->in_image *= x->dims[1];
    s->h *= x->dims[1];
  } else if (spatial == 3) {
    s->n *= x->dims[1];
    out_n *= y->dims[1];
  }
  if (out_n != s->n || last_dim(*y) != s->c || s->h > 1 << 24 || s->w > 1 << 24 ||
      s->out_h > 1 << 24 || s->out_w > 1 << 24)
    return env.fail("output shape does not fit the input");
  for (int i = 0; i < 2; ++i) s->kernel[i] = s->stride[i] = s->dilation[i] = 1;
  if (s->global) {
    s->kernel[0] = s->h;
    s->kernel[1] = s->w;
    if (s->out_h != 1 || s->out_w != 1) return env.fail("a global pool gives one pixel");
  } else {
    s->include_pad = attr_int(step, "count_include_pad", 0) != 0;
    if (!pair(step, env, "kernel_shape", spatial, 1, s->kernel) ||
        !pair(step, env, "strides", spatial, 1, s->stride) ||
        !pair(step, env, "dilations", spatial, 1, s->dilation) || !read_pads(step, env, spatial, s))
      return false;
  }
  if (s->h < 1 || s->w < 1) return env.fail("the input has no pixels");
  return true;
}

bool prepare_pool(Step& step, Env& env) {
  PoolShape* s = static_cast<PoolShape*>(env.allocate(sizeof(PoolShape)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_pool(step, env, s)) return false;
  if (step.by_rows && s->n == 1)
    step.rows = {s->stride[0], s->pad[0], (s->kernel[0] - 1) * s->dilation[0] + 1, 1};
  return true;
}

PoolWindow pool_window(const PoolShape& s, int64_t image, int64_t oy, int64_t ox) {
  const int64_t iy = oy * s.stride[0] - s.pad[0], ix = ox * s.stride[1] - s.pad[1];
  PoolWindow p;
  valid_taps(iy, s.dilation[0], s.kernel[0], s.h, &p.ky0, &p.ky1);
  valid_taps(ix, s.dilation[1], s.kernel[1], s.w, &p.kx0, &p.kx1);
  p.from = s.in_origin + image * s.in_image + iy * s.in_row + ix * s.in_pixel;
  p.to = s.out_origin + image * s.out_image + oy * s.out_row + ox * s.out_pixel;
  p.cells = counted(s, 0, iy, s.h, p.ky1 - p.ky0) * counted(s, 1, ix, s.w, p.kx1 - p.kx0);
  return p;
}

}  // namespace lite
