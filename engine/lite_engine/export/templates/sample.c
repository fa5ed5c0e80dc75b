/* Runs the model once: sample MODEL.lite [INPUT.raw [BACKEND]]
 * INPUT.raw holds the first input's bytes as they lie in memory; without it the input is zero.
 * BACKEND is auto, cpu or opencl. Prints the first values of every output, and what was chosen on standard
 * error. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lite_runtime.h"

static int failed(const char* what) {
  fprintf(stderr, "error: %s\n", what);
  return 1;
}

/* 0 with one line in `error`. */
static int fill(void* data, size_t bytes, const char* path, char* error, size_t error_bytes) {
  FILE* file = fopen(path, "rb");
  const size_t got = file ? fread(data, 1, bytes, file) : 0;
  const int all = file && got == bytes && fgetc(file) == EOF;
  const int read = file && !ferror(file);
  if (file) fclose(file);
  if (!read)
    snprintf(error, error_bytes, "%s cannot be read", path);
  else if (!all)
    snprintf(error, error_bytes, "%s: %zu bytes are needed", path, bytes);
  return read && all;
}

/* One value of any type, by its number in lite_tensor_info; 16-bit floats as their bits. */
static void print_value(int dtype, const void* data, size_t k) {
  switch (dtype) {
    case 1: printf(" %.6g", ((const float*)data)[k]); break;
    case 4: printf(" %.6g", ((const double*)data)[k]); break;
    case 5: printf(" %d", ((const int8_t*)data)[k]); break;
    case 7: printf(" %d", ((const int16_t*)data)[k]); break;
    case 2: /* fp16 */
    case 3: /* bf16 */
    case 8: printf(" %d", ((const uint16_t*)data)[k]); break;
    case 9: printf(" %ld", (long)((const int32_t*)data)[k]); break;
    case 10: printf(" %lu", (unsigned long)((const uint32_t*)data)[k]); break;
    case 11: printf(" %lld", (long long)((const int64_t*)data)[k]); break;
    case 12: printf(" %llu", (unsigned long long)((const uint64_t*)data)[k]); break;
    default: printf(" %d", ((const uint8_t*)data)[k]); /* 6 u8, 13 bool */
  }
}

static void print_output(lite_program* program, int i) {
  lite_tensor_info info;
  const int tensor = lite_program_output(program, i);
  lite_program_tensor(program, tensor, &info);
  printf("%s:", info.name);
  size_t count = 1; /* outputs are dense */
  for (int d = 0; d < info.rank; ++d) count *= (size_t)info.dims[d];
  const void* data = lite_program_data(program, tensor);
  for (size_t k = 0; k < count && k < 10; ++k) print_value(info.dtype, data, k);
  printf("\n");
}

int main(int argc, char** argv) {
  char error[512] = "";
  if (argc < 2 || argc > 4) return failed("usage: sample MODEL.lite [INPUT.raw [BACKEND]]");
  lite_options options = {0};
  if (argc > 3)
    while (lite_backend_name(options.backend) && strcmp(argv[3], lite_backend_name(options.backend)))
      ++options.backend;
  lite_file* file = lite_file_open(argv[1], error, sizeof error);
  if (!file) return failed(error);
  int code = 1;
  lite_program* program = lite_file_program(file, NULL, &options, error, sizeof error);
  if (program) {
    lite_tensor_info info;
    const int input = lite_program_input(program, 0);
    lite_program_tensor(program, input, &info);
    void* data = lite_program_data(program, input);
    memset(data, 0, info.bytes);
    const int filled = argc < 3 || fill(data, info.bytes, argv[2], error, sizeof error);
    if (filled && lite_program_run(program, error, sizeof error) == 0) {
      for (int i = 0; i < lite_program_num_outputs(program); ++i) print_output(program, i);
      fprintf(stderr, "%s\n", lite_program_choice(program));
      code = 0;
    }
  }
  if (code) failed(error);
  lite_program_free(program);
  lite_file_close(file);
  return code;
}
