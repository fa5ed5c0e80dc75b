#include "weight_cache.h"

#include <stdlib.h>

#include "crc32.h"
#include "spin_lock.h"

namespace lite {

// A packed weight. It can be found while a program uses it, which keeps its source where it is.
struct PackedEntry {
  Recipe recipe;
  uint32_t sum;          // of the source, unless that cannot change
  void* data;
  size_t bytes;
  int users;
  PackedMemory* memory;
  PackedEntry* next;
};

// What one program has packed, freed when no program uses any of it: blocks of their own would have no huge pages.
struct PackedMemory {
  Allocator memory;
  int users;
  PackedEntry* entries;
  PackedMemory* next;    // of those that are published
};

struct PackedUse {
  PackedEntry* entry;
  PackedUse* next;
};

namespace {

// Less is not worth an entry.
constexpr size_t kFewestBytes = 4 << 10;

std::atomic_flag busy = ATOMIC_FLAG_INIT;
PackedMemory* published = nullptr;

bool same(const PackedEntry& e, const Recipe& r, uint32_t sum, size_t bytes) {
  return e.users > 0 && e.recipe.source == r.source && e.sum == sum && e.bytes == bytes &&
         e.recipe.source_bytes == r.source_bytes && strcmp(e.recipe.maker, r.maker) == 0 &&
         memcmp(e.recipe.numbers, r.numbers, sizeof r.numbers) == 0;
}

PackedEntry* find(PackedMemory* memory, const Recipe& r, uint32_t sum, size_t bytes) {
  for (; memory; memory = memory->next)
    for (PackedEntry* e = memory->entries; e; e = e->next)
      if (same(*e, r, sum, bytes)) return e;
  return nullptr;
}

void add_use(WeightCache* cache, PackedUse* use, PackedEntry* entry) {
  ++entry->users;
  ++entry->memory->users;
  *use = {entry, cache->uses};
  cache->uses = use;
  cache->bytes += entry->bytes;
}

// With the program's limit, and a failure that a test injects.
void* allocate_own(PackedMemory* own, Allocator* memory, size_t bytes) {
  Allocator& mine = own->memory;
  const size_t limit = memory->limit_bytes, used = memory->used_bytes;
  mine.limit_bytes = limit ? limit > used ? limit - used : 1 : 0;
  mine.fail_countdown = memory->fail_countdown;
  void* block = mine.allocate(bytes);
  memory->fail_countdown = mine.fail_countdown;
  return block;
}

}  // namespace

uint32_t sum_of(const WeightCache& cache, const void* source, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(source), fixed = reinterpret_cast<uintptr_t>(cache.fixed);
  const bool stays = begin >= fixed && begin - fixed < cache.fixed_bytes;
  return stays ? 0 : crc32(static_cast<const uint8_t*>(source), bytes);
}

void* Env::allocate_packed(const Recipe& recipe, size_t bytes, bool* made) {
  WeightCache* cache = weights;
  Allocator* memory = allocator;
  *made = false;
  if (bytes < kFewestBytes) return memory->allocate(bytes);
  PackedUse* use = static_cast<PackedUse*>(memory->allocate(sizeof(PackedUse)));
  if (!use) return nullptr;
  const uint32_t sum = sum_of(*cache, recipe.source, recipe.source_bytes);
  PackedEntry* entry = find(cache->own, recipe, sum, bytes);
  if (entry) {
    add_use(cache, use, entry);
  } else {
    const SpinLock lock(&busy);
    entry = find(published, recipe, sum, bytes);
    if (entry) add_use(cache, use, entry);
  }
  *made = entry != nullptr;
  if (entry) return entry->data;
  if (!cache->own) cache->own = static_cast<PackedMemory*>(calloc(1, sizeof(PackedMemory)));
  if (!cache->own) return nullptr;
  entry = static_cast<PackedEntry*>(allocate_own(cache->own, memory, sizeof(PackedEntry)));
  void* data = entry ? allocate_own(cache->own, memory, bytes) : nullptr;
  if (!data) return nullptr;
  *entry = {recipe, sum, data, bytes, 0, cache->own, cache->own->entries};
  cache->own->entries = entry;
  add_use(cache, use, entry);
  return data;
}

void publish(WeightCache* cache) {
  if (!cache->own || !cache->own->users) return;
  const SpinLock lock(&busy);
  cache->own->next = published;
  published = cache->own;
}

void release(WeightCache* cache) {
  PackedMemory* unused = nullptr;
  {
    const SpinLock lock(&busy);
    for (PackedUse* use = cache->uses; use; use = use->next) {
      PackedMemory* memory = use->entry->memory;
      --use->entry->users;
      if (--memory->users) continue;
      for (PackedMemory** at = &published; *at; at = &(*at)->next)
        if (*at == memory) {
          *at = memory->next;
          break;
        }
      memory->next = unused;
      unused = memory;
    }
    if (cache->own && !cache->own->entries) {  // none of its blocks could be allocated
      cache->own->next = unused;
      unused = cache->own;
    }
  }
  while (unused) {
    PackedMemory* memory = unused;
    unused = memory->next;
    memory->memory.release();
    free(memory);
  }
  *cache = {};
}

}  // namespace lite
