#include "kernel_texts.h"

#include <string.h>

namespace lite::opencl {

namespace {

// unsigned char kText_common[] and kText_NAME[] (with a zero byte), and LITE_KERNEL_TEXTS(X), which is
// X(NAME, the text before it, SHA-256 as bytes) for each file. Written by cmake/kernel_texts.cmake.
#include "opencl_kernel_texts.inc"

const char* chars(const unsigned char* bytes) { return reinterpret_cast<const char*>(bytes); }

const KernelText kTexts[] = {
#define LITE_TEXT(name, shared, ...)                                                               \
  {#name, chars(kText_##shared), chars(kText_##name), sizeof kText_##shared - 1,                     \
   sizeof kText_##name - 1, {__VA_ARGS__}},
    LITE_KERNEL_TEXTS(LITE_TEXT)
#undef LITE_TEXT
};

}  // namespace

const KernelText* kernel_text(int index) {
  const int count = sizeof kTexts / sizeof *kTexts;
  return index >= 0 && index < count ? &kTexts[index] : nullptr;
}

const KernelText* find_kernel_text(const uint8_t digest[32]) {
  for (const KernelText& text : kTexts)
    if (memcmp(text.digest, digest, sizeof text.digest) == 0) return &text;
  return find_custom_text(digest);
}

const char* common_text() { return chars(kText_common); }

}  // namespace lite::opencl
