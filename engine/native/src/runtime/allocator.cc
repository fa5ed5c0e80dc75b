#include "allocator.h"

#include "platform/memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace lite {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFirstChunk = 16 * kPage;
constexpr size_t kHugePage = size_t{2} << 20;

uint8_t* align_up(uint8_t* p, size_t to) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(p) + to - 1) / to * to);
}

}  // namespace

// A chunk with room for `bytes` behind its header, from fresh (zero) pages.
bool Allocator::grow(size_t bytes) {
  size_t wanted = chunks ? 2 * static_cast<size_t>(chunks->end - reinterpret_cast<uint8_t*>(chunks))
                         : kFirstChunk;
  if (wanted > 4 * kHugePage) wanted = 4 * kHugePage;
  if (wanted < bytes + kAlign + sizeof(Chunk)) wanted = bytes + kAlign + sizeof(Chunk);
  const size_t unit = wanted >= kHugePage ? kHugePage : kPage;
  wanted = (wanted + unit - 1) / unit * unit;
  uint8_t* first = static_cast<uint8_t*>(fresh_pages(wanted));
  if (!first) return false;
  Chunk* chunk = reinterpret_cast<Chunk*>(first);
  *chunk = {chunks, align_up(first + sizeof(Chunk), kAlign), first + wanted, wanted};
  chunks = chunk;
  ASAN_POISON_MEMORY_REGION(chunk->at, chunk->end - chunk->at);
  return true;
}

void* Allocator::allocate(size_t bytes) {
  if (fail_countdown > 0 && --fail_countdown == 0) return nullptr;
  size_t total;
  if (!add_size(bytes, 2 * kAlign, &total) || total > SIZE_MAX / 4) return nullptr;
  total = total / kAlign * kAlign;  // at least one unit behind the block is nobody's
  if (limit_bytes && (total > limit_bytes || used_bytes > limit_bytes - total)) return nullptr;
  if ((!chunks || static_cast<size_t>(chunks->end - chunks->at) < total) && !grow(total))
    return nullptr;
  uint8_t* block = chunks->at;
  chunks->at += total;
  used_bytes += total;
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void* Allocator::allocate_array(size_t count, size_t each) {
  size_t bytes;
  return mul_size(count, each, &bytes) ? allocate(bytes ? bytes : 1) : nullptr;
}

void Allocator::release() {
  while (chunks) {
    Chunk* chunk = chunks;
    chunks = chunk->next;
    const size_t bytes = chunk->mapped_bytes;
    ASAN_UNPOISON_MEMORY_REGION(chunk, bytes);
    free_pages(chunk, bytes);
  }
  used_bytes = 0;
}

}  // namespace lite
