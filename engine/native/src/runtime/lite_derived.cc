#include "lite_derived.h"

#include "platform/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace lite {

namespace {

struct Row {
  uint32_t weight, data, scales, width;
  uint64_t outer, channels, inner;
};
static_assert(sizeof(Row) == 40, "rows are read as they lie in the file");

template <class T>
void expand(const Row& row, const void* data, const float* scales, float* out) {
  const T* in = static_cast<const T*>(data);
  for (uint64_t o = 0; o < row.outer; ++o)
    for (uint64_t c = 0; c < row.channels; ++c)
      for (uint64_t i = 0; i < row.inner; ++i) *out++ = static_cast<float>(*in++) * scales[c];
}

}  // namespace

bool derive_weights(const uint8_t* rows, size_t bytes, const void** weights, size_t* weight_bytes,
                    size_t num_weights, void** made, char* error, size_t error_bytes) {
  if (bytes % sizeof(Row)) {
    snprintf(error, error_bytes, "the table of integer weights is damaged");
    return false;
  }
  for (size_t r = 0; r < bytes / sizeof(Row); ++r) {
    Row row;
    memcpy(&row, rows + r * sizeof(Row), sizeof row);
    uint64_t count = 0;
    const bool sane = row.weight < num_weights && row.data < num_weights &&
                      row.scales < num_weights && (row.width == 1 || row.width == 2) &&
                      !made[row.weight] && !made[row.data] && !made[row.scales] &&
                      weight_bytes[row.weight] == 0 &&
                      !__builtin_mul_overflow(row.outer, row.channels, &count) &&
                      !__builtin_mul_overflow(count, row.inner, &count) &&
                      count <= SIZE_MAX / 8 && count * row.width == weight_bytes[row.data] &&
                      row.channels <= SIZE_MAX / 8 &&
                      row.channels * sizeof(float) == weight_bytes[row.scales];
    if (!sane) {
      snprintf(error, error_bytes, "integer weight %zu does not fit its data", r);
      return false;
    }
    float* out = static_cast<float*>(aligned_bytes(count * sizeof(float)));
    if (!out) {
      snprintf(error, error_bytes, "out of memory");
      return false;
    }
    made[row.weight] = out;
    const float* scales = static_cast<const float*>(weights[row.scales]);
    if (row.width == 1)
      expand<int8_t>(row, weights[row.data], scales, out);
    else
      expand<int16_t>(row, weights[row.data], scales, out);
    weights[row.weight] = out;
    weight_bytes[row.weight] = count * sizeof(float);
  }
  return true;
}

}  // namespace lite
