// Input: a .npy file (src/runner/lite_run_npy.cc), read as float32 and as int64. What was read is
// written and read again, with the same bytes.
#include "bytes.h"
#include "runner/lite_run_npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile input(data, size), again(nullptr, 0);
  const int dtypes[] = {1, 11};  // float32, int64
  char error[256];
  if (read_input("/proc/self/fd/none", {}, nullptr, error, sizeof error)) __builtin_trap();
  for (const int dtype : dtypes) {
    lite_tensor_info info{};
    info.name = "x";
    info.dtype = dtype;
    info.rank = 2;
    info.dims[0] = 2;
    info.dims[1] = 3;
    info.bytes = 6 * (dtype == 1 ? 4 : 8);
    uint8_t out[48], second[48];
    if (!read_input(input.path, info, out, error, sizeof error)) continue;
    if (!write_npy(again.path, info, out, error, sizeof error) ||
        !read_input(again.path, info, second, error, sizeof error) || memcmp(out, second, info.bytes) != 0 ||
        !*dtype_text(dtype))
      __builtin_trap();
  }
  return 0;
}
