// Register tiles of the depthwise convolution of floats: a few neighbouring output pixels of one row,
// or of two.
#pragma once

#include <math.h>

#include "activation.h"
#include "ops/conv_strips.h"
#include "vec.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kPixels = 7;                                   // outputs per tile
// Vectors of channels that a tile of so many pixels computes at once: their sums stay in registers.
constexpr int vectors_of(int pixels) { return kVectorRegisters >= 32 || pixels <= 4 ? 2 : 1; }
template <int kPx>
constexpr int kBlock = vectors_of(kPx) * kLanes;
constexpr int kMaxTaps = 1024;
// Widths of filters. Wider ones are rows of pieces that have these widths.
constexpr int kPiece[] = {7, 5, 3};
constexpr int kMaxPieces = kMaxTaps / 7 + 4;  // the last may be 3, 3 and 3, and the end
// Where a vector cannot be loaded and stored in part at once, and in pairs of rows, the last channels are
// computed with those before them that fill it; fewer than a vector's take the general form.
#if defined(__AVX2__)
constexpr bool kStepsBack = false;
#else
constexpr bool kStepsBack = true;
#endif
// Two output rows at a time share what they load, where two rows of filter taps stay in registers beside.
constexpr bool kPairs = kVectorRegisters >= 32;
constexpr int kPairTaps = 7;
constexpr int kPairRows = kPairTaps + 1;  // of the input

struct TileArgs {
  const Real* const* pointers;    // columns [ky][column] or, general form, [tap][pixel]
  int32_t taps;                   // rows of pointers
  int32_t columns;                // pointers per row, of the forms with pieces
  const uint8_t* pieces;          // widths, ended by 0
  const Real* weights;            // of the first row of pointers; [block][tap][channels]
  ptrdiff_t block_weights;        // elements from one channel block to the next
  const Real* last_weights;       // the same row for the last kLanes channels, where they step back
  const Real* bias;
  int64_t begin, end;             // channels; begin is a multiple of a block
  Real* out;
  ptrdiff_t out_pixel;
  const Real* residual;
  ptrdiff_t residual_pixel;
  float lo, hi;
  bool hard_swish;                // instead of the clamp
  const Real* ahead;              // output to fetch meanwhile, or nullptr
  // Of a pair of rows.
  const Real* rows[kPairRows];    // of the input, the middle tap of the first output; nullptr: outside
  uint32_t columns_inside;        // of the input, a bit each
  ptrdiff_t out_row;
};
using TileFn = void (*)(const TileArgs&);

struct Depthwise {
  ConvShape shape;
  bool general;
  int32_t stride;                 // of the forms with columns
  uint8_t pieces[kMaxPieces];     // see TileArgs
  int32_t pixels;                 // of a tile
  int64_t block;                  // channels that it computes at once
  TileFn tile[kPixels];           // by number of pixels - 1; only 1, 2, 4, 7 are there
  TileFn pair;                    // pair_pixels of two rows, or nullptr
  int32_t pair_pixels;
  int64_t blocks, block_weights;  // where channels step back, the last block may be up to kLanes - 1 wider
  const Real* weights;
  const Real* last_weights;       // of the last kLanes channels
  const Real* bias;
  const Real* zeros;
  float lo, hi;
  bool fetch_output;              // fetch the lines of the next output row before they are written
  ThreadGrid grid;
};

LITE_INLINE int64_t rounded_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

LITE_INLINE F read(const Real* p, int tail) { return tail ? load_part(p, tail) : load(p); }

template <int kPx, int kNv>
LITE_INLINE void finish(const TileArgs& t, int64_t c, int tail, F (&acc)[kPx][kNv]) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  if (t.residual) {
    const Real* from = t.residual + c;
    const ptrdiff_t pixel = t.residual_pixel;
    LITE_UNROLL for (int p = 0; p < kPx; ++p, from += pixel)
      LITE_UNROLL for (int n = 0; n < kNv; ++n) acc[p][n] += read(from + n * kLanes, tail);
  }
  if (t.hard_swish) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < kNv; ++n)
        acc[p][n] = activate_vector<Act::kHardSwish>(acc[p][n], lo, hi);
  }
  if (t.lo != -INFINITY) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < kNv; ++n) acc[p][n] = max(lo, acc[p][n]);
  }
  if (t.hi != INFINITY) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < kNv; ++n) acc[p][n] = min(hi, acc[p][n]);
  }
  Real* to = t.out + c;
  const ptrdiff_t pixel = t.out_pixel;
  LITE_UNROLL for (int p = 0; p < kPx; ++p, to += pixel)
    LITE_UNROLL for (int n = 0; n < kNv; ++n) {
      if (tail) store_part(to + n * kLanes, acc[p][n], tail);
      else store(to + n * kLanes, acc[p][n]);
    }
}

