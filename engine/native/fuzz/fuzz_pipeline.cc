// Input: a pipeline's JSON, a zero byte, and the numbers that its models give (src/app/config.cc and the
// readings), about a small image.
#include "numbers.h"

namespace {

// 3 by 2 pixels.
const uint8_t kBmp[] = {'B', 'M', 78, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0,
                        1, 0, 24, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Numbers numbers;
  const size_t json = text_of(data, size, &numbers);
  char error[512];
  lite_app* app = lite_app_make(reinterpret_cast<const char*>(data), json, give, &numbers, error, sizeof error);
  if (!app) return 0;
  if (lite_app_run(app, kBmp, sizeof kBmp, error, sizeof error) == 0) {
    size_t bytes;
    if (!lite_app_answer(app, 1) || !lite_app_drawn(app, &bytes)) __builtin_trap();
  }
  lite_app_free(app);
  return 0;
}
