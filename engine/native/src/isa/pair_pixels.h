// The input of a convolution as bf16 pairs: [image][row][pixel][group][pairs]. Where an odd number of channels
// would leave many pairs half empty, a pixel of the copy is all that a row of the window reads.
#pragma once

#include "ops/conv_strips.h"
#include "pairs.h"

namespace lite::LITE_ISA {

struct PairPixels {
  PixelView view;            // of the numbers
  int64_t groups, group_in;  // channels of each
  int64_t columns, pairs;    // pixels of a row of the copy, pairs of one of them
  int64_t taps;              // of a row of the window, or 0: pixels as they are
  int64_t stride, dilation, pad;
};

// Whether rows of a window take at most 5/6 of the products. They overlap: only those of few numbers are copied.
LITE_INLINE bool joins_taps(const ConvShape& s) {
  const int64_t apart = s.kernel[1] * ((s.group_in + 1) / 2);
  const int64_t together = (s.kernel[1] * s.group_in + 1) / 2;
  return s.groups == 1 && together <= kLanes && 6 * together <= 5 * apart;
}

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

// n <= 32 numbers, and zeros.
LITE_INLINE __m512i load_shorts(const float* x, int n) {
  const F rest = n > kLanes ? load_part(x + kLanes, n - kLanes) : F{};
  const F first = load_part(x, n < kLanes ? n : kLanes);
  return (__m512i)_mm512_cvtne2ps_pbh((__m512)rest, (__m512)first);
}
LITE_INLINE __m512i load_shorts(const uint16_t* x, int n) {
  touches(x, 2 * n);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint64_t{1} << n) - 1), x);
}

// Rows of windows that lie side by side in one vector of the image, as many of them as a vector holds.
struct Spread {
  __m512i places;
  __mmask32 filled;
  int count, numbers;        // windows, numbers that they read
};
LITE_INLINE Spread spread_of(const PairPixels& p) {
  const int row = static_cast<int>(p.taps * p.group_in), apart = static_cast<int>(p.stride * p.group_in);
  const int padded = static_cast<int>(2 * p.pairs), most = 2 * kLanes;
  Spread s{_mm512_setzero_si512(), 0, 1, row};
  while ((s.count + 1) * padded <= most && s.count * apart + row <= most) ++s.count;
  s.numbers = (s.count - 1) * apart + row;
  uint16_t places[2 * kLanes] = {};
  for (int i = 0; i < s.count * padded; ++i) {
    if (i % padded >= row) continue;
    places[i] = static_cast<uint16_t>(i / padded * apart + i % padded);
    s.filled |= __mmask32{1} << i;
  }
  memcpy(&s.places, places, sizeof places);
  return s;
}

// Pixels [begin, end) of the copy, each a row of a window; zeros outside of the image.
template <class Number>
void copy_windows(const PairPixels& p, const Number* x, uint16_t* y, int64_t begin, int64_t end) {
  const PixelView& v = p.view;
  const int64_t channels = p.group_in, padded = 2 * p.pairs;
  const bool dense = p.dilation == 1 && v.pixel == channels;
  const Spread spread = spread_of(p);
  const uint64_t stored = (uint64_t{1} << (spread.count * padded)) - 1;
  while (begin < end) {
    const int64_t row = begin / p.columns, first = begin % p.columns;
    const int64_t n = p.columns - first < end - begin ? p.columns - first : end - begin;
    const Number* from = x + v.origin + row / v.h * v.image + row % v.h * v.row;
    uint16_t* to = y + begin * padded;
    for (int64_t i = 0; i < n;) {
      const int64_t at = (first + i) * p.stride - p.pad;
      const int64_t last = at + (spread.count - 1) * p.stride + p.taps;
      if (dense && at >= 0 && last <= v.w && i + spread.count <= n) {
        const __m512i numbers = load_shorts(from + at * channels, spread.numbers);
        touches(to + i * padded, 2 * spread.count * padded);
        _mm512_mask_storeu_epi16(to + i * padded, static_cast<__mmask32>(stored),
                                 _mm512_maskz_permutexvar_epi16(spread.filled, spread.places, numbers));
        i += spread.count;
        continue;
      }
      memset(to + i * padded, 0, static_cast<size_t>(padded) * sizeof *to);
      for (int64_t tap = 0; tap < p.taps; ++tap) {
        const int64_t column = at + tap * p.dilation;
        if (column >= 0 && column < v.w)
          copy_numbers(from + column * v.pixel, to + i * padded + tap * channels, channels, channels);
      }
      ++i;
    }
    begin += n;
  }
}

// Pixels [begin, end) of all images.
template <class Number>
void copy_pixels(const PairPixels& pixels, const Number* x, uint16_t* y, int64_t begin, int64_t end) {
  if (pixels.taps) return copy_windows(pixels, x, y, begin, end);
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
    for (int64_t i = 0; i < n; ++i, from += v.pixel)
      for (int64_t g = 0; g < groups; ++g, to += padded)
        copy_numbers(from + g * channels, to, channels, padded);
  }
}
#endif

}  // namespace lite::LITE_ISA
