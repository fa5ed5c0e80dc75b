#include "memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "platform/regular_file.h"

namespace lite {

namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}

void* fresh_pages(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  const size_t mapped = huge ? bytes + kHugePage : bytes;
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!huge) return raw;
  // Only whole aligned huge pages are kept.
  uint8_t* first = static_cast<uint8_t*>(raw);
  const uintptr_t aligned = (reinterpret_cast<uintptr_t>(raw) + kHugePage - 1) / kHugePage * kHugePage;
  uint8_t* start = first + (aligned - reinterpret_cast<uintptr_t>(raw));
  if (start != first) munmap(first, static_cast<size_t>(start - first));
  const size_t behind = mapped - static_cast<size_t>(start - first) - bytes;
  if (behind) munmap(start + bytes, behind);
#ifdef MADV_HUGEPAGE
  madvise(start, bytes, MADV_HUGEPAGE);  // advice: without it there are more page faults
#endif
  return start;
}

void free_pages(void* first, size_t bytes) { munmap(first, bytes); }

const uint8_t* map_file(const char* path, int64_t* size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  *size = fd < 0 ? -1 : regular_file_size(fd);
  void* data = *size > 0 ? mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (fd >= 0) close(fd);
  return data == MAP_FAILED ? nullptr : static_cast<const uint8_t*>(data);
}

void unmap_file(const uint8_t* data, size_t size) { munmap(const_cast<uint8_t*>(data), size); }

void forget_pages(const uint8_t* data, size_t bytes) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = begin / page * page, last = (begin + bytes) / page * page;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void* aligned_bytes(size_t bytes) {
  constexpr size_t kAligned = 64;
  void* first = nullptr;  // not aligned_alloc, which Android has from version 9 on
  const bool fits = bytes <= SIZE_MAX - kAligned;
  return fits && posix_memalign(&first, kAligned, bytes + 1) == 0 ? first : nullptr;
}
void free_aligned(void* bytes) { free(bytes); }

size_t physical_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<size_t>(pages) * page : 0;
}

}  // namespace lite
