// Rows of neighbouring bytes, evenly apart.
#pragma once

#include <stdint.h>

namespace lite {

struct Rows {
  uint64_t first, bytes;  // where they begin, and from there to the end of the last row
  uint64_t width, apart;  // of a row, and from row to row
};

// Whether they share a byte. Slices of one concat buffer interleave without sharing.
inline bool overlap(const Rows& a, const Rows& b) {
  if (a.first + a.bytes <= b.first || b.first + b.bytes <= a.first) return false;
  if (a.apart == 0 || a.apart != b.apart) return true;
  const Rows &low = a.first <= b.first ? a : b, &high = a.first <= b.first ? b : a;
  const uint64_t gap = (high.first - low.first) % a.apart;
  return gap < low.width || gap + high.width > a.apart;
}

}  // namespace lite
