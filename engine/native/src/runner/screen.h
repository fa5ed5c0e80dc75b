// Text of a model or of a driver on its way to a terminal: what one would obey is written as an escape.
#pragma once

#include <stdarg.h>
#include <stdio.h>

// The bytes of a control character at `text` (C0, DEL, C1, marks that turn or break lines), 0 for any
// other; its code point.
inline int control_at(const char* text, unsigned* code) {
  const auto* s = reinterpret_cast<const unsigned char*>(text);
  *code = s[0];
  if (s[0] < 0x20 || s[0] == 0x7f) return 1;
  if (s[0] == 0xc2 && s[1] >= 0x80 && s[1] < 0xa0) return *code = s[1], 2;
  if (s[0] != 0xe2 || (s[1] != 0x80 && s[1] != 0x81) || s[2] < 0x80 || s[2] > 0xbf) return 0;
  *code = 0x2000u + (s[1] - 0x80u) * 64 + (s[2] - 0x80u);
  const bool mark = *code == 0x200e || *code == 0x200f || (*code >= 0x2028 && *code <= 0x202e) ||
                    (*code >= 0x2060 && *code <= 0x206f);
  return mark ? 3 : 0;
}

// One line, ended by a line feed.
inline void say_line(FILE* out, const char* format, ...) __attribute__((format(printf, 2, 3)));
inline void say_line(FILE* out, const char* format, ...) {
  char line[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  unsigned code;
  for (const char* at = line; *at;) {
    const int bytes = control_at(at, &code);
    if (!bytes) fputc(*at, out);
    else fprintf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
    at += bytes ? bytes : 1;
  }
  fputc('\n', out);
}
