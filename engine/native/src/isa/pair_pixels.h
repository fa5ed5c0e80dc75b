// The input of a convolution as bf16 pairs: [image][row][pixel][group][pairs].
#pragma once

#include "ops/conv_strips.h"
#include "pairs.h"

namespace lite::LITE_ISA {

struct PairPixels {
  PixelView view;            // of the numbers
  int64_t groups, group_in;  // channels of each
};

#if defined(LITE_PAIRS)
// n numbers as bf16, and zeros behind them up to `padded`.
LITE_INLINE void copy_numbers(const float* x, uint16_t* y, int64_t n, int64_t padded) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) round_floats(x + i, y + i, kLanes);
  if (i == padded) return;
  const __m256bh v = _mm512_cvtneps_pbh((__m512)load_part(x + i, static_cast<int>(n - i)));
  touches(y + i, 2 * (padded - i));
  _mm256_mask_storeu_epi16(y + i, first_lanes(static_cast<int>(padded - i)), (__m256i)v);
}
LITE_INLINE void copy_numbers(const uint16_t* x, uint16_t* y, int64_t n, int64_t padded) {
  memcpy(y, x, static_cast<size_t>(n) * sizeof *y);
  if (n < padded) y[n] = 0;
}

// Pixels of three numbers, as a first layer has them, become pairs four at a time; returns how many.
LITE_INLINE int64_t copy_colors(const float* x, uint16_t* y, int64_t pixels) {
  const __m512i places = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
  int64_t i = 0;
  for (; i + 4 <= pixels; i += 4) {
    const __m512 spread = _mm512_maskz_permutexvar_ps(0x7777, places, (__m512)load_part(x + 3 * i, 12));
    const __m256bh v = _mm512_cvtneps_pbh(spread);
    memcpy(y + 4 * i, &v, sizeof v);
  }
  return i;
}
LITE_INLINE int64_t copy_colors(const uint16_t*, uint16_t*, int64_t) { return 0; }

// Pixels [begin, end) of all images.
template <class Number>
void copy_pixels(const PairPixels& pixels, const Number* x, uint16_t* y, int64_t begin, int64_t end) {
  const PixelView& v = pixels.view;
  const int64_t groups = pixels.groups, channels = pixels.group_in;
  const int64_t padded = (channels + 1) / 2 * 2, pixel = groups * padded;
  const bool one_run = padded == channels && v.pixel == pixel;
  while (begin < end) {
    const int64_t row = begin / v.w, column = begin % v.w;
    const int64_t n = v.w - column < end - begin ? v.w - column : end - begin;
    const Number* from = x + v.origin + row / v.h * v.image + row % v.h * v.row + column * v.pixel;
    uint16_t* to = y + begin * pixel;
    begin += n;
    if (one_run) {
      copy_numbers(from, to, n * pixel, n * pixel);
      continue;
    }
    const int64_t done = pixel == 4 && v.pixel == 3 ? copy_colors(from, to, n) : 0;
    from += done * v.pixel, to += done * pixel;
    for (int64_t i = done; i < n; ++i, from += v.pixel)
      for (int64_t g = 0; g < groups; ++g, to += padded)
        copy_numbers(from + g * channels, to, channels, padded);
  }
}
#endif

}  // namespace lite::LITE_ISA
