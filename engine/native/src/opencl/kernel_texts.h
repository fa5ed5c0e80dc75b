// The kernel texts that the runtime carries: files of backends/opencl/kernels, packed at build time.
// A program file names one by its SHA-256; it brings no code of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite::opencl {

// What a compiler gets is the `#define` lines, a line feed, common.h, a line feed and the file.
struct KernelText {
  const char* name;  // "conv" of conv.cl
  const char *common, *text;
  size_t common_bytes, text_bytes;
  uint8_t sha256[32];  // of common.h, a line feed and the file
};

const KernelText* kernel_text(int index);  // nullptr past the end
const KernelText* find_kernel_text(const uint8_t sha256[32]);  // nullptr: none of this runtime

}  // namespace lite::opencl
