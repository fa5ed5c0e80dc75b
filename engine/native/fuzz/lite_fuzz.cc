// lite_fuzz: damages a .lite file and its program again and again and runs what still loads. Built
// by the sanitized builds only, which stop at the first bad access.
//
//   lite_fuzz model.lite SCRATCH_FILE SEED MILLISECONDS
//
// The same seed gives the same damages. Prints how many were refused and how many ran.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lite_runtime.h"
#include "random.h"

namespace {

constexpr size_t kMaxBytes = 1 << 22;
constexpr int kMaxWeights = 4096;

lite::Random dice(0);

// Of its own: a busy machine tries no less.
int64_t now_ms() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

struct Bytes {
  uint8_t* data;
  size_t size;
};

// Numbers at which checks go wrong.
const int64_t kEdges[] = {0,         1,         -1,        2,         7,         64,
                          255,       4096,      65536,     INT32_MAX, INT32_MIN, 1ll << 32,
                          1ll << 40, 1ll << 44, INT64_MAX, INT64_MIN};

void damage(Bytes* b) {
  for (size_t times = 1 + dice.below(3); times; --times) {
    if (b->size < 16) return;
    const int64_t edge = kEdges[dice.below(sizeof kEdges / sizeof kEdges[0])];
    switch (dice.below(7)) {
      case 0: b->data[dice.below(b->size)] ^= 1u << dice.below(8); break;
      case 1: b->data[dice.below(b->size)] = static_cast<uint8_t>(dice.next()); break;
      case 2: memcpy(b->data + dice.below(b->size - 4) / 4 * 4, &edge, 4); break;
      case 3: memcpy(b->data + dice.below(b->size - 8) / 4 * 4, &edge, 8); break;
      case 4: b->data[dice.below(b->size)] += static_cast<uint8_t>(1 + dice.below(3)); break;
      case 5: {  // one word becomes another of the file: ids, offsets and sizes change places
        uint32_t word;
        memcpy(&word, b->data + dice.below(b->size - 4) / 4 * 4, 4);
        memcpy(b->data + dice.below(b->size - 4) / 4 * 4, &word, 4);
        break;
      }
      case 6:
        if (dice.below(8) == 0) b->size = dice.below(b->size);
        break;
    }
  }
}

Bytes read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  Bytes b{static_cast<uint8_t*>(malloc(kMaxBytes)), 0};
  if (file && b.data) b.size = fread(b.data, 1, kMaxBytes, file);
  if (file) fclose(file);
  return b;
}

int refused, ran;
volatile uint8_t seen;

// Every byte that a tensor is said to have can be read.
void look(lite_program* program, int tensor) {
  lite_tensor_info info;
  if (lite_program_tensor(program, tensor, &info)) return;
  const uint8_t* data = static_cast<const uint8_t*>(lite_program_data(program, tensor));
  for (size_t k = 0; data && k < info.bytes; ++k) seen = static_cast<uint8_t>(seen ^ data[k]);
}

void run(lite_program* program) {
  if (!program) {
    ++refused;
    return;
  }
  char error[256];
  for (int i = 0; i < lite_program_num_inputs(program); ++i) {
    lite_tensor_info info;
    const int tensor = lite_program_input(program, i);
    lite_program_tensor(program, tensor, &info);
    uint8_t* data = static_cast<uint8_t*>(lite_program_data(program, tensor));
    for (size_t k = 0; data && k < info.bytes; ++k) data[k] = static_cast<uint8_t>(dice.next());
  }
  const int tensors = lite_program_num_tensors(program);
  const int tapped = tensors ? static_cast<int>(dice.below(tensors)) : 0;
  if (tensors) lite_program_tap(program, tapped, 1, error, sizeof error);
  if (lite_program_run(program, error, sizeof error) == 0) {
    ++ran;
    look(program, tapped);
    for (int i = 0; i < lite_program_num_outputs(program); ++i) look(program, lite_program_output(program, i));
  } else {
    ++refused;
  }
  lite_program_free(program);
}

lite_options options() {
  lite_options o{};
  o.threads = 1 + static_cast<int>(dice.below(2));
  o.memory_limit_bytes = 48 << 20;
  const char* const isas[] = {nullptr, nullptr, "avx2", "sse2", "nonsense"};
  o.max_isa = isas[dice.below(dice.below(50) ? 4 : 5)];
  if (dice.below(20) == 0) o.fail_allocation = 1 + static_cast<int64_t>(dice.below(60));
  return o;
}

void fuzz_program(const uint8_t* original, size_t size, const void** weights,
                  const size_t* weight_bytes, size_t count) {
  // A copy of exactly its size: reading past its end is seen.
  Bytes b{static_cast<uint8_t*>(malloc(size)), size};
  memcpy(b.data, original, size);
  damage(&b);
  if (b.size < size) b.data = static_cast<uint8_t*>(realloc(b.data, b.size ? b.size : 1));
  const lite_options o = options();
  char error[256];
  run(lite_program_load(b.data, b.size, weights, weight_bytes, count, &o, error, sizeof error));
  free(b.data);
}

void fuzz_file(const Bytes& original, const char* scratch) {
  Bytes b{static_cast<uint8_t*>(malloc(original.size)), original.size};
  memcpy(b.data, original.data, original.size);
  damage(&b);
  FILE* out = fopen(scratch, "wb");
  if (out) {
    fwrite(b.data, 1, b.size, out);
    fclose(out);
  }
  free(b.data);
  char error[256];
  lite_file* file = lite_file_open(scratch, error, sizeof error);
  if (!file) {
    ++refused;
    return;
  }
  const lite_options o = options();
  run(lite_file_program(file, nullptr, &o, error, sizeof error));
  lite_file_close(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: lite_fuzz model.lite SCRATCH_FILE SEED MILLISECONDS\n");
    return 2;
  }
  char error[256];
  lite_file* file = lite_file_open(argv[1], error, sizeof error);
  const Bytes whole = read_file(argv[1]);
  if (!file) {
    fprintf(stderr, "error: %s\n", error);
    return 1;
  }
  char tag[16];
  snprintf(tag, sizeof tag, "PROG.%s", lite_target());
  size_t program_bytes, index_bytes, blob_bytes;
  const void* program = lite_file_section(file, tag, &program_bytes);
  const void* index = lite_file_section(file, "WINDEX", &index_bytes);
  const void* blobs = lite_file_section(file, "WEIGHTS", &blob_bytes);
  static const void* weights[kMaxWeights];
  static size_t weight_bytes[kMaxWeights];
  size_t count = index ? index_bytes / 16 : 0;
  if (count > kMaxWeights) count = kMaxWeights;
  for (size_t i = 0; i < count; ++i) {
    uint64_t row[2];
    memcpy(row, static_cast<const uint8_t*>(index) + 16 * i, 16);
    weights[i] = static_cast<const uint8_t*>(blobs) + row[0];
    weight_bytes[i] = row[1];
  }
  dice = lite::Random(strtoull(argv[3], nullptr, 10) * 2654435761u + 88172645463325252ull);
  const int64_t end = now_ms() + strtol(argv[4], nullptr, 10);
  for (int i = 0; now_ms() < end; ++i) {
    if (i % 8 == 0) fuzz_file(whole, argv[2]);
    else if (program)
      fuzz_program(static_cast<const uint8_t*>(program), program_bytes, weights, weight_bytes,
                   count);
  }
  printf("%d refused, %d ran\n", refused, ran);
  free(whole.data);
  lite_file_close(file);
  return 0;
}
