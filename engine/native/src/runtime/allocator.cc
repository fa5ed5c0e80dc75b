#include "allocator.h"

#include <sys/mman.h>

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
  const bool huge = wanted >= kHugePage;
  const size_t unit = huge ? kHugePage : kPage;
  wanted = (wanted + unit - 1) / unit * unit;
  const size_t mapped = huge ? wanted + kHugePage : wanted;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return false;
  uint8_t* first = static_cast<uint8_t*>(raw);
  if (huge) {  // only whole aligned huge pages are kept
    uint8_t* start = align_up(first, kHugePage);
    if (start != first) munmap(first, static_cast<size_t>(start - first));
    const size_t behind = mapped - static_cast<size_t>(start - first) - wanted;
    if (behind) munmap(start + wanted, behind);
    first = start;
#ifdef MADV_HUGEPAGE
    madvise(first, wanted, MADV_HUGEPAGE);  // advice: without it there are more page faults
#endif
  }
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
    munmap(chunk, bytes);
  }
  used_bytes = 0;
}

}  // namespace lite
