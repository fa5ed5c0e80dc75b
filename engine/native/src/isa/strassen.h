// Seven products of half size in place of eight, where a pointwise convolution or a product with a
// constant matrix is large: one level of Strassen's scheme in Winograd's form (Strassen 1969; Higham,
// Accuracy and Stability of Numerical Algorithms, 2002, chapter 23).
//
// It is applied to two register tiles of rows, two panels of columns and two halves of a piece of k
// at a time: sums of rows and of weights take room in scratch memory alone, and rows and panels that
// are left over are multiplied plainly.
#pragma once

#include "ops/conv_shape.h"
#include "f32_tile.h"
#include "packed_tile.h"

namespace lite::LITE_ISA {

#if !defined(LITE_FP16) && !defined(__AVX512BF16__)
#define LITE_STRASSEN
#endif

struct TapGemm;

struct Strassen {
  int64_t rows;                     // of the input, the output and what is added
  int64_t a, c, r;                  // element of the first
  int64_t lda, ldc, ldr;            // elements from one to the next
  int64_t height;                   // rows of a tile
  int64_t tile_pairs, panel_pairs;
  int64_t half;                     // k of one product
  int64_t pieces;                   // of k, two halves each
  int64_t block_pairs;              // of tiles, whose factors are kept at a time
  int64_t factors;                  // of a pair that are kept: the sums alone, or all
  int64_t ld_factor, factor_elems;  // elements between rows of one, and of all of it
};

constexpr int kStrassenProducts = 7, kStrassenSums = 4;

// What lies in scratch memory, one behind the other: elements where each begins.
struct StrassenMemory {
  int64_t flags, weights, products, rows, factors, end;
};
LITE_INLINE StrassenMemory memory_of(const Strassen& s) {
  constexpr int64_t kLine = 64 / sizeof(float);
  StrassenMemory at{};
  at.weights = (s.block_pairs + kLine - 1) / kLine * kLine;
  at.products = at.weights + kStrassenSums * s.half * kTileColumns + kPackedSlack;
  at.rows = at.products + kStrassenProducts * s.height * kTileColumns;
  at.factors = at.rows + (kPacks ? kStrassenSums * s.height * s.ld_factor : 0);
  at.end = at.factors + s.block_pairs * s.factors * s.factor_elems;
  return at;
}

// Whether n numbers may be added to others: they are finite, and their sums do not overflow.
bool may_be_added(const float* x, int64_t n);

// Plans g->strassen, threads and scratch memory for a convolution whose weights are packed; false where
// it does not apply or not pay.
bool prepare_strassen(const ConvShape&, bool rows_share_a_set, Env&, TapGemm* g);
void run_strassen(const TapGemm&, const float* x, float* y, const float* residual, int thread, void* scratch);

}  // namespace lite::LITE_ISA
