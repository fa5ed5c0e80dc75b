// Input: an image file (src/app/decode.cc: JPEG, PNG, BMP), whose pixels are written as PNG and read
// again. Large ones are left out.
#include "app/image.h"
#include "large_image.h"
#include "lite_runtime.h"

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
