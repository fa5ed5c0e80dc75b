#include "quant_params.h"

#include <math.h>
#include <stdio.h>

namespace lite {
namespace {

bool is_byte(const Tensor& t) { return t.dtype == DType::kI8 || t.dtype == DType::kU8; }

bool has_sum_scale(const Step& step) {
  int count;
  attr_floats(step, "sum_scale", &count);
  return count > 0;
}

bool read_scale(const Step& step, Env& env, const char* prefix, float* out) {
  char name[32];
  snprintf(name, sizeof name, "%s_scale", prefix);
  *out = static_cast<float>(attr_float(step, name, 0.0));
  if (!(*out > 0) || isinf(*out)) return env.fail("%s must be one positive number", name);
  return true;
}

bool read_zero(const Step& step, Env& env, const char* prefix, bool is_signed, int32_t* out) {
  char name[32];
  snprintf(name, sizeof name, "%s_zero_point", prefix);
  const int64_t zero = attr_int(step, name, 0);
  if (zero < (is_signed ? -128 : 0) || zero > (is_signed ? 127 : 255))
    return env.fail("%s %lld is outside its type", name, static_cast<long long>(zero));
  *out = static_cast<int32_t>(zero);
  return true;
}

// Narrows [low, high] by a clamp of the real numbers.
bool clamp_range(const Step& step, Env& env, float y_scale, QuantParams* q) {
  Activation act;
  if (!parse_activation(step, env, &act)) return false;
  if (act.act == Act::kNone) return true;
  if (act.act != Act::kClip) return env.fail("only a clamp can be fused into an integer kernel");
  const float low = rintf(act.a / y_scale) + static_cast<float>(q->y_zero);
  const float high = rintf(act.b / y_scale) + static_cast<float>(q->y_zero);
  if (low > static_cast<float>(q->low)) q->low = low > 255 ? 255 : static_cast<int32_t>(low);
  if (high < static_cast<float>(q->high)) q->high = high < -128 ? -128 : static_cast<int32_t>(high);
  return true;
}

// Zero points of the weights as signed bytes; none are kept when all of them are 0.
bool read_weight_zeros(const Step& step, Env& env, const char* name, int64_t channels,
                       QuantParams* q) {
  int count;
  const int64_t* zeros = attr_ints(step, name, &count);
  if (count > 1 && count != channels)
    return env.fail("%s has %d values for %lld channels", name, count,
                    static_cast<long long>(channels));
  const int64_t middle = q->w_unsigned ? 128 : 0;
  q->w_zero = nullptr;
  bool centred = count == 0 && !q->w_unsigned;
  for (int i = 0; i < count; ++i) {
    if (zeros[i] < middle - 128 || zeros[i] > middle + 127)
      return env.fail("%s %lld is outside its type", name, static_cast<long long>(zeros[i]));
    centred = (i == 0 || centred) && zeros[i] == middle;
  }
  if (centred) return true;
  q->w_zero = static_cast<int32_t*>(env.allocate(static_cast<size_t>(channels + 1) * 4));
  if (!q->w_zero) return env.out_of_memory();
  for (int64_t c = 0; c < channels; ++c)
    q->w_zero[c] = static_cast<int32_t>((count ? zeros[count == 1 ? 0 : c] : 0) - middle);
  return true;
}

}  // namespace

bool read_quant_params(const Step& step, Env& env, const Tensor& x, const Tensor& w,
                       const Tensor& y, const Tensor* bias, const char* x_name, const char* w_name,
                       int64_t channels, int64_t depth, QuantParams* q) {
  if (!is_byte(x) || !is_byte(w) || !is_byte(y))
    return env.fail("takes i8 and u8, got %s, %s -> %s", dtype_name(x.dtype), dtype_name(w.dtype),
                    dtype_name(y.dtype));
  if (bias && (bias->dtype != DType::kI32 || !is_weight(*bias) || bias->size != channels ||
               !is_dense(*bias))) {
    return env.fail("bias must be an i32 constant, one per channel");
  }
  q->x_signed = x.dtype == DType::kI8;
  q->residual = Residual{};
  q->residual.input = -1;
  q->most = 0;
  q->w_unsigned = w.dtype == DType::kU8;
  q->y_signed = y.dtype == DType::kI8;
  float x_scale, y_scale, sum_scale;
  if (!read_scale(step, env, x_name, &x_scale) || !read_scale(step, env, "y", &y_scale) ||
      !read_scale(step, env, has_sum_scale(step) ? "sum" : "y", &sum_scale) ||
      !read_zero(step, env, x_name, q->x_signed, &q->x_zero) ||
      !read_zero(step, env, "y", q->y_signed, &q->y_zero)) {
    return false;
  }
  q->low = q->y_signed ? -128 : 0;
  q->high = q->low + 255;
  if (!clamp_range(step, env, y_scale, q)) return false;
  char name[32];
  int count;
  snprintf(name, sizeof name, "%s_zero_point", w_name);
  if (!read_weight_zeros(step, env, name, channels, q)) return false;
  snprintf(name, sizeof name, "%s_scale", w_name);
  const double* scales = attr_floats(step, name, &count);
  if (count != 1 && count != channels)
    return env.fail("%s has %d values for %lld channels", name, count,
                    static_cast<long long>(channels));
  // Whole vectors are read past the last channel.
  q->scale = static_cast<float*>(env.allocate(static_cast<size_t>(channels + 64) * sizeof(float)));
  if (!q->scale) return env.out_of_memory();
  for (int64_t c = 0; c < channels; ++c) {
    const float w_scale = static_cast<float>(scales[count == 1 ? 0 : c]);
    if (!(w_scale >= 0) || isinf(w_scale)) return env.fail("%s holds a bad number", name);
    const float product = x_scale * w_scale;
    q->scale[c] = product / sum_scale;
    // Sums wrap around like int32 anywhere; a bias near its limits belongs to a channel whose weights
    // are almost zero. What must not happen is that the scaled sum leaves int32 when it is rounded.
    const double sum = 255.0 * (q->w_zero ? 255.0 : 128.0) * static_cast<double>(depth) +
                       (bias ? fabs(static_cast<double>(bias->as<int32_t>()[c])) : 0.0);
    const double most = sum < INT32_MAX ? sum : INT32_MAX;
    if (q->most < most * q->scale[c]) q->most = most * q->scale[c];
    if (q->most > INT32_MAX)
      return env.fail("sums of channel %lld may leave int32", static_cast<long long>(c));
  }
  return true;
}

bool weights_are_centred(const Step& step, const Tensor& w, const char* w_name) {
  char name[32];
  snprintf(name, sizeof name, "%s_zero_point", w_name);
  int count;
  const int64_t* zeros = attr_ints(step, name, &count);
  bool centred = w.dtype == DType::kI8;
  for (int i = 0; i < count; ++i) centred = centred && zeros[i] == 0;
  return centred;
}

bool read_residual(const Step& step, Env& env, int input, QuantParams* q) {
  const Tensor* r = input_of(step, input);
  const bool rounded = has_sum_scale(step);
  if (!r) return rounded ? env.fail("sum_scale needs a residual") : true;
  if (!is_byte(*r)) return env.fail("the residual is %s, not i8 or u8", dtype_name(r->dtype));
  float own, y_scale;
  q->residual.is_signed = r->dtype == DType::kI8;
  if (!read_scale(step, env, "residual", &own) || !read_scale(step, env, "y", &y_scale) ||
      !read_zero(step, env, "residual", q->residual.is_signed, &q->residual.zero)) {
    return false;
  }
  q->residual.input = input;
  q->residual.scale = own / y_scale;
  double most = q->most;
  if (rounded) {
    float sum_scale = 0;
    int32_t zero = 0;
    if (!read_scale(step, env, "sum", &sum_scale) ||
        !read_zero(step, env, "sum", q->y_signed, &zero)) {
      return false;
    }
    const int32_t low = (q->y_signed ? -128 : 0) - zero;
    q->residual.rounded = true;
    q->residual.sum_low = static_cast<float>(low);
    q->residual.sum_high = static_cast<float>(low + 255);
    q->residual.sum_scale = sum_scale / y_scale;
    most = 255.0 * q->residual.sum_scale;
  }
  if (!(most + 255.0 * q->residual.scale <= INT32_MAX))
    return env.fail("sums with the residual may leave int32");
  return true;
}

}  // namespace lite
