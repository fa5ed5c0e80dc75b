#include "quant_scalars.h"

#include <math.h>

namespace lite {

bool read_scalars(const Step& step, Env& env, int at, DType type, QuantScalars* q) {
  const Tensor *scale = input_of(step, at), *zero = input_of(step, at + 1);
  if (!scale || scale->dtype != DType::kF32 || scale->size != 1 || !is_weight(*scale))
    return env.fail("input %d must be a scale, one f32 constant", at);
  if (zero && (zero->dtype != type || zero->size != 1 || !is_weight(*zero)))
    return env.fail("input %d must be a zero point, one %s constant", at + 1, dtype_name(type));
  memcpy(&q->scale, scale->data, sizeof q->scale);
  if (!(q->scale > 0) || isinf(q->scale))
    return env.fail("input %d, a scale, must be positive", at);
  if (type == DType::kI16) {
    int16_t wide = 0;
    if (zero) memcpy(&wide, zero->data, sizeof wide);
    q->zero = wide;
    return true;
  }
  const uint8_t byte = zero ? zero->data[0] : 0;
  q->zero = type == DType::kI8 ? static_cast<int8_t>(byte) : byte;
  return true;
}

int32_t quantise_exactly(double real, const QuantScalars& q, DType type) {
  const double low = type == DType::kI8 ? -128 : 0, high = low + 255;
  const double whole = rint(real / static_cast<double>(q.scale)) + q.zero;
  return static_cast<int32_t>(whole > low ? (whole < high ? whole : high) : low);
}

}  // namespace lite
