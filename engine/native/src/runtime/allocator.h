// Memory of one program: every block is 64-byte aligned, zeroed, counted and freed together.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct Allocator {
  // Blocks are cut from chunks, each larger than the one before. From 2 MiB on a chunk asks the
  // kernel for huge pages: weights and arena then take few page faults and few TLB entries.
  struct Chunk {
    Chunk* next;
    uint8_t* at;   // the first free byte
    uint8_t* end;
    size_t mapped_bytes;  // of the whole mapping
  };
  Chunk* chunks;
  size_t used_bytes;
  size_t limit_bytes;      // 0: none
  int64_t fail_countdown;  // the allocation that brings it to 0 fails (tests); 0: never

  void* allocate(size_t bytes);  // nullptr when exhausted
  // count * each, overflow checked. At least one byte, so that nullptr always means failure.
  void* allocate_array(size_t count, size_t each);
  void release();

 private:
  bool grow(size_t bytes);
};

}  // namespace lite
