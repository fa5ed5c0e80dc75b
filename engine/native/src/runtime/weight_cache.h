// Packed weights that programs of one process share: several sizes of a model, several predictors of it, and
// steps with the same weights.
#pragma once

#include "allocator.h"

namespace lite {

struct PackedEntry;
struct PackedMemory;
struct PackedUse;

// What one program reads of packed weights. All zero at first.
struct WeightCache {
  PackedMemory* own;     // what it has packed itself: other programs find it once the program is loaded
  PackedUse* uses;       // in the program's memory
  size_t bytes;          // of all that it uses
  const uint8_t* fixed;  // a mapped file, whose bytes stay as they are
  size_t fixed_bytes;
};

// Of the bytes of a weight, 0 where they stay as they are: between two loads, a caller may write to the arrays
// that it passed.
uint32_t sum_of(const WeightCache&, const void* source, size_t bytes);
// Others may use what this program has packed.
void publish(WeightCache*);
// Before the program's memory and the sources of its weights go.
void release(WeightCache*);

}  // namespace lite
