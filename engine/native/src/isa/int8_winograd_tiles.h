// Tiles of bytes into the domain of F(4,3) and back, in whole numbers: see int8_winograd.cc.
#pragma once

#include "ops/conv_strips.h"
#include "int8_finish.h"
#include "ops/int8_shape.h"
#include "tap_gemm.h"
#include "winograd_transform.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kPoints = F43Whole::kPoints, kAll = kPoints * kPoints, kSide = F43Whole::kOutputs;
// Channels whose products are summed in one lane, and those that the products take at once.
#if !defined(__ARM_NEON)
constexpr int kPair = 2, kGroup = 2;
#else
constexpr int kPair = 1, kGroup = 4;
#endif
constexpr int kNarrow = 2 * kLanes;        // lanes of 16 bits
typedef int16_t S __attribute__((vector_size(2 * kNarrow)));
typedef uint32_t U __attribute__((vector_size(4 * kLanes)));   // sums modulo 2^32
typedef uint8_t NarrowBytes __attribute__((vector_size(kNarrow)));
typedef int8_t NarrowSigned __attribute__((vector_size(kNarrow)));

// Outputs come out kFold times; 9 * kNinth = 1 modulo 2^32.
constexpr uint32_t kFold = 576, kNinth = 954437177;

struct Winograd {
  QuantParams quant;
  PixelView in, out, residual;
  int64_t pad[2];
  int64_t channels, row_elems;             // row_elems: of V, from one tile to the next
  int64_t tiles_h, tiles_w, tiles;         // of all images
  int64_t panels, point_elems;             // point_elems: of a panel, from one point to the next
  const int16_t* weights;
  const int32_t* bias;                     // panels * kTileColumns, kFold times
  const float* scale;                      // the same, of 64-fold sums
  ThreadGrid grid;
};

struct TileAt {
  int64_t image, y, x;                     // first output pixel
};
LITE_INLINE TileAt tile_at(const Winograd& w, int64_t tile) {
  const int64_t per_image = w.tiles_h * w.tiles_w, image = tile / per_image;
  const int64_t rest = tile - image * per_image, y = rest / w.tiles_w;
  return {image, y * kSide, (rest - y * w.tiles_w) * kSide};
}

// Of one point of a block: a cache line more, for points that are written together lie in few cache sets
// where their distance is a power of two.
int64_t v_elems(const Winograd& w) { return kTileRows * w.row_elems + kNarrow; }
constexpr int64_t kSumElems = kTileRows * kTileColumns + kLanes;

int16_t weight_factor(int point, int tap) {
  return static_cast<int16_t>(F43Whole::kWeights[point][tap] * (point == kPoints - 1 ? 12 : 24));
}
// Of three taps to point i.
S transform_taps(int i, S first, S second, S third) {
  return weight_factor(i, 0) * first + weight_factor(i, 1) * second + weight_factor(i, 2) * third;
}

// A vector at a time: filters of kPair channels of the input for each of its columns.
void transform_weights(const IntShape& s, const Winograd& w, int16_t* out) {
  const int64_t columns_out = s.conv.out.c;
  const auto read = [&](int64_t n0, int64_t c0, S (&g)[3][3]) {
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) {
        int16_t lanes[kNarrow] = {};
        for (int i = 0; i < kNarrow; ++i) {
          const int64_t n = n0 + i / kPair, c = c0 + i % kPair;
          if (n < columns_out && c < w.channels)
            lanes[i] = static_cast<int16_t>(centred_weight(
                w.quant, *s.w.tensor, n,
                s.w.origin + n * s.w.out + c * s.w.in + y * s.w.y + x * s.w.x));
        }
        memcpy(&g[y][x], lanes, sizeof lanes);
      }
  };
  for (int64_t panel = 0; panel < w.panels; ++panel) {
    const int64_t row = panel_columns(columns_out, panel) * kPair;  // elements of a pair of channels
    int16_t* to = out + panel * kAll * w.point_elems;
    for (int64_t c = 0; c < w.channels; c += kPair, to += row)
      for (int64_t at = 0; at < row; at += kNarrow) {
        const size_t bytes = static_cast<size_t>(row - at < kNarrow ? row - at : kNarrow) * 2;
        S g[3][3], half[3];
        read(panel * kTileColumns + at / kPair, c, g);
        for (int i = 0; i < kPoints; ++i) {
          for (int x = 0; x < 3; ++x) half[x] = transform_taps(i, g[0][x], g[1][x], g[2][x]);
          for (int j = 0; j < kPoints; ++j) {
            const S v = transform_taps(j, half[0], half[1], half[2]);
            memcpy(to + (i * kPoints + j) * w.point_elems + at, &v, bytes);
          }
        }
      }
  }
}

// kNarrow bytes as the numbers that they are.
template <bool kSigned>
LITE_INLINE S widen_narrow(const uint8_t* p) {
#if defined(__AVX512BW__)
  // NOTE: gcc 12 would make two halves of a conversion.
  const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return (S)(kSigned ? _mm512_cvtepi8_epi16(v) : _mm512_cvtepu8_epi16(v));
#else
  NarrowBytes v;
  memcpy(&v, p, sizeof v);
  return kSigned ? __builtin_convertvector((NarrowSigned)v, S) : __builtin_convertvector(v, S);
#endif
}
// n bytes, and zeros behind them, to kNarrow.
LITE_INLINE void copy_narrow(uint8_t* to, const uint8_t* from, int n) {
#if defined(__AVX512BW__)
  touches(from, n);
  const __m256i v = _mm256_maskz_loadu_epi8(~0u >> (kNarrow - n), from);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
#else
  memset(to, 0, kNarrow);
  copy_columns(to, from, n);
#endif
}

