// Convolution in small groups: a vector of output channels holds several of them, or parts of two.
//
// The tap GEMM gives every block of groups its own vectors and multiplies zeros: three of four lanes meet
// one where groups of 4 fill vectors of 16, one of four where groups of 24 take two vectors. Here each
// lane multiplies what its own group reads:
//
//   out[c] = f(bias[c] + R[c] + sum over taps and j of x[first(group(c)) + j] * w[c][tap][j])
//
// For one j the numbers of a pixel are spread over the lanes once, for all outputs of a tile (neighbouring
// pixels of one row) that see it.
#pragma once

#include "ops/conv_strips.h"
#include "vec.h"

namespace lite::LITE_ISA {

#if (defined(__AVX2__) && !defined(__AVX512BF16__)) || (defined(__aarch64__) && !defined(LITE_FP16))
#define LITE_GROUPED_CONV
#endif

// How a vector of output channels takes its input channels.
struct GroupedVector {
  enum Spread : int32_t {
    kSplat,                         // one group: one number
    kPermute,                       // several: lanes of a vector
    kTwo,                           // two that are wider: one number each
  };
  Spread spread;
  int32_t channels;                 // valid ones
  int64_t first, second;            // input channels of j = 0; kTwo: also of the second group
  int32_t step_x, step_at;          // kPermute: from one j to the next, of the address and of `at`
  RealInt at[kLanes];               // kPermute: lane of what is loaded; kTwo: -1 in the first group
};
constexpr int kSpreads = 3;

struct GroupedTile;
using GroupedTileFn = void (*)(const GroupedTile&);

struct GroupedConv {
  ConvShape shape;
  int64_t vectors, channels;        // vectors, output channels of each
  const GroupedVector* vector;
  int64_t row_elems, vector_elems;  // of weights: one row of taps, one vector
  const Real* weights;              // [vector][ky][piece][j][tap of the piece][lanes]
  const Real* bias;                 // [vectors * kLanes]
  const Real* zeros;                // a pixel of padding
  int32_t threes, ones;             // pieces of a row of taps: three neighbours, then single taps
  int32_t pixels;                   // of a tile; the last one of a row steps back
  GroupedTileFn tile[kSpreads];
  size_t scratch_bytes;             // per thread
};

// Whether it is faster than the tap GEMM.
bool is_grouped_conv(const ConvShape&);
// Everything but weights and bias.
bool prepare_grouped_conv(const ConvShape&, Env&, GroupedConv*);
// Output rows of all images, and vectors.
void run_grouped_conv(const GroupedConv&, const Real* x, Real* y, const Real* residual, const GridPart&,
                      void* scratch);

}  // namespace lite::LITE_ISA
