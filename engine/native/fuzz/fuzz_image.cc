// Input: an image file (src/app/decode.cc: JPEG, PNG, BMP), whose pixels are written as PNG and read
// again. One that says it has more than a million pixels is left out: the time of thousands of small
// images goes into it.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "app/image.h"
#include "lite_runtime.h"

namespace {

constexpr uint64_t kMostPixels = 1 << 20;

uint64_t big_endian(const uint8_t* p, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | p[i];
  return value;
}

uint64_t little_endian(const uint8_t* p) {
  int32_t value;
  memcpy(&value, p, 4);
  return static_cast<uint64_t>(value < 0 ? -static_cast<int64_t>(value) : value);
}

bool is_large(const uint8_t* data, size_t size) {
  if (size > 24 && memcmp(data, "\x89PNG", 4) == 0)
    return big_endian(data + 16, 4) * big_endian(data + 20, 4) > kMostPixels;
  if (size > 26 && memcmp(data, "BM", 2) == 0) return little_endian(data + 18) * little_endian(data + 22) > kMostPixels;
  for (size_t i = 0; i + 9 < size; ++i)  // a JPEG's frame: FF C0 to C2, u16 length, u8 bits, u16 height, u16 width
    if (data[i] == 0xFF && data[i + 1] >= 0xC0 && data[i + 1] <= 0xC2 &&
        big_endian(data + i + 5, 2) * big_endian(data + i + 7, 2) > kMostPixels)
      return true;
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (is_large(data, size)) return -1;  // not into the corpus
  char error[256];
  int32_t width = 0, height = 0;
  uint8_t* pixels = lite_image_decode(data, size, &width, &height, error, sizeof error);
  if (!pixels) return 0;
  const size_t bytes = static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
  lite::app::Image image, again;
  lite::app::Array<uint8_t> png;
  if (!image.make(width, height)) __builtin_trap();
  memcpy(image.pixels.data(), pixels, bytes);
  if (!lite::app::encode_png(image, &png) || lite::app::decode_image({png.data(), png.size()}, &again) ||
      again.width != width || again.height != height || memcmp(again.pixels.data(), pixels, bytes) != 0)
    __builtin_trap();
  lite_text_free(pixels);
  return 0;
}
