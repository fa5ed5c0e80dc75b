// Copies between two strided views of up to 16 axes: transposes, slices, concats, tiles and
// depth-to-space are all this with different strides.
#pragma once

#include "lite_kernel.h"

namespace lite {

constexpr int kMaxCopyRank = 16;

struct CopyAxis {
  int64_t count, from, to;
};  // strides in elements; `from` 0 repeats, < 0 flips

// The simplified copy: axes sorted by destination, neighbours merged, none of count 1.
struct CopyPlan {
  CopyAxis axes[kMaxCopyRank];
  int rank;
  int element;    // bytes of one element
  int turned;     // axis with from == 1 that is not the last, or -1
  int64_t total;  // elements
};

void plan_copy(const CopyAxis* axes, int rank, int element, CopyPlan* plan);

// One thread's share. Addresses are those of element (0, ..., 0).
void run_copy(const CopyPlan&, const uint8_t* from, uint8_t* to, int thread, int threads);

}  // namespace lite
