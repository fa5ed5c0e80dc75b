// The kernel texts that the runtime carries: files of backends/opencl/kernels, packed at build time.
// A program names one by its SHA-256 and brings no code of its own. Texts of custom operators are
// added at run time, when a person trusts the file that they come with (custom_texts.cc).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite::opencl {

// What a compiler gets is the `#define` lines, a line feed, common.h, a line feed and the file.
struct KernelText {
  const char* name;  // "conv" of conv.cl
  const char *common, *text;
  size_t common_bytes, text_bytes;
  // Of common.h, a line feed and the file: SHA-256, for a custom operator BLAKE2b.
  uint8_t digest[32];
};

const KernelText* kernel_text(int index);  // nullptr past the end
const KernelText* find_kernel_text(const uint8_t digest[32]);  // nullptr: neither here nor added
const char* common_text();

// Adds a custom operator's text, for as long as the process runs. False with what is wrong of it.
bool add_kernel_text(const char* text, size_t bytes, char* error, size_t error_bytes);
bool load_kernel_text(const char* path, char* error, size_t error_bytes);
const KernelText* find_custom_text(const uint8_t digest[32]);

}  // namespace lite::opencl