template <int kPx, int kNv>
LITE_INLINE void start(const TileArgs& t, int64_t c, F (&acc)[kPx][kNv]) {
  LITE_UNROLL for (int n = 0; n < kNv; ++n) {
    const F b = load(t.bias + c + n * kLanes);
    LITE_UNROLL for (int p = 0; p < kPx; ++p) acc[p][n] = b;
  }
}

template <int kColumns>
LITE_INLINE void take_pointers(const Real* const* from, const Real* (&column)[kColumns]) {
  LITE_UNROLL for (int j = 0; j < kColumns; ++j) column[j] = from[j];
#if defined(__aarch64__)
  // Enough registers for all of them: two are one load.
  if constexpr (kColumns <= 16) {
    LITE_UNROLL for (int j = 0; j < kColumns; ++j) asm("" : "+r"(column[j]));
  }
#endif
}

// k taps of one row, stride s, kPx outputs, kNv vectors of channels; `tail` lanes of one vector or 0.
template <int k, int s, int kPx, int kNv>
LITE_INLINE void add_taps(const Real* const* pointers, int64_t c, const Real* w, int tail,
                          F (&acc)[kPx][kNv]) {
  constexpr int kColumns = (kPx - 1) * s + k;
  F f[k][kNv];
  LITE_UNROLL for (int x = 0; x < k; ++x)
    LITE_UNROLL for (int n = 0; n < kNv; ++n) f[x][n] = load(w + x * kBlock<kPx> + n * kLanes);
  const Real* column[kColumns];
  take_pointers(pointers, column);
  LITE_UNROLL for (int j = 0; j < kColumns; ++j) {
    F d[kNv];
    LITE_UNROLL for (int n = 0; n < kNv; ++n) d[n] = read(column[j] + c + n * kLanes, tail);
    LITE_UNROLL for (int x = 0; x < k; ++x) {
      const int p = (j - x) / s;
      if (j < x || (j - x) % s != 0 || p >= kPx) continue;
      LITE_UNROLL for (int n = 0; n < kNv; ++n) acc[p][n] = fma(d[n], f[x][n], acc[p][n]);
    }
  }
}

// Rows of k taps.
template <int k, int s, int kPx, int kNv>
LITE_INLINE void unrolled(const TileArgs& t, int64_t c, const Real* w, int tail) {
  F acc[kPx][kNv];
  start(t, c, acc);
  if (s == 1 && t.ahead) {
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      LITE_UNROLL for (int n = 0; n < kNv; ++n)
        prefetch_to_write(t.ahead + p * t.out_pixel + c + n * kLanes);
  }
  const Real* const* pointers = t.pointers;
  for (int y = t.taps; y > 0; --y, pointers += (kPx - 1) * s + k, w += k * kBlock<kPx>)
    add_taps<k, s>(pointers, c, w, tail, acc);
  finish(t, c, tail, acc);
}

// Rows of pieces.
template <int s, int kPx, int kNv>
LITE_INLINE void in_pieces(const TileArgs& t, int64_t c, const Real* w, int tail) {
  F acc[kPx][kNv];
  start(t, c, acc);
  const Real* const* row = t.pointers;
  for (int y = t.taps; y > 0; --y, row += t.columns) {
    const Real* const* pointers = row;
    for (const uint8_t* width = t.pieces; *width; ++width) {
      if (*width == 7) add_taps<7, s>(pointers, c, w, tail, acc);
      else if (*width == 5) add_taps<5, s>(pointers, c, w, tail, acc);
      else add_taps<3, s>(pointers, c, w, tail, acc);
      pointers += *width;
      w += *width * kBlock<kPx>;
    }
  }
  finish(t, c, tail, acc);
}

