// Seven products of half size in place of eight, where a pointwise convolution or a product with a
// constant matrix is large: one level of Strassen's scheme in Winograd's form (Strassen 1969; Higham,
// Accuracy and Stability of Numerical Algorithms, 2002, chapter 23).
//
// It is applied to two register tiles of rows, two panels of columns and two halves of a piece of k
// at a time: sums of rows and of weights take room in scratch memory alone, and rows and panels that
// are left over are multiplied plainly.
#pragma once

#include "ops/conv_strips.h"
#include "f32_tile.h"

namespace lite::LITE_ISA {

#if !defined(LITE_FP16) && !defined(LITE_PAIRS) && !defined(__aarch64__)
#define LITE_STRASSEN
#endif

struct TapGemm;

struct Strassen {
  int64_t height;                   // rows of a tile
  int64_t tile_pairs, panel_pairs;
  int64_t half;                     // k of one product
  int64_t pieces;                   // of k, two halves each
  int64_t block_pairs;              // of tiles, whose sums are kept at a time
  int64_t copied_rows;              // rows are read from scratch memory, too
  int64_t lda;                      // elements between rows of sums
  size_t scratch_bytes;             // per thread
};

// Whether it pays for `rows` of g, whose list is one strip, and whose weights are finite.
bool prepare_strassen(const TapGemm& g, bool rows_share_a_set, Env& env, Strassen* s);
// How threads share it: units of rows, and of panels.
ThreadGrid strassen_grid(const TapGemm& g, const Strassen& s, int threads);
void run_strassen(const TapGemm& g, const Strassen& s, const float* x, float* y, const float* residual,
                  int thread, void* scratch);

}  // namespace lite::LITE_ISA
