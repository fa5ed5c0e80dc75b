#include "convert.h"

#include <math.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lite {

namespace {

uint32_t bits_of(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return bits;
}
float float_of(uint32_t bits) {
  float v;
  memcpy(&v, &bits, 4);
  return v;
}

template <class T, class Wide>
void load(const uint8_t* from, int64_t stride, int n, Wide* out) {
  const T* p = reinterpret_cast<const T*>(from);
  for (int i = 0; i < n; ++i) out[i] = static_cast<Wide>(p[i * stride]);
}
template <class T>
void store_wrapped(const int64_t* from, int n, uint8_t* out) {
  T* p = reinterpret_cast<T*>(out);
  for (int i = 0; i < n; ++i) p[i] = static_cast<T>(static_cast<uint64_t>(from[i]));
}
// Out of range of int64 the conversion would be undefined.
int64_t truncated(double v) {
  if (!(v > -9.3e18 && v < 9.3e18)) return isfinite(v) ? (v > 0 ? INT64_MAX : INT64_MIN) : 0;
  return v >= 9223372036854775807.0    ? INT64_MAX
         : v <= -9223372036854775808.0 ? INT64_MIN
                                       : static_cast<int64_t>(v);
}

// Towards the neighbour whose last bit is set: a second rounding, to 16 bits, then sees that
// something was cut off, and both together round once.
float rounded_to_odd(double v) {
  const float near = static_cast<float>(v);
  const double back = static_cast<double>(near);
  if (!isfinite(near) || back == v) return near;
  const uint32_t bits = bits_of(near);
  if (bits & 1) return near;
  return float_of(fabs(back) > fabs(v) ? bits - 1 : bits + 1);
}

}  // namespace

bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || type == DType::kF64;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fff) << 13;
  if ((half & 0x7c00) == 0x7c00) return float_of(sign | 0x7f800000 | rest);
  // Scaling by 2^112 moves the exponent's bias and normalises denormals.
  return float_of(sign | bits_of(float_of(rest) * 5.192296858534828e33f));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (rest < 0x38800000) {  // denormal: adding 0.5 leaves its bits, rounded, at the bottom
    const float shifted = float_of(rest) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(shifted) - 0x3f000000));
  }
  const uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

void halves_to_floats(const uint16_t* from, int64_t n, float* to) {
  int64_t i = 0;
#if defined(__aarch64__)
  for (; i + 8 <= n; i += 8) {
    const float16x8_t v = vreinterpretq_f16_u16(vld1q_u16(from + i));
    vst1q_f32(to + i, vcvt_f32_f16(vget_low_f16(v)));
    vst1q_f32(to + i + 4, vcvt_high_f32_f16(v));
  }
#endif
  for (; i < n; ++i) to[i] = half_to_float(from[i]);
}

void floats_to_halves(const float* from, int64_t n, uint16_t* to) {
  int64_t i = 0;
#if defined(__aarch64__)
  for (; i + 8 <= n; i += 8) {
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(from + i));
    vst1q_u16(to + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(from + i + 4))));
  }
#endif
  for (; i < n; ++i) to[i] = float_to_half(from[i]);
}

uint16_t float_to_bfloat(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void load_ints(DType type, const uint8_t* from, int64_t stride, int n, int64_t* out) {
  switch (type) {
    case DType::kI8: return load<int8_t>(from, stride, n, out);
    case DType::kU8:
    case DType::kBool: return load<uint8_t>(from, stride, n, out);
    case DType::kI16: return load<int16_t>(from, stride, n, out);
    case DType::kU16: return load<uint16_t>(from, stride, n, out);
    case DType::kI32: return load<int32_t>(from, stride, n, out);
    case DType::kU32: return load<uint32_t>(from, stride, n, out);
    case DType::kI64:
    case DType::kU64: return load<int64_t>(from, stride, n, out);
    default: {
      double wide[kChunk];
      load_doubles(type, from, stride, n, wide);
      for (int i = 0; i < n; ++i) out[i] = truncated(wide[i]);
    }
  }
}

void load_doubles(DType type, const uint8_t* from, int64_t stride, int n, double* out) {
  const uint16_t* halves = reinterpret_cast<const uint16_t*>(from);
  switch (type) {
    case DType::kF32: return load<float>(from, stride, n, out);
    case DType::kF64: return load<double>(from, stride, n, out);
    case DType::kU64: return load<uint64_t>(from, stride, n, out);
    case DType::kF16:
      for (int i = 0; i < n; ++i) out[i] = half_to_float(halves[i * stride]);
      return;
    case DType::kBF16:
      for (int i = 0; i < n; ++i)
        out[i] = float_of(static_cast<uint32_t>(halves[i * stride]) << 16);
      return;
    default: {
      int64_t whole[kChunk];
      load_ints(type, from, stride, n, whole);
      for (int i = 0; i < n; ++i) out[i] = static_cast<double>(whole[i]);
    }
  }
}

void store_ints(DType type, const int64_t* from, int n, uint8_t* out) {
  switch (type) {
    case DType::kI8:
    case DType::kU8: return store_wrapped<uint8_t>(from, n, out);
    case DType::kBool:
      for (int i = 0; i < n; ++i) out[i] = from[i] != 0;
      return;
    case DType::kI16:
    case DType::kU16: return store_wrapped<uint16_t>(from, n, out);
    case DType::kI32:
    case DType::kU32: return store_wrapped<uint32_t>(from, n, out);
    case DType::kI64:
    case DType::kU64: return store_wrapped<uint64_t>(from, n, out);
    default: {
      double wide[kChunk];
      for (int i = 0; i < n; ++i) wide[i] = static_cast<double>(from[i]);
      store_doubles(type, wide, n, out);
    }
  }
}

void store_doubles(DType type, const double* from, int n, uint8_t* out) {
  uint16_t* halves = reinterpret_cast<uint16_t*>(out);
  switch (type) {
    case DType::kF32:
      for (int i = 0; i < n; ++i) reinterpret_cast<float*>(out)[i] = static_cast<float>(from[i]);
      return;
    case DType::kF64: memcpy(out, from, n * sizeof(double)); return;
    case DType::kF16:
      for (int i = 0; i < n; ++i) halves[i] = float_to_half(rounded_to_odd(from[i]));
      return;
    case DType::kBF16:
      for (int i = 0; i < n; ++i) halves[i] = float_to_bfloat(rounded_to_odd(from[i]));
      return;
    case DType::kBool:
      for (int i = 0; i < n; ++i) out[i] = from[i] != 0;
      return;
    case DType::kU64:
      for (int i = 0; i < n; ++i)
        reinterpret_cast<uint64_t*>(out)[i] = from[i] >= 9.2e18 && from[i] < 1.8446744073709551e19
                                                  ? static_cast<uint64_t>(from[i])
                                                  : static_cast<uint64_t>(truncated(from[i]));
      return;
    default: {
      int64_t whole[kChunk];
      for (int i = 0; i < n; ++i) whole[i] = truncated(from[i]);
      store_ints(type, whole, n, out);
    }
  }
}

void element_of(DType type, double value, uint8_t out[8]) {
  alignas(8) uint8_t element[8] = {};
  store_doubles(type, &value, 1, element);
  memcpy(out, element, 8);
}

}  // namespace lite
