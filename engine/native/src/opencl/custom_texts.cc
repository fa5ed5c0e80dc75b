// Kernel texts of custom operators: code of somebody else, which comes here only when a person asked
// for it (lite_file_trust, lite_plugin_load).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "blake2b.h"
#include "expression.h"
#include "kernel_texts.h"
#include "text.h"

namespace lite::opencl {

namespace {

constexpr int kMaxTexts = 256;
constexpr size_t kMaxBytes = 1 << 20;

// Rows are never changed once `count` says that they are there: programs point to them.
KernelText texts[kMaxTexts];
std::atomic<int> count{0};
std::atomic_flag adding = ATOMIC_FLAG_INIT;

struct Adding {
  Adding() { while (adding.test_and_set()) {} }
  ~Adding() { adding.clear(); }
};

}  // namespace

bool add_kernel_text(const char* text, size_t bytes, char* error, size_t error_bytes) {
  static const char kKernel[] = "//@ kernel ";
  if (!bytes || bytes > kMaxBytes || memchr(text, 0, bytes))
    return say(error, error_bytes, "is not the text of an OpenCL kernel");
  // A line feed more, so that the last line ends, and a name behind it.
  char* own = static_cast<char*>(malloc(2 * bytes + 3));
  if (!own) return say(error, error_bytes, "out of memory");
  memcpy(own, text, bytes);
  memcpy(own + bytes, "\n", 2);
  const char* found = strstr(own, kKernel);
  const size_t length = found ? word_length(found + sizeof kKernel - 1) : 0;
  if (!length) {
    free(own);
    return say(error, error_bytes, "has no line '//@ kernel NAME'");
  }
  char* name = own + bytes + 2;
  memcpy(name, found + sizeof kKernel - 1, length);
  name[length] = 0;
  KernelText made = {name, common_text(), own, strlen(common_text()), bytes, {}};
  Blake2b hash(sizeof made.digest);
  hash.add(made.common, made.common_bytes);
  hash.add("\n", 1);
  hash.add(own, bytes);
  hash.finish(made.digest);
  const Adding held;
  const int at = count.load();
  const bool known = find_custom_text(made.digest) != nullptr;
  if (known || at == kMaxTexts) free(own);
  if (known) return true;
  if (at == kMaxTexts) return say(error, error_bytes, "is one kernel text too many");
  texts[at] = made;
  count.store(at + 1);
  return true;
}

bool load_kernel_text(const char* path, char* error, size_t error_bytes) {
  FILE* file = fopen(path, "rb");
  char* text = file ? static_cast<char*>(malloc(kMaxBytes + 1)) : nullptr;
  const size_t bytes = text ? fread(text, 1, kMaxBytes + 1, file) : 0;
  const bool added = text && add_kernel_text(text, bytes, error, error_bytes);
  if (!text) say(error, error_bytes, "cannot be read");
  if (file) fclose(file);
  free(text);
  return added;
}

const KernelText* find_custom_text(const uint8_t digest[32]) {
  for (int i = 0, n = count.load(); i < n; ++i)
    if (memcmp(texts[i].digest, digest, sizeof texts[i].digest) == 0) return &texts[i];
  return nullptr;
}

}  // namespace lite::opencl
