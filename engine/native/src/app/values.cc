#include "values.h"

namespace lite::app {

namespace {

template <class T>
void widen(const void* data, size_t count, Quant q, float* out) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
    out[i] = q.scale ? (static_cast<float>(value) - static_cast<float>(q.zero_point)) * q.scale
                     : static_cast<float>(value);
  }
}

float from_half(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
  uint32_t bits;
  if (exponent == 31) bits = sign | 0x7F800000u | mantissa << 13;
  else if (exponent) bits = sign | (exponent + 112) << 23 | mantissa << 13;
  else {
    const float tiny = static_cast<float>(mantissa) * (1.0f / 16777216.0f);
    memcpy(&bits, &tiny, 4);
    bits |= sign;
  }
  float out;
  memcpy(&out, &bits, 4);
  return out;
}

}  // namespace

const char* Quant::read(Json::Value from) {
  if (!from["scale"]) return nullptr;
  scale = static_cast<float>(from["scale"].number());
  const bool good = scale > 0 && scale < 1e30f;
  return good && from["zero_point"].whole(-65536, 65536, &zero_point)
             ? nullptr
             : "a `scale` is not above 0, or a `zero_point` is not a whole number";
}

const char* Values::read(const lite_array& from, Quant q) {
  static const int sizes[] = {0, 4, 2, 2, 8, 1, 1, 2, 2, 4, 4, 8, 8, 1};
  if (from.dtype < 1 || from.dtype > 13 || from.rank < 0 || from.rank > 8 || !from.data)
    return "the model gave an output of an unknown type";
  size_t count = 1;
  rank = from.rank;
  for (int i = 0; i < rank; ++i) {
    dims[i] = from.dims[i];
    if (dims[i] < 0 || (dims[i] && count > SIZE_MAX / 16 / static_cast<size_t>(dims[i])))
      return "the model gave an output of a size that is out of reach";
    count *= static_cast<size_t>(dims[i]);
  }
  bytes = sizes[from.dtype];
  if (from.bytes != count * bytes) return "the model gave an output of another size than its shape";
  if (!v.resize(count)) return "does not fit in memory";
  whole = from.dtype >= 5 && from.dtype <= 12 && !q.scale;
  if (from.dtype < 5) q.scale = 0;
  if (!count) return nullptr;  // nothing to read, and nothing to read it into
  float* out = v.data();
  switch (from.dtype) {
    case 1: memcpy(out, from.data, count * 4); break;
    case 2:
    case 3:
      for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        memcpy(&half, static_cast<const char*>(from.data) + 2 * i, 2);
        const uint32_t wide = static_cast<uint32_t>(half) << 16;
        if (from.dtype == 2) out[i] = from_half(half);
        else memcpy(&out[i], &wide, 4);
      }
      break;
    case 4: widen<double>(from.data, count, q, out); break;
    case 5: widen<int8_t>(from.data, count, q, out); break;
    case 7: widen<int16_t>(from.data, count, q, out); break;
    case 8: widen<uint16_t>(from.data, count, q, out); break;
    case 9: widen<int32_t>(from.data, count, q, out); break;
    case 10: widen<uint32_t>(from.data, count, q, out); break;
    case 11: widen<int64_t>(from.data, count, q, out); break;
    case 12: widen<uint64_t>(from.data, count, q, out); break;
    default: widen<uint8_t>(from.data, count, q, out);
  }
  return nullptr;
}

}  // namespace lite::app
