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
// integers, lite_derived.h); PROG.x86, PROG.arm (programs, see program.cc, whose weight numbers are
// rows of WINDEX); HALF.x86, HALF.arm (the program for CPUs with bf16 or fp16 arithmetic). Unknown
// sections are skipped: newer writers may add some.
// What a reader refuses is said once, in model_file/_container.py; test_lite_limits.py holds both
// readers to it.
#include "crc32.h"
#include "dispatch.h"
#include "lite_derived.h"
#include "runtime.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr uint32_t kVersion = 1, kMaxSections = 64, kCompressed = 1;
constexpr char kMagic[8] = {'L', 'I', 'T', 'E', '\r', '\n', 0x1a, '\n'};

struct Section {
  char tag[8];
  uint64_t offset, size;
  uint32_t crc, flags;
};
static_assert(sizeof(Section) == 32, "the table is read as it lies in the file");

}  // namespace

struct lite_file {
  const uint8_t* data;
  size_t size;
  uint32_t count;
  Section sections[kMaxSections];
  char targets[8 * kMaxSections];
  const void** weights;
  size_t* weight_bytes;
  size_t num_weights;
  void** derived;                // buffers of weights made from integers, see lite_derived.h
};

namespace {

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

bool map_file(lite_file* file, const char* path, char* error, size_t bytes) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    fail(error, bytes, "%s: cannot be read", path);
    if (fd >= 0) close(fd);
    return false;
  }
  if (info.st_size < 16) {
    fail(error, bytes, "%s: not a .lite file (%lld bytes)", path,
         static_cast<long long>(info.st_size));
    close(fd);
    return false;
  }
  void* data = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (data == MAP_FAILED) {
    fail(error, bytes, "%s: cannot be mapped into memory", path);
    return false;
  }
  file->data = static_cast<const uint8_t*>(data);
  file->size = info.st_size;
  return true;
}

bool read_table(lite_file* file, const char* path, char* error, size_t bytes) {
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
    if (strncmp(tag, "PROG.", 5) == 0) {
      if (file->targets[0]) strcat(file->targets, " ");
      strcat(file->targets, tag + 5);
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

// "0.12.3" as one comparable number; what follows a part's digits is left out.
long version_number(const char* text) {
  long number = 0;
  for (int part = 0; part < 3; ++part) {
    char* end;
    const long value = strtol(text, &end, 10);
    number = number * 1000 + (value < 0 ? 0 : value > 999 ? 999 : value);
    text = strchr(end, '.');
    text = text ? text + 1 : "";
  }
  return number;
}

bool has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = strstr(list, word); at; at = strstr(at + 1, word))
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return true;
  return false;
}

// Compares NEEDS with this runtime and this processor.
bool meets_needs(const lite_file* file, const char* target, char* error, size_t bytes) {
  const Section* section = find(file, "NEEDS");
  if (!section) return true;
  char text[1024];
  const size_t size = section->size < sizeof text - 1 ? section->size : sizeof text - 1;
  memcpy(text, file->data + section->offset, size);
  text[size] = 0;
  char* rest;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* words;
    const char* key = strtok_r(line, " ", &words);
    if (!key) continue;
    for (char* word = strtok_r(nullptr, " ", &words); word; word = strtok_r(nullptr, " ", &words)) {
      if (strcmp(key, "engine") == 0 && version_number(word) > version_number(lite_version())) {
        fail(error, bytes, "the file needs runtime %s or newer, this is %s; use a newer lite_run",
             word, lite_version());
        return false;
      }
      if (strcmp(key, target) == 0 && !has_word(lite_cpu_features(), word)) {
        fail(error, bytes, "the file needs a CPU with %s, this one has: %s", word,
             lite_cpu_features());
        return false;
      }
    }
  }
  return true;
}

}  // namespace

extern "C" {

lite_file* lite_file_open(const char* path, char* error, size_t error_bytes) {
  lite_file* file = static_cast<lite_file*>(calloc(1, sizeof(lite_file)));
  if (!file) {
    fail(error, error_bytes, "out of memory");
    return nullptr;
  }
  if (!map_file(file, path, error, error_bytes) || !read_table(file, path, error, error_bytes) ||
      !read_weights(file, path, error, error_bytes)) {
    lite_file_close(file);
    return nullptr;
  }
  return file;
}

void lite_file_close(lite_file* file) {
  if (!file) return;
  if (file->data) munmap(const_cast<uint8_t*>(file->data), file->size);
  for (size_t i = 0; file->derived && i < file->num_weights; ++i) free(file->derived[i]);
  free(file->derived);
  free(file->weights);
  free(file->weight_bytes);
  free(file);
}

const char* lite_file_targets(const lite_file* file) { return file->targets; }

const void* lite_file_section(const lite_file* file, const char* tag, size_t* bytes) {
  const Section* section = strlen(tag) <= 8 ? find(file, tag) : nullptr;
  if (bytes) *bytes = section ? section->size : 0;
  return section ? file->data + section->offset : nullptr;
}

lite_program* lite_file_program(lite_file* file, const char* target, const lite_options* options,
                                char* error, size_t error_bytes) {
  if (!target) target = lite_target();
  char tag[16];
  snprintf(tag, sizeof tag, "PROG.%s", target);
  if (strcmp(target, lite_target()) != 0) {
    fail(error, error_bytes, "this runner executes target '%s', not '%s'; use the %s runner",
         lite_target(), target, target);
    return nullptr;
  }
  size_t bytes;
  const void* program = lite_file_section(file, tag, &bytes);
  if (!program) {
    fail(error, error_bytes,
         "the file has no program for '%s' (it has: %s); convert it with --targets %s", target,
         file->targets[0] ? file->targets : "none", target);
    return nullptr;
  }
  if (!meets_needs(file, target, error, error_bytes)) return nullptr;
  snprintf(tag, sizeof tag, "HALF.%s", target);
  lite::CpuFeatures cpu;
  if (find(file, tag) && lite::detect_cpu(options ? options->max_isa : nullptr, &cpu) &&
      (cpu.fp16 || cpu.avx512bf16))
    program = lite_file_section(file, tag, &bytes);
  return lite::load_program(program, bytes, file->weights, file->weight_bytes, file->num_weights,
                            {file->data, file->size}, options, error, error_bytes);
}

}  // extern "C"
