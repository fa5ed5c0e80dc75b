// Products of recurrent cells: rows of numbers, or of pairs of bf16, times packed weights.
#pragma once

#include "pairs.h"

namespace lite::LITE_ISA {

struct PackedCell {
  int directions, gates;
  int64_t hidden, blocks;
};

// w (D, G*H, K) -> [d][block][k][gate][lane], of pairs [d][block][k / 2][gate][lane][2]; units beyond H
// and what is behind the last k stay 0.
LITE_INLINE void pack(const PackedCell& s, const float* w, int64_t k_count, float* packed) {
  for (int d = 0; d < s.directions; ++d)
    for (int g = 0; g < s.gates; ++g)
      for (int64_t j = 0; j < s.hidden; ++j)
        for (int64_t k = 0; k < k_count; ++k) {
          const int64_t row = (d * s.blocks + j / kLanes) * product_length(k_count) + k / kProducts;
          float* to = packed + (row * s.gates + g) * kLanes + j % kLanes;
          const float value = w[((d * s.gates + g) * s.hidden + j) * k_count + k];
#if defined(LITE_PAIRS)
          round_floats(&value, reinterpret_cast<uint16_t*>(to) + k % 2, 1);
#else
          *to = value;
#endif
        }
}

// acc[row][gate] += x[row][k] * w[k][gate] for gates [0, G) of a block whose k has `all` gates. A sum that
// waits for the one before leaves units idle: a single row has several for each gate.
template <int G, int Rows>
LITE_INLINE void multiply(const float* const* x, const float* w, int all, int64_t k_count,
                          F acc[Rows][G]) {
  constexpr int kChains = Rows > 1 ? 1 : G > 2 ? 2 : 4;
  F sums[kChains][Rows][G] = {};
  LITE_UNROLL for (int row = 0; row < Rows; ++row)
    LITE_UNROLL for (int g = 0; g < G; ++g) sums[0][row][g] = acc[row][g];
  int64_t k = 0;
  for (; k + kChains <= k_count; k += kChains)
    LITE_UNROLL for (int i = 0; i < kChains; ++i) {
      F column[G];
      LITE_UNROLL for (int g = 0; g < G; ++g) column[g] = load(w + ((k + i) * all + g) * kLanes);
      LITE_UNROLL for (int row = 0; row < Rows; ++row) {
        const F value = splat(x[row][k + i]);
        LITE_UNROLL for (int g = 0; g < G; ++g)
          sums[i][row][g] = multiply_add(value, column[g], sums[i][row][g]);
      }
    }
  for (; k < k_count; ++k)
    LITE_UNROLL for (int row = 0; row < Rows; ++row)
      LITE_UNROLL for (int g = 0; g < G; ++g)
        sums[0][row][g] = multiply_add(splat(x[row][k]), load(w + (k * all + g) * kLanes), sums[0][row][g]);
  LITE_UNROLL for (int row = 0; row < Rows; ++row)
    LITE_UNROLL for (int g = 0; g < G; ++g) {
      F total = sums[0][row][g];
      LITE_UNROLL for (int i = 1; i < kChains; ++i) total += sums[i][row][g];
      acc[row][g] = total;
    }
}

}  // namespace lite::LITE_ISA
