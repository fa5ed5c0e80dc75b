// Memory of one program: every block is 64-byte aligned, zeroed, counted and freed together.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct Allocator {
  struct Block {
    Block* next;
    size_t bytes;
  };
  Block* blocks;
  size_t used_bytes;
  size_t limit_bytes;      // 0: none
  int64_t fail_countdown;  // the allocation that brings it to 0 fails (tests); 0: never

  void* allocate(size_t bytes);  // nullptr when exhausted
  // count * each, overflow checked. At least one byte, so that nullptr always means failure.
  void* allocate_array(size_t count, size_t each);
  void release();
};

}  // namespace lite
