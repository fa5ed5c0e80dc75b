// Bytes of a file in order; nothing is read past their end.
#pragma once

#include <stdint.h>
#include <string.h>

namespace lite {

struct Reader {
  const uint8_t* next;
  size_t left;
  bool good;

  bool take(void* out, size_t bytes) {
    if (!good || bytes > left) return good = false;
    memcpy(out, next, bytes);
    next += bytes;
    left -= bytes;
    return true;
  }
  template <class T>
  T get() {
    T value{};
    take(&value, sizeof value);
    return value;
  }
  // True when `count` records of at least `each` bytes can still follow: bounds allocations.
  bool holds(uint64_t count, size_t each) { return good && count <= left / each; }
};

struct Strings {
  const char* text;
  uint32_t bytes;  // the last one is 0
  const char* at(uint32_t offset) const { return offset < bytes ? text + offset : nullptr; }
};

}  // namespace lite
