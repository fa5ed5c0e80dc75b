// The tap GEMM over packed rows (packed_tile.h): all taps of a tile's pixels are gathered, so that
// tiles run across image rows and padding is zeros.
#pragma once

#include "ops/conv_strips.h"
#include "packed_tile.h"

namespace lite::LITE_ISA {

struct PackedGemm {
  ConvShape shape;
  int64_t depth;                    // taps x channels in, padded to a multiple of 4
  bool bias_in_weights;             // depth was padded: the bias is the first row behind the taps
  bool joined_taps;                 // a row of taps is one contiguous run
  bool takes_quads;                 // runs of whole fours of floats, or one run
  bool even;                        // pixels of the output, and residual, lie evenly across rows
  int64_t block_tiles;              // packed at a time
  size_t scratch_bytes;             // per thread
  const Real* weights;              // [panel][depth][columns], then kPackedSlack floats
  const Real* bias;                 // [panels * kTileColumns]
  const float* zeros;               // as many as a row of taps has
};

// Whether packing pays: what a row costs to pack is spread over the columns that it meets.
LITE_INLINE bool packs_rows(const ConvShape& s) {
  return kPacks && s.groups == 1 && s.group_out >= 16 && s.group_in > 0 &&
         s.out.images * s.out.h * s.out.w >= 8;
}

// Everything but the weights and bias.
bool prepare_packed_gemm(const ConvShape&, Env&, PackedGemm*);
// Output pixels of all images, and panels.
void run_packed_gemm(const PackedGemm&, const float* x, float* y, const float* residual,
                     const GridPart&, float* scratch);

}  // namespace lite::LITE_ISA
