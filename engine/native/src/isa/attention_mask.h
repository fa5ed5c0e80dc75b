// Which keys a row of attention's mask hides.
#pragma once

#include "vec.h"

namespace lite::LITE_ISA {

// What a mask adds to hide a key; beside a visible one, such a key weighs exactly 0.
constexpr float kHidden = -1e30f;

// Of n keys, those up to the last one that a row of a mask does not hide.
LITE_INLINE int64_t last_visible(const float* mask, int64_t n) {
  constexpr int kTogether = 4 * kLanes;
  const auto top = [&](int64_t i) { return max(load(mask + i), load(mask + i + kLanes)); };
  while (n >= kTogether && highest(max(top(n - kTogether), top(n - 2 * kLanes))) <= kHidden) n -= kTogether;
  while (n > 0 && mask[n - 1] <= kHidden) --n;
  return n;
}

LITE_INLINE int64_t last_visible(const uint8_t* mask, int64_t n) {
  uint64_t eight;
  while (n >= 8 && (memcpy(&eight, mask + n - 8, 8), eight == 0)) n -= 8;
  while (n > 0 && mask[n - 1] == 0) --n;
  return n;
}

}  // namespace lite::LITE_ISA
