// Damages the OpenCL part of a program again and again and reads what is left, up to where a device
// would be needed: tables, the program inside, option lines, arguments, packed weights.
//
//   plan_fuzz PLAN WEIGHTS SEED COUNT      WEIGHTS: u64 count, then u64 size and bytes of each
//
// The same seed gives the same damages. Prints how many were refused and how many were read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_plan_reads.h"
#include "opencl/text.h"
#include "random.h"

using namespace lite::opencl;

const char* lite_version() { return "test"; }
const char* lite_target() { return "test"; }

namespace {

lite::Random dice(0);

const uint32_t kEdges[] = {0, 1, 2, 7, 64, 255, 4096, 65536, INT32_MAX, 1u << 31, UINT32_MAX};

void damage(uint8_t* data, size_t* size) {
  for (size_t times = 1 + dice.below(3); times; --times) {
    if (*size < 16) return;
    uint8_t* at = data + dice.below(*size - 4);
    switch (dice.below(6)) {
      case 0: *at ^= 1u << dice.below(8); break;
      case 1: *at = static_cast<uint8_t>(dice.next()); break;
      case 2: memcpy(at, &kEdges[dice.below(sizeof kEdges / 4)], 4); break;
      case 3: *at += 1; break;
      case 4: memmove(at, data + dice.below(*size - 4), 4); break;
      case 5:
        if (dice.below(8) == 0) *size = dice.below(*size);
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Text plan, file;
  const char* reason = nullptr;
  if (!read_whole(argv[1], &plan, &reason) || !read_whole(argv[2], &file, &reason)) return 1;
  const uint8_t* at = reinterpret_cast<const uint8_t*>(file.data);
  uint64_t count = 0;
  memcpy(&count, at, 8);
  at += 8;
  const void** weights = static_cast<const void**>(calloc(count + 1, sizeof(void*)));
  size_t* bytes = static_cast<size_t*>(calloc(count + 1, sizeof(size_t)));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size;
    memcpy(&size, at, 8);
    weights[i] = at + 8;
    bytes[i] = size;
    at += 8 + size;
  }
  const uint8_t* whole = reinterpret_cast<const uint8_t*>(plan.data);
  char error[400] = "";
  const bool good = reads(whole, plan.size, {weights, bytes, count}, error);
  if (!good) printf("%s\n", error);
  dice = lite::Random(strtoull(argv[3], nullptr, 10) * 2654435761u + 88172645463325252ull);
  int refused = 0, read = 0;
  for (int n = good ? atoi(argv[4]) : 0; n; --n) {
    size_t size = plan.size;
    uint8_t* copy = static_cast<uint8_t*>(malloc(size));
    memcpy(copy, whole, size);
    damage(copy, &size);
    // A copy of exactly its size: reading past its end is seen.
    copy = static_cast<uint8_t*>(realloc(copy, size ? size : 1));
    ++(reads(copy, size, {weights, bytes, count}, error) ? read : refused);
    free(copy);
  }
  if (good) printf("%d refused, %d read\n", refused, read);
  free(weights);
  free(bytes);
  plan.release();
  file.release();
  return good ? 0 : 1;
}
