// Input: a program (src/runtime/program.cc); its weights are ones of 64 KiB.
#include "bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kWeights = 32;
  constexpr size_t kBytes = 64 << 10;
  alignas(64) static uint8_t ones[kBytes];
  static const void* weights[kWeights];
  static size_t bytes[kWeights];
  if (!weights[0]) {
    memset(ones, 1, sizeof ones);
    for (int i = 0; i < kWeights; ++i) weights[i] = ones, bytes[i] = kBytes;
  }
  // A part for a device would open one for every input; tests/native/opencl has a fuzzer of it.
  if (size >= 4 && memcmp(data, "LCLP", 4) == 0) return 0;
  char error[256];
  const lite_options options = small();
  run_program(lite_program_load(data, size, weights, bytes, kWeights, &options, error, sizeof error));
  return 0;
}
