// The .lite container, version 1 (written by lite_engine/model_file). Little-endian, memory-mapped.
//
//   header    char magic[8] = "LITE\r\n\x1a\n"; u32 version; u32 section_count
//   table     section_count times: char tag[8] (padded with zeros), u64 offset, u64 size,
//             u32 crc32 (of the bytes as they lie there, zlib's polynomial), u32 flags (1: a zlib
//             stream)
//   sections  each at a multiple of 64 bytes from the file's start, zero bytes between them; rows
//             of equal sections share one
//
// Sections: NEEDS (text, lines "engine 0.1.0" and "arm neon": the oldest runtime and the CPU
// features that a target's program needs); GRAPH, META (JSON); WEIGHTS (the blobs, each at a multiple
// of 64 bytes); WINDEX (per weight: u64 offset into WEIGHTS, u64 size); WDERIVE (weights kept as
// integers, lite_derived.h); PROG.x86, PROG.arm, PROG.web (programs, see program.cc, whose weight
// numbers are rows of WINDEX); HALF.x86, HALF.arm (the program for CPUs with bf16 or fp16 arithmetic); OCL.0,
// OCL.1, ... (programs for kinds of OpenCL devices, lite_engine/backends/opencl/native_plan.py); SIZE.0, SIZE.1, ...
// (files with programs for other input sizes, which use the weights of this one). PROG and OCL stand
// in the file's order of preference. Unknown sections are skipped: newer writers may add some.
// What a reader refuses is said once, in model_file/_container.py; test_lite_limits.py holds both
// readers to it.
#include "crc32.h"
#include "lite_derived.h"
#include "lite_file.h"
#include "platform/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using namespace lite;

namespace {

constexpr uint32_t kVersion = 1, kCompressed = 1;
constexpr char kMagic[8] = {'L', 'I', 'T', 'E', '\r', '\n', 0x1a, '\n'};

static_assert(sizeof(Section) == 32, "the table is read as it lies in the file");

void fail(char* error, size_t bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));
void fail(char* error, size_t bytes, const char* format, ...) {
  if (!error || !bytes) return;
  va_list args;
  va_start(args, format);
  vsnprintf(error, bytes, format, args);
  va_end(args);
}

const Section* find(const lite_file* file, const char* tag) {
  char padded[8] = {};
  memcpy(padded, tag, strnlen(tag, 8));
  for (uint32_t i = 0; i < file->count; ++i)
    if (memcmp(file->sections[i].tag, padded, 8) == 0) return &file->sections[i];
  return nullptr;
}

bool map(lite_file* file, const char* path, char* error, size_t bytes) {
  int64_t size;
  file->data = lite::map_file(path, &size);
  file->mapped = file->data != nullptr;
  if (size < 0) {
    fail(error, bytes, "%s: cannot be read", path);
    return false;
  }
  file->size = static_cast<size_t>(size);
  if (!file->data && size) fail(error, bytes, "%s: cannot be mapped into memory", path);
  return file->data || !size;
}

bool read_table(lite_file* file, const char* path, char* error, size_t bytes) {
  if (file->size < 16) {
    fail(error, bytes, "%s: not a .lite file (%zu bytes)", path, file->size);
    return false;
  }
  uint32_t version;
  memcpy(&version, file->data + 8, 4);
  memcpy(&file->count, file->data + 12, 4);
  if (memcmp(file->data, kMagic, 8) != 0) {
    fail(error, bytes, "%s: not a .lite file (wrong magic)", path);
    return false;
  }
  if (version != kVersion) {
    fail(error, bytes, "%s: .lite version %u, this runtime reads %u; convert the model again", path,
         version, kVersion);
    return false;
  }
  const size_t table_end = 16 + size_t{file->count} * sizeof(Section);
  if (file->count > kMaxSections || table_end > file->size) {
    fail(error, bytes, "%s: section table is damaged", path);
    file->count = 0;
    return false;
  }
  memcpy(file->sections, file->data + 16, file->count * sizeof(Section));
  for (uint32_t i = 0; i < file->count; ++i) {
    const Section& s = file->sections[i];
    char tag[9] = {};
    memcpy(tag, s.tag, 8);
    for (uint32_t j = 0; j < i; ++j) {
      if (memcmp(file->sections[j].tag, s.tag, sizeof s.tag) == 0) {
        fail(error, bytes, "%s: section %u has the name of an earlier one", path, i);
        return false;
      }
    }
    if (s.flags & ~kCompressed) {
      fail(error, bytes, "%s: section %u is stored in a newer way; convert the model again", path, i);
      return false;
    }
    const bool text = memcmp(s.tag, "META\0\0\0", 8) == 0 || memcmp(s.tag, "GRAPH\0\0", 8) == 0 ||
                      memcmp(s.tag, "GRAPH.", 6) == 0;
    if (s.flags && !text) {
      fail(error, bytes, "%s: section %u is compressed, which only text may be", path, i);
      return false;
    }
    if (s.offset % 64 || s.offset < table_end || s.offset > file->size ||
        s.size > file->size - s.offset) {
      fail(error, bytes, "%s: section %u lies outside the file", path, i);
      return false;
    }
    if (lite::crc32(file->data + s.offset, s.size) != s.crc) {
      fail(error, bytes, "%s: section %u is damaged (checksum); copy or convert the file again",
           path, i);
      return false;
    }
    const bool device = strncmp(tag, "OCL.", 4) == 0;
    if (device && strstr(file->targets, "opencl")) continue;
    if (device || strncmp(tag, "PROG.", 5) == 0) {
      if (file->targets[0]) strcat(file->targets, " ");
      strcat(file->targets, device ? "opencl" : lite::target_word(tag + 5));
    }
  }
  return true;
}

