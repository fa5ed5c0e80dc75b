#include "allocator.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace lite {

void* Allocator::allocate(size_t bytes) {
  if (fail_countdown > 0 && --fail_countdown == 0) return nullptr;
  size_t total;
  if (!add_size(bytes, 2 * kAlign, &total) || total > SIZE_MAX / 2) return nullptr;
  total = total / kAlign * kAlign;
  if (limit_bytes && (total > limit_bytes || used_bytes > limit_bytes - total)) return nullptr;
  // calloc leaves big blocks to the kernel's zero pages; the header takes one aligned unit.
  uint8_t* raw = static_cast<uint8_t*>(calloc(total + kAlign + sizeof(Block), 1));
  if (!raw) return nullptr;
  Block* block = reinterpret_cast<Block*>(raw);
  block->next = blocks;
  block->bytes = total;
  blocks = block;
  used_bytes += total;
  const uintptr_t free_from = reinterpret_cast<uintptr_t>(raw + sizeof(Block));
  uint8_t* first = reinterpret_cast<uint8_t*>((free_from + kAlign - 1) / kAlign * kAlign);
  // The slack behind the block is out of bounds, too.
  ASAN_POISON_MEMORY_REGION(first + bytes, raw + total + kAlign + sizeof(Block) - (first + bytes));
  return first;
}

void* Allocator::allocate_array(size_t count, size_t each) {
  size_t bytes;
  return mul_size(count, each, &bytes) ? allocate(bytes ? bytes : 1) : nullptr;
}

void Allocator::release() {
  while (blocks) {
    Block* next = blocks->next;
    ASAN_UNPOISON_MEMORY_REGION(blocks, blocks->bytes + kAlign + sizeof(Block));
    free(blocks);
    blocks = next;
  }
  used_bytes = 0;
}

}  // namespace lite
