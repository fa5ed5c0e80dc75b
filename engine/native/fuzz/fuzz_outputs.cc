// Input: an adapter's JSON as lite_outputs_read takes it, a zero byte, and the numbers that are read.
#include "numbers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Numbers numbers;
  const size_t json = text_of(data, size, &numbers);
  lite_array outputs[LITE_APP_MAX_OUTPUTS];
  const int count = give(&numbers, 0, nullptr, outputs, nullptr, 0);
  char error[512];
  char* text = lite_outputs_read(reinterpret_cast<const char*>(data), json, outputs, count, error, sizeof error);
  if (text && text[0] != '{') __builtin_trap();
  lite_text_free(text);
  return 0;
}
