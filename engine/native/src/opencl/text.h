// A text that grows. Out of memory only sets `failed`: whoever uses the text looks once, at the end.
#pragma once

#include <stddef.h>

namespace lite::opencl {

struct Text {
  char* data = nullptr;  // ends with a zero byte when there is one
  size_t size = 0, room = 0;
  bool failed = false;

  void add(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void add_bytes(const void* bytes, size_t count);
  // As a JSON string with its quotes, in ASCII; bytes beyond ASCII become '?'.
  void add_json(const char* text);
  const char* text() const { return data ? data : ""; }
  void release();
};

// snprintf that never leaves `out` without its zero byte; false, so that a failure is one line.
bool say(char* out, size_t bytes, const char* format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace lite::opencl
