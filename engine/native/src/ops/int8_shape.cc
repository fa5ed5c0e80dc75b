#include "int8_shape.h"

namespace lite {
namespace {

bool read_conv(const Step& step, Env& env, IntShape* s) {
  const ConvOperands o{input_of(step, 0), input_of(step, 3), input_of(step, 8), input_of(step, 9),
                       output_of(step, 0)};
  s->transposed = strcmp(step.op, "QLinearConvTranspose") == 0;
  if (!read_conv_shape(step, env, o, s->transposed, &s->conv)) return false;
  s->x = o.x;
  s->y = o.y;
  s->b = o.b;
  s->x_name = "x";
  s->w_name = "w";
  const int64_t kh = s->conv.kernel[0], kw = s->conv.kernel[1];
  const int64_t taps = kh * kw, in = s->conv.group_in, out = s->conv.group_out;
  s->w = s->transposed ? IntWeightView{o.w, in * out * taps, taps, out * taps, kw, 1}
                       : IntWeightView{o.w, out * in * taps, in * taps, taps, kw, 1};
  return true;
}

// y[..., M, N] = a[..., M, K] b[K, N]; QGemm may have b as [N, K] (transB) and a bias.
bool read_matrix(const Step& step, Env& env, IntShape* s) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 3);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y) return env.fail("needs inputs a and b and an output");
  if (!is_weight(*b) || b->rank != 2) return env.fail("b must be a constant matrix");
  if (a->rank < 2 || a->rank != y->rank || !is_dense(*a) || !is_dense(*y))
    return env.fail("takes dense matrices");
  if (attr_int(step, "transA", 0)) return env.fail("transA must be 0");
  if (attr_float(step, "alpha", 1.0) != 1.0) return env.fail("alpha must be 1");
  const bool trans_b = attr_int(step, "transB", 0) != 0;
  const int64_t k = last_dim(*a), rows = row_count(*a);
  const int64_t n = trans_b ? b->dims[0] : b->dims[1];
  if ((trans_b ? b->dims[1] : b->dims[0]) != k || last_dim(*y) != n || row_count(*y) != rows)
    return env.fail("dims of a, b and y do not agree");
  s->conv = ConvShape{};
  s->transposed = false;
  s->conv.in = {1, 1, rows, k, rows * k, rows * k, k, 0, {0, 0, 0, 0}};
  s->conv.out = {1, 1, rows, n, rows * n, rows * n, n, 0, {0, 0, 0, 0}};
  s->conv.groups = 1;
  s->conv.group_in = k;
  s->conv.group_out = n;
  for (int i = 0; i < 2; ++i) s->conv.kernel[i] = s->conv.stride[i] = s->conv.dilation[i] = 1;
  s->x = a;
  s->y = y;
  s->b = strcmp(step.op, "QGemm") == 0 ? input_of(step, 6) : nullptr;
  s->x_name = "a";
  s->w_name = "b";
  s->w = {b, 0, trans_b ? k : 1, trans_b ? 1 : n, 0, 0};
  return true;
}

bool is_conv(const Step& step) {
  return strcmp(step.op, "QLinearConv") == 0 || strcmp(step.op, "QLinearConvTranspose") == 0;
}

}  // namespace

bool read_int_shape(const Step& step, Env& env, IntShape* s) {
  if (!(is_conv(step) ? read_conv(step, env, s) : read_matrix(step, env, s))) return false;
  s->bias = s->b ? s->b->as<int32_t>() : nullptr;
  return true;
}

int64_t count_int_parts(const IntShape& s, Env& env) {
  return s.transposed ? count_deconv_parts(s.conv, env) : 1;
}

bool int_part(const IntShape& s, int64_t index, ConvShape* shape, IntWeightView* w) {
  *shape = s.conv;
  *w = s.w;
  if (!s.transposed) return true;
  DeconvPart part;
  if (!deconv_part(s.conv, index, &part)) return false;
  *shape = part.shape;
  w->origin = part.first_y * s.w.y + part.first_x * s.w.x;
  w->y = part.step_y * s.w.y;
  w->x = part.step_x * s.w.x;
  return true;
}

bool read_int_params(const Step& step, Env& env, const IntShape& s, QuantParams* q) {
  const ConvShape& c = s.conv;
  return read_quant_params(step, env, *s.x, *s.w.tensor, *s.y, s.b, s.x_name, s.w_name,
                           c.groups * c.group_out, c.group_in * c.kernel[0] * c.kernel[1], q) &&
         (!is_conv(step) || read_residual(step, env, 9, q));
}

}  // namespace lite
