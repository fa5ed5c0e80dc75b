// Input: a .lite file (src/runtime/lite_file.cc), its program loaded and run, read as a file, as bytes
// in memory and as the part of a bundle; so is its program for a backend of another package, which is
// there. A mutated file gets the right checksums again, or every one of them would end there. A library
// that the file brings is asked for only once the file is trusted, and then a loader refuses it.
#include <stdlib.h>

#include "bytes.h"
#include "lite_plugin.h"
#include "plugins/plugins.h"
#include "runtime/crc32.h"
#include "runtime/lite_file.h"

static bool trusted = false;

// Take the place of the C library's.
extern "C" void* dlopen(const char*, int) {
  if (!trusted) __builtin_trap();
  return nullptr;
}
extern "C" char* dlerror() {
  static char refused[] = "no library";
  return refused;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  uint32_t count = 0;
  if (size < 16 || seed % 16 == 0) return size;
  memcpy(&count, data + 12, 4);
  for (uint32_t i = 0; i < count && 16 + 32 * size_t{i + 1} <= size; ++i) {
    lite::Section section;
    memcpy(&section, data + 16 + 32 * i, sizeof section);
    if (section.offset > size || section.size > size - section.offset) continue;
    section.crc = lite::crc32(data + section.offset, section.size);
    memcpy(data + 16 + 32 * i, &section, sizeof section);
  }
  return size;
}

namespace {

// The backend of the seeds' PLUG sections, whose sub-graphs read all that they get.
int run_subgraph(const lite_plugin_call* call, int, int) {
  uint8_t sum = 0;
  for (int i = 0; i < call->num_inputs; ++i) {
    const auto* data = static_cast<const uint8_t*>(call->inputs[i].data);
    for (size_t at = 0; data && at < call->inputs[i].bytes; ++at) sum ^= data[at];
  }
  for (int i = 0; i < call->num_outputs; ++i)
    if (call->outputs[i].data) memset(call->outputs[i].data, sum, call->outputs[i].bytes);
  return sum == 0xa5;  // a sub-graph that fails
}

bool register_backend() {
  static const lite_plugin_kernel kernel = {"backend::fuzz", 0, nullptr, run_subgraph, nullptr};
  static const lite_plugin plugin = {LITE_PLUGIN_ABI, 1, "fuzz", &kernel};
  const lite_plugin other = {LITE_PLUGIN_ABI + 1, 1, "other", &kernel};
  const lite_plugin nothing = {LITE_PLUGIN_ABI, 1, "nothing", nullptr};
  char error[256];
  return !lite::add_plugin(&other, "other", error, sizeof error) &&
         !lite::add_plugin(&nothing, "nothing", error, sizeof error) &&
         lite::add_plugin(&plugin, "fuzz", error, sizeof error);
}

// Loads and runs what was opened; null is a file that was refused.
bool run_file(lite_file* file) {
  static const bool registered = register_backend();
  if (!registered) __builtin_trap();
  if (!file) return false;
  char error[256];
  const lite_options options = small();
  if (!lite_file_targets(file)) __builtin_trap();
  run_program(lite_file_program(file, nullptr, &options, error, sizeof error));
  run_program(lite_file_program(file, "fuzz", &options, error, sizeof error));
  trusted = true;
  lite_file_trust(file, error, sizeof error);
  trusted = false;
  lite_file_close(file);
  return true;
}

void run_parts(const lite_file* bundle) {
  for (uint32_t i = 0; bundle && i < bundle->count; ++i) {
    char tag[9] = {}, error[256];
    memcpy(tag, bundle->sections[i].tag, 8);
    run_file(lite::open_part(bundle, tag, error, sizeof error));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile input(data, size);
  char error[256];
  lite_file* bundle = lite_file_open(input.path, error, sizeof error);
  run_parts(bundle);
  const bool good = run_file(bundle);
  // At its exact size: reading past the end is seen. One byte off, it is refused.
  void* copy = nullptr;
  if (posix_memalign(&copy, 64, size ? size : 1) != 0) __builtin_trap();
  if (size) memcpy(copy, data, size);
  if (run_file(lite_file_open_bytes(copy, size, error, sizeof error)) != good ||
      lite_file_open_bytes(static_cast<uint8_t*>(copy) + 1, size, error, sizeof error))
    __builtin_trap();
  free(copy);
  return 0;
}
