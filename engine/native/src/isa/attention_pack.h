// Keys, values and rows of attention as its products take them: as they are, or as pairs of bf16.
#pragma once

#include "ops/attention_shape.h"
#include "pairs.h"
#include "row_product.h"
#include "transpose.h"

namespace lite::LITE_ISA {

// k of a product over n elements, filled up where W has to be.
LITE_INLINE int64_t depth_of(int64_t n) { return product_depth(product_length(n)); }

// The first n of kProducts vectors of numbers, n > 0, as products take them; zeros behind.
LITE_INLINE F load_products(const float* x, int64_t n) {
  const auto part = [](const float* at, int64_t left) __attribute__((always_inline)) {
    return left >= kLanes ? load(at) : left > 0 ? load_part(at, static_cast<int>(left)) : F{};
  };
#if defined(LITE_PAIRS)
  return (F)_mm512_cvtne2ps_pbh((__m512)part(x + kLanes, n - kLanes), (__m512)part(x, n));
#else
  return part(x, n);
#endif
}

#if defined(LITE_PAIRS)
LITE_INLINE F load_products(const uint16_t* x, int64_t n) {
  const int64_t here = n < 2 * kLanes ? n : 2 * kLanes;
  touches(x, 2 * here);
  return (F)_mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << here) - 1), x);
}
#endif

// Keys [0, n) as panels [panel][kProducts elements][kTileColumns]; behind the last key and element lie zeros.
template <class Number>
LITE_INLINE void pack_keys(const AttentionShape& s, const Number* k, int64_t n, float* out) {
  constexpr int64_t kStep = kProducts * kLanes;
  const int64_t depth = depth_of(s.size);
  for (int64_t key = 0; key < n; key += kLanes) {
    float* to = out + key / kTileColumns * kTileColumns * depth + key % kTileColumns;
    const int64_t here = n - key < kLanes ? n - key : kLanes;
    for (int64_t e = 0; e < s.size; e += kStep) {
      F rows[kLanes];
      for (int i = 0; i < kLanes; ++i)
        rows[i] = i >= here ? F{} : load_products(k + (key + i) * s.k.row + e, s.size - e);
      transpose(rows);
      const int64_t at = e / kProducts, filled = depth - at < kLanes ? depth - at : kLanes;
      for (int i = 0; i < filled; ++i) store(to + (at + i) * kTileColumns, rows[i]);
    }
  }
  if ((n + kLanes - 1) / kLanes % 2) {  // the panel's other half is loaded, too
    float* to = out + n / kTileColumns * kTileColumns * depth + kLanes;
    for (int64_t e = 0; e < depth; ++e) store(to + e * kTileColumns, F{});
  }
}

// `left` numbers of the value of a key, and of the next one where values are paired (nullptr: zeros).
LITE_INLINE F load_values(const float* from, const float* next, int64_t left) {
  const auto part = [left](const float* at) __attribute__((always_inline)) {
    return !at ? F{} : left >= kLanes ? load(at) : load_part(at, static_cast<int>(left));
  };
#if defined(LITE_PAIRS)
  const auto shorts = [&](const float* at) __attribute__((always_inline)) {
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)part(at)));
  };
  return (F)_mm512_or_si512(_mm512_slli_epi32(shorts(next), 16), shorts(from));
#else
  (void)next;
  return part(from);
#endif
}

#if defined(LITE_PAIRS)
LITE_INLINE F load_values(const uint16_t* from, const uint16_t* next, int64_t left) {
  const int here = left < 0 ? 0 : left < kLanes ? static_cast<int>(left) : kLanes;
  const auto shorts = [here](const uint16_t* at) __attribute__((always_inline)) {
    if (!at) return _mm512_setzero_si512();
    touches(at, 2 * here);
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(here), at));
  };
  return (F)_mm512_or_si512(_mm512_slli_epi32(shorts(next), 16), shorts(from));
}
#endif

// Values [0, n) as panels [panel][kProducts keys][columns, in whole vectors]; behind the last key lie zeros.
template <class Number>
LITE_INLINE void pack_values(const AttentionShape& s, const Number* v, int64_t n, float* out) {
  const int64_t depth = depth_of(n);
  for (int64_t column = 0; column < s.v_size; column += kTileColumns) {
    const int64_t columns = s.v_size - column;
    const int width = tile_vectors(columns) * kLanes;
    for (int64_t at = 0; at < depth; ++at, out += width) {
      const int64_t key = at * kProducts;
      const Number* from = key < n ? v + key * s.v.row + column : nullptr;
      const Number* next = key + 1 < n ? from + s.v.row : nullptr;
      for (int i = 0; i < width; i += kLanes)
        store(out + i, load_values(from ? from + i : from, next ? next + i : next, columns - i));
    }
  }
}

}  // namespace lite::LITE_ISA
