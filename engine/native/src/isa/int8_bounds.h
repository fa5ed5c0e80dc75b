// Where integer tiles may multiply bytes by pmaddubsw, which adds two products of unsigned bytes x with signed
// bytes w in 16 bits and saturates: only where |x0 w0 + x1 w1| may exceed 32767, so where both weights have one
// sign and |w0| + |w1| > 128. For each such pair of rows of a panel of weights there are two bounds, u0 and u1, the
// largest |w0| and |w1| of the columns concerned: x0 u0 + x1 u1 <= kMostPair means that no column's sum saturates.
// A tile whose rows of x pass that test is multiplied by pmaddubsw; another one, which takes
// large activations side by side, by 16-bit products. Either gives the same integers.
#pragma once

#include "int8_tile.h"

namespace lite::LITE_ISA {

#if defined(LITE_SATURATES)
constexpr bool kSaturates = true;
#else
constexpr bool kSaturates = false;
#endif

// |w| = 128 counts as 127, so that u is at least 127/128 of |w|: 32768 · 127/128 is too much.
constexpr int32_t kMostPair = 32511;

// Bounds of one panel of `depth` rows: a word that tells whether there are any, then a byte per row.
constexpr int64_t kBoundsHead = 4;
LITE_INLINE int64_t bounds_bytes(int64_t depth) { return kSaturates ? kBoundsHead + depth : 0; }

// Of weights as tiles read them: [depth / kDepth][kVectors * kLanes][kDepth].
void find_bounds(const IntWeight* w, int64_t depth, int vectors, uint8_t* bounds);

// What a tile reads; nullptr where no sum saturates.
LITE_INLINE const uint8_t* bounds_of(const uint8_t* bounds) {
  int32_t any = 0;
  if (kSaturates) memcpy(&any, bounds, sizeof any);
  return any ? bounds + kBoundsHead : nullptr;
}

}  // namespace lite::LITE_ISA
