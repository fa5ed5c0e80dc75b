// Image files that say that they have more than a million pixels: the time of thousands of small ones goes into one.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

constexpr uint64_t kMostPixels = 1 << 20;

inline uint64_t big_endian(const uint8_t* p, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | p[i];
  return value;
}

inline uint64_t little_endian(const uint8_t* p) {
  int32_t value;
  memcpy(&value, p, 4);
  return static_cast<uint64_t>(value < 0 ? -static_cast<int64_t>(value) : value);
}

inline bool is_large(const uint8_t* data, size_t size) {
  if (size > 24 && memcmp(data, "\x89PNG", 4) == 0)
    return big_endian(data + 16, 4) * big_endian(data + 20, 4) > kMostPixels;
  if (size > 26 && memcmp(data, "BM", 2) == 0) return little_endian(data + 18) * little_endian(data + 22) > kMostPixels;
  for (size_t i = 0; i + 9 < size; ++i)  // a JPEG's frame: FF C0 to C2, u16 length, u8 bits, u16 height, u16 width
    if (data[i] == 0xFF && data[i + 1] >= 0xC0 && data[i + 1] <= 0xC2 &&
        big_endian(data + i + 5, 2) * big_endian(data + i + 7, 2) > kMostPixels)
      return true;
  return false;
}
