// A module has one linear memory, which only grows. Files are read where there are any: under WASI.
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace lite {

void* fresh_pages(size_t bytes) {
  void* first = aligned_alloc(4096, bytes);
  if (first) memset(first, 0, bytes);
  return first;
}

void free_pages(void* first, size_t) { free(first); }

const uint8_t* map_file(const char* path, int64_t* size) {
  *size = -1;
  FILE* file = fopen(path, "rb");
  if (!file) return nullptr;
  if (fseek(file, 0, SEEK_END) == 0) *size = ftell(file);
  const size_t bytes = *size > 0 ? static_cast<size_t>(*size) : 0;
  void* data = bytes ? aligned_bytes(bytes) : nullptr;
  if (data && (fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, bytes, file) != bytes)) {
    free(data);
    data = nullptr;
  }
  fclose(file);
  return static_cast<const uint8_t*>(data);
}

void unmap_file(const uint8_t* data, size_t) { free(const_cast<uint8_t*>(data)); }
void forget_pages(const uint8_t*, size_t) {}
void* aligned_bytes(size_t bytes) {
  constexpr size_t kAligned = 64;
  return bytes > SIZE_MAX - kAligned ? nullptr
                                     : aligned_alloc(kAligned, (bytes + kAligned) / kAligned * kAligned);
}
void free_aligned(void* bytes) { free(bytes); }

size_t physical_memory_bytes() { return 0; }

}  // namespace lite
