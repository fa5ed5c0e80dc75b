// The end of an integer tile: int32 sums of rows x kVectors registers become bytes of the output.
#pragma once

#include "int8_tile.h"

namespace lite::LITE_ISA {

// n bytes, fewer than two vectors' columns, in few moves.
LITE_INLINE void copy_columns(uint8_t* to, const uint8_t* from, int n) {
  for (; n >= 8; n -= 8, to += 8, from += 8) memcpy(to, from, 8);
  if (n & 4) memcpy(to, from, 4), to += 4, from += 4;
  for (n &= 3; n > 0; --n) *to++ = *from++;
}

// A form without other clamps, which takes a tenth less of shallow tiles with AVX2; runners for small devices go without.
#if defined(__SSE2__)
constexpr bool kHasPlain = true;
#else
constexpr bool kHasPlain = false;
#endif

// Whether the saturation of u8 is the only clamp.
template <class Tile>
LITE_INLINE bool is_plain(const Tile& t) {
  return t.zero == 0 && t.low == 0 && t.high == 255 && t.flip == 0;
}

#if defined(__AVX512F__)

// Rows per 64 bytes of output; rows past the last one are the last one again.
template <int kVectors>
constexpr int kRowsOfBytes = 4 / kVectors;

// What narrowing needs of a tile. kPlain: is_plain().
template <int kVectors, bool kPlain>
struct Narrowing {
  B low, high, flip;
  __m512i zero, order;

  template <class Tile>
  LITE_INLINE explicit Narrowing(const Tile& t) {
    if (!kPlain) low = splat_byte(t.low), high = splat_byte(t.high), flip = splat_byte(t.flip);
    if (!kPlain) zero = _mm512_set1_epi16(static_cast<int16_t>(t.zero));
    order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  }
  // Four registers as 64 bytes, in their order.
  LITE_INLINE __m512i bytes(const __m512i (&v)[4]) const {
    __m512i w0 = _mm512_packs_epi32(v[0], v[1]), w1 = _mm512_packs_epi32(v[2], v[3]);
    if (!kPlain) w0 = _mm512_adds_epi16(w0, zero), w1 = _mm512_adds_epi16(w1, zero);
    B y = (B)_mm512_permutexvar_epi32(order, _mm512_packus_epi16(w0, w1));
    if (!kPlain) y = min(high, max(low, y)) ^ flip;
    return (__m512i)y;
  }
  // Row by row to c + the offsets of the rows.
  LITE_INLINE void store(const __m512i (&v)[4], uint8_t* c, const ptrdiff_t* rows) const {
    const __m512i y = bytes(v);
    if constexpr (kVectors == 2) {
      const auto put = [&](int i, __m256i part) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + rows[i]), part);
      };
      put(0, _mm512_castsi512_si256(y));
      put(1, _mm512_extracti64x4_epi64(y, 1));
    } else {
      const auto put = [&](int i, __m128i part) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(c + rows[i]), part);
      };
      put(0, _mm512_castsi512_si128(y));
      put(1, _mm512_extracti32x4_epi32(y, 1));
      put(2, _mm512_extracti32x4_epi32(y, 2));
      put(3, _mm512_extracti32x4_epi32(y, 3));
    }
  }
};

template <bool kPlain, int kRows, int kVectors>
LITE_INLINE void finish_whole(const IntTile& t, const I (&acc)[kRows][kVectors]) {
  const Narrowing<kVectors, kPlain> narrowing(t);
  F scale[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) scale[n] = load(t.scale + n * kLanes);
  LITE_UNROLL for (int m = 0; m < kRows; m += kRowsOfBytes<kVectors>) {
    __m512i v[4];
    ptrdiff_t rows[kRowsOfBytes<kVectors>];
    LITE_UNROLL for (int i = 0; i < 4; ++i) {
      const int row = m + i / kVectors < kRows ? m + i / kVectors : kRows - 1;
      rows[i / kVectors] = row_offset(row, t.ldc, t.half_c);
      v[i] = (__m512i)rescale(acc[row][i % kVectors], scale[i % kVectors]);
    }
    narrowing.store(v, t.c, rows);
  }
}

