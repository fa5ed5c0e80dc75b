// Input: a .npy file (src/runner/lite_run_npy.cc), read as float32 and as int64.
#include "bytes.h"
#include "runner/lite_run_npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile input(data, size);
  const int dtypes[] = {1, 11};  // float32, int64
  for (const int dtype : dtypes) {
    lite_tensor_info info{};
    info.name = "x";
    info.dtype = dtype;
    info.rank = 2;
    info.dims[0] = 2;
    info.dims[1] = 3;
    info.bytes = 6 * (dtype == 1 ? 4 : 8);
    uint8_t out[48];
    char error[256];
    read_input(input.path, info, out, error, sizeof error);
  }
  return 0;
}
