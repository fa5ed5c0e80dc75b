// Expressions of integers, as kernels state their reach: + - * / % and comparisons with C's
// precedence, brackets, min, max and up(a, b), a / b rounded up.
#pragma once

#include <stdint.h>
#include <string.h>

namespace lite::opencl {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
// Characters of the name that begins at `at`.
inline size_t word_length(const char* at) {
  size_t length = 0;
  while (is_letter(at[length]) || (length && is_digit(at[length]))) ++length;
  return length;
}
inline bool is_word(const char* at, size_t length, const char* word) {
  return strlen(word) == length && strncmp(at, word, length) == 0;
}

// What names stand for; false for an unknown one.
struct Names {
  bool (*find)(const void* context, const char* name, size_t length, int64_t* value);
  const void* context;
};

// Reads one expression and moves *at behind it. Exact: nullptr, or why there is no value: an
// unknown name, a value beyond 64 bits, a division of or by what is negative or by 0.
const char* evaluate(const char** at, const Names&, int64_t* value);

}  // namespace lite::opencl