template <int kPx, int kNv>
LITE_INLINE void any_taps(const TileArgs& t, int64_t c, const Real* w, int tail) {
  F acc[kPx][kNv];
  start(t, c, acc);
  const Real* const* pointers = t.pointers;
  for (int i = t.taps; i > 0; --i, pointers += kPx, w += kBlock<kPx>) {
    LITE_UNROLL for (int n = 0; n < kNv; ++n) {
      const F f = load(w + n * kLanes);
      LITE_UNROLL for (int p = 0; p < kPx; ++p)
        acc[p][n] = fma(read(pointers[p] + c + n * kLanes, tail), f, acc[p][n]);
    }
  }
  finish(t, c, tail, acc);
}

// One tap: a batch norm that no convolution took in.
template <int kPx, int kNv>
LITE_INLINE void one_tap(const TileArgs& t, const Real* const (&pixel)[kPx], int64_t c, const Real* w,
                         int tail) {
  F acc[kPx][kNv];
  LITE_UNROLL for (int n = 0; n < kNv; ++n) {
    const F f = load(w + n * kLanes), b = load(t.bias + c + n * kLanes);
    LITE_UNROLL for (int p = 0; p < kPx; ++p)
      acc[p][n] = fma(read(pixel[p] + c + n * kLanes, tail), f, b);
  }
  finish(t, c, tail, acc);
}

// k = 0: rows of pieces; s = 0: the general form, with k = 1 of one tap.
template <int k, int s, int kPx>
void tile(const TileArgs& t) {
  constexpr int kNv = vectors_of(kPx);
  const Real* pixel[kPx];
  if constexpr (k == 1) take_pointers(t.pointers, pixel);
  const Real* w = t.weights;
  int64_t c = t.begin;
  for (; c + kBlock<kPx> <= t.end; c += kBlock<kPx>, w += t.block_weights) {
    if constexpr (k == 1) one_tap<kPx, kNv>(t, pixel, c, w, 0);
    else if constexpr (s == 0) any_taps<kPx, kNv>(t, c, w, 0);
    else if constexpr (k == 0) in_pieces<s, kPx, kNv>(t, c, w, 0);
    else unrolled<k, s, kPx, kNv>(t, c, w, 0);
  }
  for (; c < t.end; c += kLanes, w += kLanes) {
    int tail = t.end - c < kLanes ? static_cast<int>(t.end - c) : 0;
    if (s != 0 && kStepsBack && tail) {
      c = t.end - kLanes;
      w = t.last_weights;
    }
    if (s != 0 && kStepsBack) tail = 0;
    if constexpr (k == 1) one_tap<kPx, 1>(t, pixel, c, w, tail);
    else if constexpr (s == 0) any_taps<kPx, 1>(t, c, w, tail);
    else if constexpr (k == 0) in_pieces<s, kPx, 1>(t, c, w, tail);
    else if (tail) unrolled<k, s, kPx, 1>(t, c, w, tail);
    else unrolled<k, s, kPx, 1>(t, c, w, 0);
  }
}

