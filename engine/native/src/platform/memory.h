// Pages and mapped files of the operating system. One of memory_*.cc is built.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite {

// Fresh pages of zeros; `bytes` is a multiple of 4096. From 2 MiB on they lie on huge pages where the
// system has such. nullptr when there is no memory.
void* fresh_pages(size_t bytes);
void free_pages(void* first, size_t bytes);

// A regular file's bytes, read-only; `path` is UTF-8. Its pages come from the file when they are read.
// nullptr when it cannot be opened (*size is -1 then) or mapped (*size is what the file has). A file of
// no bytes gives nullptr and 0.
const uint8_t* map_file(const char* path, int64_t* size);
void unmap_file(const uint8_t* data, size_t size);
// Bytes of a mapped file that will not be read soon: they may leave memory.
void forget_pages(const uint8_t* first, size_t bytes);

// Bytes that begin at a multiple of 64; nullptr when there is no memory.
void* aligned_bytes(size_t bytes);
void free_aligned(void* bytes);

// 0 where that is not known.
size_t physical_memory_bytes();

}  // namespace lite