// Offsets of kCount rows in a loop over tiles' rows, without a product for each.
template <int kCount>
struct RowWalk {
  ptrdiff_t offset[kCount], ld, jump;

  LITE_INLINE RowWalk(ptrdiff_t ld, ptrdiff_t half) : ld(ld), jump(half - kHalfRows * ld) {
    LITE_UNROLL for (int i = 0; i < kCount; ++i) offset[i] = i * ld;
  }
  // To the rows from m on.
  LITE_INLINE void step(int m) {
    LITE_UNROLL for (int i = 0; i < kCount; ++i)
      offset[i] += kCount * ld + (m + i >= kHalfRows && m + i < kHalfRows + kCount ? jump : 0);
  }
  LITE_INLINE void end(int m, int rows) {
    LITE_UNROLL for (int i = 1; i < kCount; ++i)
      offset[i] = m + i < rows ? offset[i] : offset[i - 1];
  }
};

// With a residual, or part of the columns: sums leave the registers first, so that the loop has some for
// its constants and is there once for all heights of tiles. Stores and loads are free beside the ports
// that round.
template <Adding kAdding, int kVectors, bool kPlain, bool kShifted>
__attribute__((noinline)) void finish_sums(const IntTile& t, const I* sums, int rows) {
  constexpr int kWidth = kVectors * kLanes;
  uint8_t part[2][kTileRows * kWidth];
  uint8_t* c = t.c;
  const uint8_t* residual = t.residual;
  ptrdiff_t ldc = t.ldc, ldr = t.ldr, half_c = t.half_c, half_r = t.half_r;
  if (t.columns < kWidth) {  // what lies behind the columns is neither read nor written
    if (kAdding != kNothing) {
      memset(part[0], 0, sizeof part[0]);
      for (int m = 0; m < rows; ++m)
        copy_columns(part[0] + m * kWidth, residual + row_offset(m, ldr, half_r), t.columns);
    }
    residual = part[0];
    c = part[1];
    ldr = ldc = kWidth;
    half_c = half_r = kHalfRows * kWidth;
  }
  F scale[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) scale[n] = load(t.scale + n * kLanes);
  RowWalk<kRowsOfBytes<kVectors>> to(ldc, half_c), from(ldr, half_r);
  const Narrowing<kVectors, kPlain> narrowing(t);
  const Adder<kAdding, kShifted> add(t.addend);
  for (int m = 0; m < rows; m += kRowsOfBytes<kVectors>, to.step(m), from.step(m)) {
    __m512i v[4];
    to.end(m, rows);
    from.end(m, rows);
    LITE_UNROLL for (int i = 0; i < 4; ++i) {
      const int n = i % kVectors;
      const F real = to_float(sums[m * kVectors + i]) * scale[n];
      __m128i r{};
      if (kAdding != kNothing)
        r = _mm_loadu_si128(reinterpret_cast<const __m128i*>(residual + from.offset[i / kVectors] +
                                                             n * kLanes));
      v[i] = (__m512i)to_int(add(real, r));
    }
    narrowing.store(v, c, to.offset);
  }
  if (t.columns < kWidth)
    for (int m = 0; m < rows; ++m)
      copy_columns(t.c + row_offset(m, t.ldc, t.half_c), c + m * kWidth, t.columns);
}

template <Adding kAdding, int kVectors>
LITE_INLINE void finish_sums(const IntTile& t, const I* sums, int rows) {
  const bool plain = is_plain(t);
  const bool shifted = kAdding != kNothing && is_shifted(t.addend);
  constexpr bool kMay = kAdding != kNothing;
  if (plain && shifted) finish_sums<kAdding, kVectors, true, kMay>(t, sums, rows);
  else if (plain) finish_sums<kAdding, kVectors, true, false>(t, sums, rows);
  else if (shifted) finish_sums<kAdding, kVectors, false, kMay>(t, sums, rows);
  else finish_sums<kAdding, kVectors, false, false>(t, sums, rows);
}

