#include "memory.h"

#include <malloc.h>
#include <windows.h>

#include "wide_path.h"

namespace lite {

void* fresh_pages(size_t bytes) {
  return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void free_pages(void* first, size_t) { VirtualFree(first, 0, MEM_RELEASE); }

const uint8_t* map_file(const char* path, int64_t* size) {
  *size = -1;
  const WidePath wide(path);
  const DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  HANDLE file = wide.text ? CreateFileW(wide.text, GENERIC_READ, shared, nullptr, OPEN_EXISTING,
                                        FILE_ATTRIBUTE_NORMAL, nullptr)
                          : INVALID_HANDLE_VALUE;
  if (file == INVALID_HANDLE_VALUE) return nullptr;
  LARGE_INTEGER have;
  if (GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &have)) *size = have.QuadPart;
  HANDLE mapping = *size > 0 ? CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr) : nullptr;
  const void* data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : nullptr;
  if (mapping) CloseHandle(mapping);  // the view holds it
  CloseHandle(file);
  return static_cast<const uint8_t*>(data);
}

void unmap_file(const uint8_t* data, size_t) { UnmapViewOfFile(data); }

// The pages of a view leave memory by themselves when it becomes scarce.
void forget_pages(const uint8_t*, size_t) {}

void* aligned_bytes(size_t bytes) { return _aligned_malloc(bytes ? bytes : 1, 64); }
void free_aligned(void* bytes) { _aligned_free(bytes); }

size_t physical_memory_bytes() {
  MEMORYSTATUSEX status;
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? static_cast<size_t>(status.ullTotalPhys) : 0;
}

}  // namespace lite
