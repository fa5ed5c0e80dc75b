// What the fuzz targets share: a file that holds the input, and a run of what was loaded.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lite_runtime.h"

// The input as a file, which readers open by name.
struct InputFile {
  int fd;
  char path[32];

  InputFile(const uint8_t* data, size_t size) : fd(memfd_create("input", 0)) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  }
  ~InputFile() { close(fd); }
};

inline lite_options small() {
  lite_options options{};
  options.threads = 1;
  options.memory_limit_bytes = 16 << 20;
  options.backend = 1;  // the CPU
  return options;
}

// Runs a program on inputs of 0x3c bytes (small floats) and frees it.
inline void run_program(lite_program* program) {
  if (!program) return;
  char error[256];
  for (int i = 0; i < lite_program_num_inputs(program); ++i) {
    lite_tensor_info info;
    const int tensor = lite_program_input(program, i);
    lite_program_tensor(program, tensor, &info);
    void* data = lite_program_data(program, tensor);
    if (data) memset(data, 0x3c, info.bytes);
  }
  const int last = lite_program_num_tensors(program) - 1;
  if (last >= 0) lite_program_tap(program, last, 1, error, sizeof error);
  if (lite_program_run(program, error, sizeof error) == 0) {
    // Every byte that a value is said to have can be read.
    volatile uint8_t seen = 0;
    for (int i = -1; i < lite_program_num_outputs(program); ++i) {
      lite_tensor_info info;
      const int tensor = i < 0 ? last : lite_program_output(program, i);
      if (lite_program_tensor(program, tensor, &info)) continue;
      const uint8_t* data = static_cast<const uint8_t*>(lite_program_data(program, tensor));
      for (size_t k = 0; data && k < info.bytes; ++k) seen = static_cast<uint8_t>(seen ^ data[k]);
    }
  }
  lite_program_free(program);
}
