// Input: the OpenCL part of a program (src/opencl/device_plan.cc), read up to where a device would be
// needed. Before it stand the sizes of its weights, whose bytes are ones: u8 count, u32 for each.
#include "bytes.h"
#include "device_plan_reads.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kWeights = 256, kBytes = 64 << 10;
  alignas(64) static uint8_t ones[kBytes];
  static const void* weights[kWeights];
  static size_t bytes[kWeights];
  if (!weights[0]) {
    memset(ones, 1, sizeof ones);
    for (const void*& weight : weights) weight = ones;
  }
  const size_t count = size ? data[0] : 0, head = 1 + 4 * count;
  if (size < head) return 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t said;
    memcpy(&said, data + 1 + 4 * i, 4);
    bytes[i] = said < kBytes ? said : kBytes;
  }
  // Bytes of exactly its size: reading past its end is seen.
  uint8_t* plan = static_cast<uint8_t*>(malloc(size - head));
  if (size > head) memcpy(plan, data + head, size - head);
  char error[400] = "";
  reads(plan, size - head, {weights, bytes, count}, error);
  free(plan);
  return 0;
}
