// Input: a pipeline's JSON, a zero byte, and the numbers that its models give (src/app/config.cc and the
// readings), about a small image.
#include "lite_runtime.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace {

struct Numbers {
  const uint8_t* data;
  size_t size, at;
  float room[LITE_APP_MAX_OUTPUTS][4096];
  uint8_t next() { return at < size ? data[at++] : 0; }
};

// As many outputs as the input says, of ranks and dims that it says.
int give(void* user, int, const lite_array*, lite_array* outputs, char*, size_t) {
  Numbers* n = static_cast<Numbers*>(user);
  const int count = 1 + n->next() % 4;
  for (int i = 0; i < count; ++i) {
    lite_array& out = outputs[i];
    out = {1, 1 + n->next() % 4, {}, n->room[i], 4};
    size_t total = 1;
    for (int k = 0; k < out.rank; ++k) {
      out.dims[k] = n->next() % 65;
      if (total * static_cast<size_t>(out.dims[k]) > 4096) out.dims[k] = 1;
      total *= static_cast<size_t>(out.dims[k]);
    }
    out.bytes = total * 4;
    for (size_t k = 0; k < total; ++k)
      n->room[i][k] = static_cast<float>(static_cast<int8_t>(n->next())) / 64.f;
  }
  return count;
}

// 3 by 2 pixels.
const uint8_t kBmp[] = {'B', 'M', 78, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0,
                        1, 0, 24, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                        1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const void* zero = size ? memchr(data, 0, size) : nullptr;
  const size_t json = zero ? static_cast<size_t>(static_cast<const uint8_t*>(zero) - data) : size;
  static Numbers numbers;
  numbers.data = data;
  numbers.size = size;
  numbers.at = json < size ? json + 1 : size;
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
