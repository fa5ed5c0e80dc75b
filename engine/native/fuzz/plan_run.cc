// plan_run: loads programs with an OpenCL part, one after the other, and runs those that are not
// refused. Built by the sanitized builds only, which stop at the first bad access.
//
//   plan_run PLANS WEIGHTS FIRST      PLANS: u32 size and bytes of each; WEIGHTS: u64 count, then u64
//                                     size and bytes of each; FIRST: the number of the first to load
//
// Prints a line for each: its number and refused, ran or failed, with the reason. One that runs for
// longer than kSeconds ends the process with status 3.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lite_runtime.h"
#include "opencl/executor.h"
#include "runtime/runtime.h"

namespace {

constexpr unsigned kSeconds = 60;

// Steps of every other program that the CPU takes over: more than any of them has.
bool left_rows[1 << 16];
constexpr int kLeft = 8, kWays = 4;  // and each of the ways that their steps have

void too_long(int) { _exit(3); }

// A whole file; ends the process where it cannot be read.
uint8_t* read_whole(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) exit(2);
  *size = static_cast<size_t>(ftell(file));
  rewind(file);
  uint8_t* data = static_cast<uint8_t*>(malloc(*size + 1));
  if (!data || fread(data, 1, *size, file) != *size) exit(2);
  fclose(file);
  return data;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  size_t plans_size, weights_size;
  uint8_t* plans = read_whole(argv[1], &plans_size);
  uint8_t* blobs = read_whole(argv[2], &weights_size);
  uint64_t count = 0;
  memcpy(&count, blobs, 8);
  void** weights = static_cast<void**>(calloc(count + 1, sizeof(void*)));
  size_t* bytes = static_cast<size_t*>(calloc(count + 1, sizeof(size_t)));
  const uint8_t* at = blobs + 8;
  for (uint64_t i = 0; i < count; ++i, at += bytes[i - 1]) {
    uint64_t size;
    memcpy(&size, at, 8);
    at += 8;
    bytes[i] = size;
    // Aligned, and reading past its end is seen.
    weights[i] = malloc(size ? size : 1);
    memcpy(weights[i], at, size);
  }
  lite_options options{};
  options.threads = 1;
  options.memory_limit_bytes = 64 << 20;
  signal(SIGALRM, too_long);
  const int first = atoi(argv[3]);
  const uint8_t* next = plans;
  lite::opencl::Device* device = nullptr;  // one for all: opening it takes longer than most runs
  for (int number = 0; next < plans + plans_size; ++number) {
    uint32_t size;
    memcpy(&size, next, 4);
    // A copy of exactly its size: reading past its end is seen.
    uint8_t* plan = static_cast<uint8_t*>(malloc(size ? size : 1));
    memcpy(plan, next + 4, size);
    next += 4 + size;
    char error[500] = "";
    const char* word = "skipped";
    if (number >= first) {
      printf("%d ", number);
      fflush(stdout);
      alarm(kSeconds);
      if (!device) device = lite::opencl::new_device(options, nullptr, error, sizeof error);
      if (!device) {
        puts(error);
        return 1;
      }
      memset(left_rows, 0, kLeft);
      left_rows[number / 2 % kLeft] = number % 2;
      const lite::opencl::Left left{left_rows, 1, "", "left", nullptr};
      const lite::opencl::Onto onto{device, size / 24 < sizeof left_rows ? &left : nullptr, false,
                                    number % kWays};
      lite_program* p = lite::load_program(plan, size, weights, bytes, count, {}, &onto, &options,
                                           error, sizeof error);
      if (p) device = nullptr;  // the program's from now on
      word = !p ? "refused" : lite_program_run(p, error, sizeof error) ? "failed" : "ran";
      if (p && p->opencl) device = lite::opencl::detach(p);
      lite_program_free(p);
      alarm(0);
      printf("%s %s\n", word, error);
    }
    free(plan);
  }
  if (device) lite::opencl::close_device(device);
  for (uint64_t i = 0; i < count; ++i) free(weights[i]);
  free(weights);
  free(bytes);
  free(plans);
  free(blobs);
}
