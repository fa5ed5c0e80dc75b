// Input: an image file (src/app/decode.cc: JPEG, PNG, BMP).
#include "lite_runtime.h"

#include <stddef.h>
#include <stdint.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char error[256];
  int32_t width = 0, height = 0;
  uint8_t* pixels = lite_image_decode(data, size, &width, &height, error, sizeof error);
  if (pixels && (width < 1 || height < 1)) __builtin_trap();
  lite_text_free(pixels);
  return 0;
}
