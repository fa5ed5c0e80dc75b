#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace lite::opencl {

void Text::add_bytes(const void* bytes, size_t count) {
  if (failed) return;
  if (room - size <= count) {
    const size_t wanted = (size + count + 1) * 2;
    char* grown = static_cast<char*>(realloc(data, wanted));
    if (!grown) {
      failed = true;
      return;
    }
    data = grown;
    room = wanted;
  }
  if (count) memcpy(data + size, bytes, count);
  size += count;
  data[size] = 0;
}

void Text::add(const char* format, ...) {
  va_list args;
  va_start(args, format);
  char line[1024];
  const int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0) {
    failed = true;
  } else if (static_cast<size_t>(length) < sizeof line) {
    add_bytes(line, length);
  } else if (char* whole = static_cast<char*>(malloc(length + 1))) {
    va_start(args, format);
    vsnprintf(whole, length + 1, format, args);
    va_end(args);
    add_bytes(whole, length);
    free(whole);
  } else {
    failed = true;
  }
}

void Text::add_json(const char* text) {
  add_bytes("\"", 1);
  for (; *text; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') add("\\%c", c);
    else if (c == '\n') add("\\n");
    else if (c < 0x20) add("\\u%04x", c);
    else if (c < 0x7f) add_bytes(text, 1);
    else add_bytes("?", 1);
  }
  add_bytes("\"", 1);
}

void Text::release() {
  free(data);
  *this = Text();
}

bool say(char* out, size_t bytes, const char* format, ...) {
  if (!out || !bytes) return false;
  va_list args;
  va_start(args, format);
  vsnprintf(out, bytes, format, args);
  va_end(args);
  return false;
}

}  // namespace lite::opencl