// 6x6 pixels from x on into V, whose points lie `stride` elements apart. Of the zero point, which is
// the same in all pixels, 36 times itself is in the point (1, 1) and nothing in the others.
template <bool kSigned>
void transform_patch(const uint8_t* x, int64_t row, int64_t pixel, int64_t channels, int32_t zero,
                     int16_t* v, int64_t stride) {
  const uint8_t* rows[kPoints];
  LITE_UNROLL for (int i = 0; i < kPoints; ++i) rows[i] = x + i * row;
  uint8_t ends[kAll * kNarrow];
  for (int64_t c = 0, from = 0; c < channels; c += kNarrow, from += kNarrow) {
    if (c + kNarrow > channels) {  // the last ones are copied: the code below is long
      for (int i = 0; i < kAll; ++i)
        copy_narrow(ends + i * kNarrow, rows[i / kPoints] + i % kPoints * pixel + c,
                    static_cast<int>(channels - c));
      for (int i = 0; i < kPoints; ++i) rows[i] = ends + i * kPoints * kNarrow;
      pixel = kNarrow;
      from = 0;
    }
    S t[kPoints][kPoints];
    LITE_UNROLL for (int j = 0; j < kPoints; ++j) {
      S d[kPoints], o[kPoints];
      LITE_UNROLL for (int i = 0; i < kPoints; ++i)
        d[i] = widen_narrow<kSigned>(rows[i] + j * pixel + from);
      F43Whole::input(d, o);
      LITE_UNROLL for (int i = 0; i < kPoints; ++i) t[i][j] = o[i];
    }
    int16_t* to = v + c;
    LITE_UNROLL for (int i = 0; i < kPoints; ++i) {
      S o[kPoints];
      F43Whole::input(t[i], o);
      if (i == 1) o[1] -= static_cast<int16_t>(36 * zero);
      LITE_UNROLL for (int j = 0; j < kPoints; ++j, to += stride) memcpy(to, &o[j], sizeof o[j]);
    }
  }
}

// `patch`: room for a tile's input with the border that it has beyond the image.
void transform_input(const Winograd& w, const uint8_t* x, TileAt at, uint8_t* patch, int16_t* v,
                     int64_t stride) {
  const auto transform = w.quant.x_signed ? transform_patch<true> : transform_patch<false>;
  const int64_t y0 = at.y - w.pad[0], x0 = at.x - w.pad[1], c = w.channels;
  const uint8_t* from = x + w.in.origin + at.image * w.in.image + y0 * w.in.row + x0 * w.in.pixel;
  if (y0 >= 0 && x0 >= 0 && y0 + kPoints <= w.in.h && x0 + kPoints <= w.in.w)
    return transform(from, w.in.row, w.in.pixel, c, w.quant.x_zero, v, stride);
  memset(patch, w.quant.x_zero, kAll * c);
  const int64_t first = x0 < 0 ? -x0 : 0, last = w.in.w - x0 < kPoints ? w.in.w - x0 : kPoints;
  for (int64_t i = 0; i < kPoints; ++i) {
    if (y0 + i < 0 || y0 + i >= w.in.h) continue;
    for (int64_t j = first; j < last; ++j)
      memcpy(patch + (i * kPoints + j) * c, from + i * w.in.row + j * w.in.pixel, c);
  }
  transform(patch, kPoints * c, c, c, w.quant.x_zero, v, stride);
}

// The first kPixels of a row of pixels.
template <int kPixels, int kVectors>
LITE_INLINE void finish_pixels(const IntTile& to, const I (&sums)[kSide][kVectors]) {
  I first[kPixels][kVectors];
  memcpy(first, sums, sizeof first);
  finish(to, first);
}

// The tile at `at`, from output channel n0 on; `to`: where its first pixel goes.
template <int kVectors>
void transform_output(const Winograd& w, const int32_t* products, int64_t n0, TileAt at, IntTile to) {
  const int64_t rows = w.out.h - at.y < kSide ? w.out.h - at.y : kSide;
  const int64_t pixels = w.out.w - at.x < kSide ? w.out.w - at.x : kSide;
  const int32_t* bias = w.bias + n0;
  U t[kVectors][kSide][kPoints];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n)
    LITE_UNROLL for (int j = 0; j < kPoints; ++j) {
      U d[kPoints], o[kSide];
      LITE_UNROLL for (int i = 0; i < kPoints; ++i)
        d[i] = (U)load(products + (i * kPoints + j) * kSumElems + n * kLanes);
      if (j == 1) d[1] += (U)load(bias + n * kLanes);    // the point (1, 1) counts once in every output
      d[kPoints - 1] *= 2;
      F43Whole::output(d, o);
      LITE_UNROLL for (int i = 0; i < kSide; ++i) t[n][i][j] = j + 1 < kPoints ? o[i] : 2 * o[i];
    }
  for (int64_t i = 0; i < rows; ++i, to.c += w.out.row) {
    I sums[kSide][kVectors];
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
      U o[kSide];
      F43Whole::output(t[n][i], o);
      LITE_UNROLL for (int j = 0; j < kSide; ++j) sums[j][n] = (I)(o[j] * kNinth);
    }
    if (pixels == 4) finish(to, sums);
    else if (pixels == 3) finish_pixels<3>(to, sums);
    else if (pixels == 2) finish_pixels<2>(to, sums);
    else finish_pixels<1>(to, sums);
    if (to.residual) to.residual += w.residual.row;
  }
}

}  // namespace
}  // namespace lite::LITE_ISA
