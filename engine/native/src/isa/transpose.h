// Squares of floats turned around in registers.
#pragma once

#include <utility>

#include "ops/shuffle.h"
#include "vec.h"

namespace lite::LITE_ISA {

// Blocks of 1, 2, 4, … lanes change places with those across the diagonal.
template <int kBlock, int... kLane>
LITE_INLINE void transpose(F (&rows)[kLanes], std::integer_sequence<int, kLane...> lanes) {
  LITE_UNROLL for (int i = 0; i < kLanes; i++) {
    if (i & kBlock) continue;
    const F a = rows[i], b = rows[i + kBlock];
    rows[i] = LITE_SHUFFLE(I, a, b, (kLane & kBlock ? kLane + kLanes - kBlock : kLane)...);
    rows[i + kBlock] = LITE_SHUFFLE(I, a, b, (kLane & kBlock ? kLane + kLanes : kLane + kBlock)...);
  }
  if constexpr (2 * kBlock < kLanes) transpose<2 * kBlock>(rows, lanes);
}

LITE_INLINE void transpose(F (&rows)[kLanes]) {
  transpose<1>(rows, std::make_integer_sequence<int, kLanes>{});
}

}  // namespace lite::LITE_ISA