// k x k taps, kPx pixels of two output rows, one vector of channels at a time: an input row serves both
// output rows, with taps of which one row is new. Of the columns, k / 2 on either side may lie outside.
template <int k, int s, int kPx>
void pair_tile(const TileArgs& t) {
  constexpr int kRows = k + s, kColumns = (kPx - 1) * s + k, kMiddle = k / 2;
  const char* row[kRows];
  LITE_UNROLL for (int y = 0; y < kRows; ++y)
    row[y] = t.rows[y] ? reinterpret_cast<const char*>(t.rows[y] + t.begin) : nullptr;
  char* out[2] = {reinterpret_cast<char*>(t.out + t.begin),
                  reinterpret_cast<char*>(t.out + t.out_row + t.begin)};
  // Bytes from the middle tap of the first output, in registers of their own: no address is computed in the
  // loop. A pixel of the input has as many as one of the output.
  ptrdiff_t at[kColumns];
  LITE_UNROLL for (int j = 0; j < kColumns; ++j) {
    at[j] = (j - kMiddle) * t.out_pixel * static_cast<ptrdiff_t>(sizeof(Real));
#if defined(__aarch64__)
    if (j != kMiddle) asm("" : "+r"(at[j]));
#endif
  }
  uint32_t inside = t.columns_inside;
  enum { kHardSwish = 1, kClipsLow = 2, kClipsHigh = 4 };
  uint32_t activation = (t.hard_swish ? kHardSwish : 0) | (t.lo != -INFINITY ? kClipsLow : 0) |
                        (t.hi != INFINITY ? kClipsHigh : 0);
  asm("" : "+r"(activation));  // not compared anew for every vector
  const Real* w = t.weights;
  for (int64_t c = t.begin; c < t.end; c += kLanes) {
    if (const int64_t back = c + kLanes - t.end; back > 0) {
      const ptrdiff_t bytes = back * static_cast<ptrdiff_t>(sizeof(Real));
      c -= back;
      w = t.last_weights;
      LITE_UNROLL for (int y = 0; y < kRows; ++y) row[y] -= row[y] ? bytes : 0;
      LITE_UNROLL for (int i = 0; i < 2; ++i) out[i] -= bytes;
    }
    F acc[2][kPx], f[k][k];
    const F b = load(t.bias + c);
    LITE_UNROLL for (int p = 0; p < kPx; ++p) acc[0][p] = acc[1][p] = b;
    LITE_UNROLL for (int y = 0; y < kRows; ++y) {
      if (y < k) {
        LITE_UNROLL for (int x = 0; x < k; ++x) f[y][x] = load(w + (y * k + x) * kBlock<kPx>);
      }
      if (!row[y]) continue;
      LITE_UNROLL for (int j = 0; j < kColumns; ++j) {
        const bool may_be_outside = j < kMiddle || j >= kColumns - kMiddle;
        if (may_be_outside) {
          asm("" : "+r"(inside));  // a bit is tested where it lies
          if (!(inside >> j & 1)) continue;
        }
        const F d = load(reinterpret_cast<const Real*>(row[y] + at[j]));
        LITE_UNROLL for (int x = 0; x < k; ++x) {
          const int p = (j - x) / s;
          if (j < x || (j - x) % s != 0 || p >= kPx) continue;
          if (y < k) acc[0][p] = fma(d, f[y][x], acc[0][p]);
          if (y >= s) acc[1][p] = fma(d, f[y - s][x], acc[1][p]);
        }
      }
      row[y] += sizeof(F);
    }
    // The sums leave no registers for bounds.
    if (activation & kHardSwish) {
      LITE_UNROLL for (int i = 0; i < 2 * kPx; ++i)
        acc[i / kPx][i % kPx] = activate_vector<Act::kHardSwish>(acc[i / kPx][i % kPx], splat(0.0f), splat(0.0f));
    }
    if (activation & kClipsLow) {
      const F lo = splat(t.lo);
      LITE_UNROLL for (int i = 0; i < 2 * kPx; ++i) acc[i / kPx][i % kPx] = max(lo, acc[i / kPx][i % kPx]);
    }
    if (activation & kClipsHigh) {
      const F hi = splat(t.hi);
      LITE_UNROLL for (int i = 0; i < 2 * kPx; ++i) acc[i / kPx][i % kPx] = min(hi, acc[i / kPx][i % kPx]);
    }
    LITE_UNROLL for (int i = 0; i < 2; ++i) {
      LITE_UNROLL for (int p = 0; p < kPx; ++p)
        store(reinterpret_cast<Real*>(out[i] + at[kMiddle + p]), acc[i][p]);
      out[i] += sizeof(F);
    }
    w += c % kBlock<kPx> == kBlock<kPx> - kLanes ? t.block_weights - c % kBlock<kPx> : kLanes;
  }
}

// Pairs of rows for k x k taps and stride s, in tiles of as many pixels as registers hold and suit the width.
template <int k, int s>
void set_pair(int64_t width, Depthwise* d) {
  if constexpr (kPairs) {
    constexpr int kWide = k * s < 10 ? 8 : 7;
    const bool wide = rounded_up(width, kWide) < rounded_up(width, kPixels);
    d->pair = wide ? pair_tile<k, s, kWide> : pair_tile<k, s, kPixels>;
    d->pair_pixels = wide ? kWide : kPixels;
  }
}

template <int k, int s>
void set_tiles(Depthwise* d) {
  if constexpr (s == 0) {  // narrower maps take the general form
    d->tile[0] = tile<k, s, 1>;
    d->tile[1] = tile<k, s, 2>;
  }
  d->tile[3] = tile<k, s, 4>;
  d->tile[6] = tile<k, s, 7>;
}

}  // namespace
}  // namespace lite::LITE_ISA