bool read_weights(lite_file* file, const char* path, char* error, size_t bytes) {
  const Section* index = find(file, "WINDEX");
  const Section* blobs = find(file, "WEIGHTS");
  file->num_weights = index ? index->size / 16 : 0;
  file->weights = static_cast<const void**>(calloc(file->num_weights + 1, sizeof(void*)));
  file->weight_bytes = static_cast<size_t*>(calloc(file->num_weights + 1, sizeof(size_t)));
  if (!file->weights || !file->weight_bytes) {
    fail(error, bytes, "%s: out of memory", path);
    return false;
  }
  for (size_t i = 0; i < file->num_weights; ++i) {
    uint64_t row[2];
    memcpy(row, file->data + index->offset + 16 * i, 16);
    if (!blobs || row[0] > blobs->size || row[1] > blobs->size - row[0] || row[0] % 64) {
      fail(error, bytes, "%s: weight %zu lies outside its section", path, i);
      return false;
    }
    file->weights[i] = file->data + blobs->offset + row[0];
    file->weight_bytes[i] = row[1];
  }
  const Section* rows = find(file, "WDERIVE");
  if (!rows) return true;
  file->derived = static_cast<void**>(calloc(file->num_weights + 1, sizeof(void*)));
  char reason[128] = "out of memory";
  if (!file->derived ||
      !lite::derive_weights(file->data + rows->offset, rows->size, file->weights,
                            file->weight_bytes, file->num_weights, file->derived, reason,
                            sizeof reason)) {
    fail(error, bytes, "%s: %s", path, reason);
    return false;
  }
  return true;
}

bool read(lite_file* file, const char* path, char* error, size_t bytes) {
  return read_table(file, path, error, bytes) && read_weights(file, path, error, bytes);
}

// A copy of what comes before a path's last '/', "." without one; nullptr without memory.
char* folder_of(const char* path) {
  const char* slash = strrchr(path, '/');
  char* folder = strdup(slash ? path : ".");
  if (folder && slash) folder[slash == path ? 1 : slash - path] = 0;
  return folder;
}

}  // namespace

lite_file* lite::open_part(const lite_file* around, const char* tag, char* error, size_t bytes) {
  size_t size;
  const void* data = lite_file_section(around, tag, &size);
  if (!data || size < 16) {
    fail(error, bytes, "section %.8s is missing", tag);
    return nullptr;
  }
  lite_file* file = static_cast<lite_file*>(calloc(1, sizeof(lite_file)));
  if (!file) {
    fail(error, bytes, "out of memory");
    return nullptr;
  }
  file->data = static_cast<const uint8_t*>(data);
  file->size = size;
  file->mapped = around->mapped;
  file->part = true;
  file->folder = around->folder ? strdup(around->folder) : nullptr;
  if (read_table(file, tag, error, bytes)) {
    if (!find(file, "WINDEX") && around->weights) {
      file->borrowed = true;
      file->weights = around->weights;
      file->weight_bytes = around->weight_bytes;
      file->num_weights = around->num_weights;
      return file;
    }
    if (read_weights(file, tag, error, bytes)) return file;
  }
  lite_file_close(file);
  return nullptr;
}

extern "C" {

lite_file* lite_file_open(const char* path, char* error, size_t error_bytes) {
  lite_file* file = static_cast<lite_file*>(calloc(1, sizeof(lite_file)));
  if (!file) fail(error, error_bytes, "out of memory");
  if (file) file->folder = folder_of(path);
  if (!file || (map(file, path, error, error_bytes) && read(file, path, error, error_bytes)))
    return file;
  lite_file_close(file);
  return nullptr;
}

lite_file* lite_file_open_bytes(const void* data, size_t size, char* error, size_t error_bytes) {
  lite_file* file = static_cast<lite_file*>(calloc(1, sizeof(lite_file)));
  if (!file) {
    fail(error, error_bytes, "out of memory");
    return nullptr;
  }
  file->data = static_cast<const uint8_t*>(data);
  file->size = size;
  if (reinterpret_cast<uintptr_t>(data) % 64 == 0) {
    if (read(file, "model", error, error_bytes)) return file;
  } else {
    fail(error, error_bytes, "model: its bytes must begin at a multiple of 64");
  }
  lite_file_close(file);
  return nullptr;
}

void lite_file_close(lite_file* file) {
  if (!file) return;
  if (file->mapped && !file->part) lite::unmap_file(file->data, file->size);
  for (size_t i = 0; file->derived && i < file->num_weights; ++i) lite::free_aligned(file->derived[i]);
  free(file->derived);
  if (!file->borrowed) {
    free(file->weights);
    free(file->weight_bytes);
  }
  free(file->folder);
  free(file);
}

const char* lite_file_targets(const lite_file* file) { return file->targets; }

const void* lite_file_section(const lite_file* file, const char* tag, size_t* bytes) {
  const Section* section = strlen(tag) <= 8 ? find(file, tag) : nullptr;
  if (bytes) *bytes = section ? section->size : 0;
  return section ? file->data + section->offset : nullptr;
}

}  // extern "C"
