// Floats as bf16, where there are products of its pairs.
#pragma once

#include "f32_tile.h"

#if defined(LITE_PAIRS)
namespace lite::LITE_ISA {

LITE_INLINE void round_floats(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load(x + i));
    memcpy(y + i, &v, sizeof v);
  }
  if (i < n) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load_part(x + i, static_cast<int>(n - i)));
    memcpy(y + i, &v, static_cast<size_t>(n - i) * sizeof *y);
  }
}

}  // namespace lite::LITE_ISA
#endif
