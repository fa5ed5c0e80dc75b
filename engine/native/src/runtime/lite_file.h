// An open .lite file.
#pragma once

#include "runtime.h"

namespace lite {

constexpr uint32_t kMaxSections = 64;

struct Section {
  char tag[8];
  uint64_t offset, size;
  uint32_t crc, flags;
};

// The file in a section of another one, which must stay open longer. One without weights, which has programs for
// another size, uses those of the file around it. Null with one line in `error`.
lite_file* open_part(const lite_file* around, const char* tag, char* error, size_t error_bytes);

}  // namespace lite

struct lite_file {
  const uint8_t* data;
  size_t size;
  bool mapped;  // from a file, whose pages may leave memory; otherwise the bytes are the caller's
  bool part;    // of another file, which has mapped it
  uint32_t count;
  lite::Section sections[lite::kMaxSections];
  char* folder;  // where it lies, nullptr: in memory
  char targets[8 * lite::kMaxSections + 8];
  const void** weights;
  size_t* weight_bytes;
  size_t num_weights;
  bool borrowed;                 // weights are those of the file around a part
  void** derived;                // buffers of weights made from integers, see lite_derived.h
};

namespace lite {

// A tag has eight bytes: the program for "wasm" is PROG.web.
inline const char* section_word(const char* target) {
  return strcmp(target, "wasm") == 0 ? "web" : target;
}
inline const char* target_word(const char* section) {
  return strcmp(section, "web") == 0 ? "wasm" : section;
}

// The caller's own bytes are not there to be dropped.
inline Mapping mapping_of(const lite_file& file) {
  return file.mapped ? Mapping{file.data, file.size} : Mapping{};
}

}  // namespace lite
