// 3x3 depthwise tiles where there are dot products of bytes in wide registers: a lane holds the rows of
// one column and channel, and serves each of three columns of output at another place; at stride 1 four
// rows serve two rows of output too. Weights stay in registers for a tile of four columns, and each column
// is interleaved once.
#pragma once

#include "int8_depthwise_tiles.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kRowsOut = 2, kColumnsOut = 4;
// Weights of a vector of channels: [output row][kx][lane][input row].
constexpr int kVectorWeights = kRowsOut * 3 * kBlock;

constexpr int columns_in(int stride) { return (kColumnsOut - 1) * stride + 3; }

// One filter's weights: `out` is at the place of a channel's lane.
void pack_rows(const int32_t (&w)[3][3], TapWeight* out) {
  for (int r = 0; r < kRowsOut; ++r)
    for (int kx = 0; kx < 3; ++kx)
      for (int ky = 0; ky < 3; ++ky)
        out[(r * 3 + kx) * kBlock + r + ky] = static_cast<TapWeight>(w[ky][kx]);
}

#if defined(__AVX512VNNI__)
constexpr bool kRowTiles = true;

// Vectors 2 * kHalf and 2 * kHalf + 1 of interleave().
template <int kHalf>
LITE_INLINE void interleave_half(B a, B b, B c, B d, I (&out)[2]) {
  const auto pair = [](B x, B y) __attribute__((always_inline)) {
    return (B)(kHalf ? _mm512_unpackhi_epi8((__m512i)x, (__m512i)y)
                     : _mm512_unpacklo_epi8((__m512i)x, (__m512i)y));
  };
  interleave_pairs(pair(a, b), pair(c, d), out);
}

template <bool kFlip, int kStride, int kRows>
struct RowTile {
  static constexpr int kColumnsIn = columns_in(kStride);

  // acc += the products of column j of the input with all outputs that it serves.
  static LITE_INLINE void add_column(I (&acc)[kRows][kColumnsOut], const I (&weights)[kRows][3], int j,
                                     I column) {
    LITE_UNROLL for (int o = 0; o < kColumnsOut; ++o)
      if (o * kStride <= j && j <= o * kStride + 2)
        LITE_UNROLL for (int r = 0; r < kRows; ++r)
          dot_bytes(acc[r][o], column, weights[r][j - o * kStride]);
  }

  // Half of a block's sums as 16-bit numbers, both vectors one after the other: what narrow_lanes() packs.
  // Products of the first stand between the shuffles, which other ports take.
  template <int kHalf, Fill kFill>
  static LITE_INLINE void half(const IntDepthwise& d, const TileArgs& t, int64_t c, int part,
                               __m512i (&packed)[kRows][kColumnsOut]) {
    const int64_t channel = c + 2 * kHalf * kLanes;  // of the biases and scales
    const TapWeight* w = d.weights + c / kBlock * d.block_weights + 2 * kHalf * kVectorWeights;
    I acc[2][kRows][kColumnsOut], second[kColumnsIn], weights[kRows][3];
    const auto start = [&](int i) __attribute__((always_inline)) {
      const I bias = load(d.bias + channel + i * kLanes);
      LITE_UNROLL for (int r = 0; r < kRows; ++r) {
        LITE_UNROLL for (int o = 0; o < kColumnsOut; ++o) acc[i][r][o] = bias;
        LITE_UNROLL for (int kx = 0; kx < 3; ++kx)
          weights[r][kx] = load_lanes(w + i * kVectorWeights + (r * 3 + kx) * kBlock);
      }
    };
    start(0);
    LITE_UNROLL for (int j = 0; j < kColumnsIn; ++j) {
      B x[kRows + 2];
      LITE_UNROLL for (int i = 0; i < kRows + 2; ++i)
        x[i] = read<kFill>(t, i * kColumnsIn + j, c, part);
      I quad[2];
      interleave_half<kHalf>(x[0], x[1], x[2], x[kRows + 1], quad);
      if (kFlip) LITE_UNROLL for (int i = 0; i < 2; ++i) quad[i] ^= static_cast<int32_t>(0x80808080);
      add_column(acc[0], weights, j, quad[0]);
      second[j] = quad[1];
    }
    start(1);
    LITE_UNROLL for (int j = 0; j < kColumnsIn; ++j) add_column(acc[1], weights, j, second[j]);
    LITE_UNROLL for (int i = 0; i < 2; ++i) {
      const F scale = load(d.scale + channel + i * kLanes);
      LITE_UNROLL for (int r = 0; r < kRows; ++r)
        LITE_UNROLL for (int o = 0; o < kColumnsOut; ++o) {
          const __m512i v = (__m512i)rescale(acc[i][r][o], scale);
          packed[r][o] = i ? _mm512_packs_epi32(packed[r][o], v) : v;
        }
    }
  }

  template <Fill kFill>
  static LITE_INLINE void block(const IntDepthwise& d, const TileArgs& t, int64_t c, int part) {
    __m512i low[kRows][kColumnsOut], high[kRows][kColumnsOut];
    half<0, kFill>(d, t, c, part, low);
    half<1, kFill>(d, t, c, part, high);
    const Bounds bounds(d.quant);
    const __m512i zero = _mm512_set1_epi16(static_cast<int16_t>(bounds.zero));
    LITE_UNROLL for (int r = 0; r < kRows; ++r)
      LITE_UNROLL for (int o = 0; o < kColumnsOut; ++o) {
        B bytes;
        if (bounds.plain) {
          bytes = (B)_mm512_packus_epi16(low[r][o], high[r][o]);
        } else {
          bytes = bounds.clamp((B)_mm512_packus_epi16(_mm512_adds_epi16(low[r][o], zero),
                                                      _mm512_adds_epi16(high[r][o], zero)));
        }
        const int64_t at = r * d.shape.out.row + o * d.shape.out.pixel + c;
        write<kFill>(t.out + at, t.other_out + at, part, bytes);
      }
  }

  static void run(const IntDepthwise& d, const TileArgs& t) {
    int64_t c = t.begin;
    for (; c + kBlock <= t.end; c += kBlock) block<kWhole>(d, t, c, 0);
    const int part = static_cast<int>(t.end - c);
    if (part == 0) return;
    if (t.other) block<kTwice>(d, t, c, part);
    else block<kPart>(d, t, c, part);
  }
};

// The tile of `rows` rows of output.
TileFn row_tile(const IntDepthwise& d, int64_t rows) {
  static constexpr TileFn kTiles[2][3] = {
      {RowTile<false, 1, 1>::run, RowTile<false, 1, 2>::run, RowTile<false, 2, 1>::run},
      {RowTile<true, 1, 1>::run, RowTile<true, 1, 2>::run, RowTile<true, 2, 1>::run}};
  return kTiles[d.flip][d.shape.stride[1] == 2 ? 2 : rows - 1];
}
#else
constexpr bool kRowTiles = false;
TileFn row_tile(const IntDepthwise&, int64_t) { return nullptr; }
#endif

}  // namespace
}  // namespace lite::LITE_ISA
