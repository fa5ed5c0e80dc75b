// The weights of a convolution in panels, in the order of TapGemm::weights.
#pragma once

#include "ops/convert.h"
#include "pairs.h"
#include "tap_gemm.h"
#include "transpose.h"

namespace lite::LITE_ISA {
namespace {

constexpr int64_t kPackedAtOnce = 16;  // channels: a cache line of floats that lie together

// Input channel c of a group, or channels 2c and 2c + 1, to column n of a row.
LITE_INLINE void pack_weight(const WeightView& v, const float* source, int64_t c, Real* row,
                             int64_t n) {
  if (kProducts == 1) {
    row[n] = static_cast<Real>(source[0] * v.scale);
    return;
  }
  const float second = 2 * c + 1 < v.pairs_in ? source[v.in] * v.scale : 0.0f;
  const uint32_t pair = static_cast<uint32_t>(float_to_bfloat(second)) << 16 |
                        float_to_bfloat(source[0] * v.scale);
  memcpy(row + n, &pair, sizeof pair);
}

#if defined(LITE_FP16)
constexpr bool kSquares = false;
LITE_INLINE void pack_square(const float*, int64_t, float, Real*, int64_t) {}
#else
constexpr bool kSquares = kProducts == 1;
// A square of kLanes columns, whose channels lie together, to rows of columns.
LITE_INLINE void pack_square(const float* source, int64_t column, float scale, float* row,
                             int64_t columns) {
  F square[kLanes];
  LITE_UNROLL for (int i = 0; i < kLanes; i++) square[i] = load(source + i * column);
  transpose(square);
  LITE_UNROLL for (int i = 0; i < kLanes; i++) store(row + i * columns, square[i] * splat(scale));
}
#endif

// NOTE: a line of the source holds several channels of one column, and columns may lie a multiple of
// 4 KiB apart: taking a few channels of every column in turn reads each line once.
void pack(const ConvShape& s, const WeightView& v, int64_t join, const TapGemm& g, Real* out) {
  const int64_t in_c = s.group_in, out_c = s.group_out, taps = s.kernel[0] * s.kernel[1];
  const bool squares = kSquares && v.in == 1;
  for (int64_t group = 0; group < g.groups; ++group) {
    for (int64_t p = 0; p < g.panels; ++p) {
      const int64_t columns = panel_columns(g.out_c, p), n0 = p * kTileColumns;
      Real* panel = out + group * g.group_elems + p * g.panel_elems;
      for (int64_t member = 0; member < join; ++member) {
        const int64_t first = member * out_c - n0, last = first + out_c;  // its columns
        const int64_t begin = first > 0 ? first : 0, end = last < columns ? last : columns;
        for (int64_t c0 = 0; c0 < in_c; c0 += kPackedAtOnce) {
          const int64_t c1 = c0 + kPackedAtOnce < in_c ? c0 + kPackedAtOnce : in_c;
          for (int64_t tap = 0; tap < taps; ++tap) {
            Real* rows = panel + (tap * g.in_c + member * in_c) * columns;
            const float* source = v.data + (group * join + member) * v.group +
                                  tap / s.kernel[1] * v.y + tap % s.kernel[1] * v.x;
            int64_t n = begin;
            for (; squares && n + kLanes <= end && c1 - c0 == kPackedAtOnce; n += kLanes)
              for (int64_t c = c0; c < c1; c += kLanes)
                pack_square(source + (n - first) * v.out + c, v.out, v.scale,
                            rows + c * columns + n, columns);
            for (; n < end; ++n) {
              for (int64_t c = c0; c < c1; ++c)
                pack_weight(v, source + (n - first) * v.out + kProducts * c * v.in, c,
                            rows + c * columns, n);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lite::LITE_ISA
