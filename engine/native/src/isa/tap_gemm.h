// Convolution without im2col: every strip of output pixels against panels of packed weights.
#pragma once

#include "ops/conv_strips.h"
#include "ops/deconv_parts.h"
#include "f32_tile.h"
#include "grouped_conv.h"
#include "image_conv.h"
#include "packed_gemm.h"
#include "strassen.h"

namespace lite::LITE_ISA {

// Weights of any order: element (group, out, in, ky, kx) lies at the sum of index * stride.
struct WeightView {
  const float* data;
  int64_t group, out, in, y, x;
  float scale;
  int64_t pairs_in = 0;  // input channels per group, where ConvShape::group_in counts pairs
};

LITE_INLINE WeightView weights_of(const ConvShape& transposed, const DeconvPart& part) {
  const int64_t kw = transposed.kernel[1], taps = transposed.kernel[0] * kw;
  return {transposed.weights->as<float>() + part.first_y * kw + part.first_x,
          transposed.group_in * transposed.group_out * taps,
          taps,
          transposed.group_out * taps,
          part.step_y * kw,
          part.step_x,
          1.0f};
}

// What `maker` packs from such weights.
LITE_INLINE Recipe recipe_of(const char* maker, const ConvShape& s, const WeightView& v) {
  const int64_t in = v.pairs_in > s.group_in ? v.pairs_in : s.group_in;
  const int64_t reaches[] = {(s.groups - 1) * v.group, (s.group_out - 1) * v.out, (in - 1) * v.in,
                             (s.kernel[0] - 1) * v.y, (s.kernel[1] - 1) * v.x};
  int64_t before = 0, behind = 1;
  for (int64_t reach : reaches) (reach < 0 ? before : behind) += reach;
  int32_t scale;
  memcpy(&scale, &v.scale, sizeof scale);
  return {maker,
          v.data + before,
          static_cast<size_t>(behind - before) * sizeof(float),
          {s.groups, s.group_in, s.group_out, s.kernel[0], s.kernel[1], v.group, v.out, v.in, v.y, v.x, scale,
           v.pairs_in}};
}

struct TapGemm {
  StripList list;
  int64_t kernel_w, in_c, out_c;    // of one packed group
  int64_t tap_x, tap_y;             // elements between taps of the input
  bool joined_taps;                 // a row of taps is one contiguous run
  int64_t groups, panels;           // panels of one group
  int64_t panel_elems, group_elems;
  const Real* weights;              // [group][panel][ky][kx][in_c][columns]
  const Real* bias;                 // [group][panels * kTileColumns]
  Activation activation;
  float lo, hi;
  bool short_out, short_residual;   // with products of pairs, set behind prepare_tap_gemm: of bf16
  int32_t block_tiles;
  int64_t depth_step;               // of in_c, of which all panels are multiplied before what is behind it
  int64_t copied_lda;               // elements between rows of a block that is copied, or 0
  ThreadGrid grid;
  bool packs;                       // rows are packed: `packed` takes the place of `list`
  PackedGemm packed;
  bool of_image;                    // `image` takes the place of `list`
  ImageConv image;
  bool is_strassen;                 // `strassen`, or `strassen_twice`, takes the place of `list` or `packed`
  Strassen strassen;
  StrassenTwice strassen_twice;
  bool of_groups;                   // `grouped` takes the place of `list`
  GroupedConv grouped;
  int64_t row_pixels;               // of the output, by rows
  size_t scratch_bytes;             // per thread
};

// Plans strips and threads, packs the weights. `shape.in` and so on describe the operands;
// bias (out channels, times bias_scale) may be nullptr. With `by_rows` run_tap_gemm_rows works, in
// multiples of list.group_rows. Each thread needs scratch_bytes.
bool prepare_tap_gemm(ConvShape shape, const WeightView& weights, const float* bias,
                      float bias_scale, Env& env, TapGemm* gemm, bool by_rows = false);
void run_tap_gemm(const TapGemm& gemm, const Real* x, Real* y, const Real* residual, int thread,
                  void* scratch);
// Output rows [begin, end) of the only image.
void run_tap_gemm_rows(const TapGemm& gemm, const Real* x, Real* y, const Real* residual,
                       int64_t begin, int64_t end, void* scratch);

// What a kernel's variant says of it.
LITE_INLINE const char* way_of(const TapGemm& g) {
  return g.of_groups ? "_grouped" : !g.is_strassen ? "" : g.strassen_twice.quads ? "_strassen2" : "_strassen";
}
LITE_INLINE int tile_height(const TapGemm& g) {
  return g.of_groups  ? g.grouped.pixels
         : g.of_image ? kImagePixels
         : g.packs    ? kPackedRows
                      : kTileRows;
}
LITE_INLINE int tile_columns(const TapGemm& g) { return g.of_groups ? kLanes : kTileColumns; }

// Columns that products of `n` outputs multiply, whose last panel may have a single vector: then each number of the
// input is read for half as many products, which takes longer.
LITE_INLINE double multiplied_columns(int64_t n, int lanes) {
  const int64_t rest = n % (2 * lanes);
  const double last = rest == 0 ? 0 : rest > lanes ? 2 * lanes : 1.15 * lanes;
  return static_cast<double>(n - rest) + last;
}

// Where a wide operation takes as long as two narrow ones, vectors of half the length multiply fewer columns of
// zeros: 24 outputs are three vectors of 8 or two of 16. `narrow`: their time for as many columns.
LITE_INLINE bool suits_columns(int64_t rows, int64_t n, const Env& env, double narrow) {
  constexpr int64_t kManyRows = 8;
  if (kLanes != 16 || !env.cpu.narrow || rows < kManyRows) return true;
  return narrow * multiplied_columns(n, kLanes / 2) >= multiplied_columns(n, kLanes);
}
LITE_INLINE bool suits_columns(const ConvShape& s, const Env& env, double narrow) {
  return s.groups != 1 || suits_columns(s.out.images * s.out.h * s.out.w, s.out.c, env, narrow);
}

// n columns as panels of kTileColumns; the last one may be a single vector wide.
LITE_INLINE int64_t panel_count(int64_t n) { return (n + kTileColumns - 1) / kTileColumns; }
LITE_INLINE int64_t panel_columns(int64_t n, int64_t panel) {
  const int64_t left = n - panel * kTileColumns;
  return left > kLanes ? kTileColumns : kLanes;
}

}  // namespace lite::LITE_ISA
