// Seven products of half size in place of eight, where a pointwise convolution or a product with a
// constant matrix is large: one level of Strassen's scheme in Winograd's form (Strassen 1969; Higham,
// Accuracy and Stability of Numerical Algorithms, 2002, chapter 23).
//
// It is applied to two register tiles of rows, two panels of columns and two halves of a piece of k
// at a time: sums of rows and of weights take room in scratch memory alone, and rows and panels that
// are left over are multiplied plainly. Where it pays once more, blocks of rows, halves of the columns and of
// k make seven products, each of which is computed so.
#pragma once

#include "ops/conv_shape.h"
#include "f32_tile.h"
#include "packed_tile.h"

namespace lite::LITE_ISA {

#if !defined(LITE_FP16) && !defined(__AVX512BF16__)
#define LITE_STRASSEN
#endif
// Two levels take 5 to 7 % fewer instructions on AArch64. On x86 the outer level's sums go through the last cache
// and leave 0 to 5 % to save (Zen 4, 1024 x 768 x 768 to 1024 x 2048 x 2048): not worth its rounding.
#if defined(LITE_STRASSEN) && defined(LITE_PACKED_TILE)
#define LITE_STRASSEN_TWICE
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

// Two levels.
struct StrassenTwice {
  Strassen inner;                   // of a product of the outer level
  int64_t quads, panel_quads;       // of tiles and of panels; none where one level is faster
  int64_t block_quads;              // of tiles, which make one product of the outer level

  int64_t blocks() const { return (quads + block_quads - 1) / block_quads; }
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

// The same of the outer level, whose rows have k / 2 numbers, for panel_quads of panels; `inner` is a
// StrassenMemory.
struct StrassenTwiceMemory {
  int64_t ld, products_ld;          // elements between rows of a sum and of a product
  int64_t weights, rows, products, inner, end;
};
LITE_INLINE StrassenTwiceMemory memory_of(const StrassenTwice& s, int64_t panel_quads) {
  constexpr int64_t kLine = 64 / sizeof(float);
  const int64_t half = 2 * s.inner.half * s.inner.pieces, columns = 2 * panel_quads * kTileColumns;
  const int64_t height = 2 * s.block_quads * s.inner.height;
  StrassenTwiceMemory at{};
  at.ld = (half + kLine - 1) / kLine * kLine + kLine;
  at.products_ld = columns + kLine;
  at.rows = at.weights + kStrassenSums * half * columns + kPackedSlack;
  at.products = at.rows + kStrassenSums * height * at.ld;
  at.inner = at.products + kStrassenProducts * height * at.products_ld;
  at.end = at.inner + memory_of(s.inner).end;
  return at;
}

// Plans g->strassen, g->strassen_twice, threads and scratch memory for a convolution whose weights are
// packed; false where it does not apply or not pay.
bool prepare_strassen(const ConvShape&, bool rows_share_a_set, Env&, TapGemm* g);
void run_strassen(const TapGemm&, const float* x, float* y, const float* residual, int thread, void* scratch);

}  // namespace lite::LITE_ISA