template <int kRows, int kVectors>
LITE_INLINE void finish(const IntTile& t, I (&acc)[kRows][kVectors]) {
  if (!t.residual && t.columns == kVectors * kLanes) {
    if (is_plain(t)) finish_whole<true>(t, acc);
    else finish_whole<false>(t, acc);
    return;
  }
  constexpr int kTogether = kRowsOfBytes<kVectors>;
  constexpr int kWhole = (kRows + kTogether - 1) / kTogether * kTogether;
  I sums[kWhole * kVectors];
  LITE_UNROLL for (int m = 0; m < kWhole; ++m)
    LITE_UNROLL for (int n = 0; n < kVectors; ++n)
      sums[m * kVectors + n] = acc[m < kRows ? m : kRows - 1][n];
  if (!t.residual) finish_sums<kNothing, kVectors>(t, sums, kRows);
  else if (t.addend.rounded) finish_sums<kToIntegers, kVectors>(t, sums, kRows);
  else finish_sums<kToSums, kVectors>(t, sums, kRows);
}

#else

template <Adding kAdding, bool kPlain, int kRows, int kVectors>
LITE_INLINE void finish_rows(const IntTile& t, I (&acc)[kRows][kVectors]) {
  constexpr int kWidth = kVectors * kLanes;
  F scale[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) scale[n] = load(t.scale + n * kLanes);
  const B low = splat_byte(t.low), high = splat_byte(t.high), flip = splat_byte(t.flip);
  constexpr int kAll = kRows * kVectors, kQuads = (kAll + 3) / 4;
  alignas(64) uint8_t rows[kQuads * 4 * kLanes];
  const uint8_t* residual = t.residual;
  ptrdiff_t ldr = t.ldr;
  if (kAdding != kNothing && t.columns < kWidth) {  // what lies behind the columns is not read
    memset(rows, 0, sizeof rows);
    for (int m = 0; m < kRows; ++m)
      copy_columns(rows + m * kWidth, residual + m * ldr, t.columns);
    residual = rows;
    ldr = kWidth;
  }
  LITE_UNROLL for (int q = 0; q < kQuads; ++q) {
    I v[4];
    LITE_UNROLL for (int i = 0; i < 4; ++i) {
      const int at = 4 * q + i < kAll ? 4 * q + i : kAll - 1, m = at / kVectors, n = at % kVectors;
      F real = to_float(acc[m][n]) * scale[n];
      if (kAdding != kNothing)
        real = add<kAdding>(t.addend, real, widen(residual + m * ldr + n * kLanes, t.addend.flip));
      v[i] = to_int(real);
    }
    B bytes = narrow(v[0], v[1], v[2], v[3], kPlain ? 0 : t.zero);
    if (!kPlain) bytes = min(high, max(low, bytes)) ^ flip;
    memcpy(rows + q * 4 * kLanes, &bytes, 4 * kLanes);
  }
  if (t.columns == kWidth) {
    LITE_UNROLL for (int m = 0; m < kRows; ++m) memcpy(t.c + m * t.ldc, rows + m * kWidth, kWidth);
  } else {
    for (int m = 0; m < kRows; ++m) copy_columns(t.c + m * t.ldc, rows + m * kWidth, t.columns);
  }
}

template <int kRows, int kVectors>
LITE_INLINE void finish(const IntTile& t, I (&acc)[kRows][kVectors]) {
  if (t.residual && t.addend.rounded) finish_rows<kToIntegers, false>(t, acc);
  else if (t.residual) finish_rows<kToSums, false>(t, acc);
  else if (kHasPlain && is_plain(t)) finish_rows<kNothing, kHasPlain>(t, acc);
  else finish_rows<kNothing, false>(t, acc);
}

#endif

}  // namespace lite::LITE_ISA
