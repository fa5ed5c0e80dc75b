#include "defines.h"

#include <stdlib.h>

namespace lite::opencl {

namespace {

// What operators' code may name, beside the parameters of its function.
const char kNames[] =
    " acos acosh asin asinh atan atan2 atanh ceil cos cosh erf exp expm1 fabs floor fmax fmin log "
    "log10 log1p log2 pow rint rsqrt sign sin sinh sqrt tan tanh trunc "
    "ACT_A ACT_B AT_LEAST AT_MOST CLAMP01 INFINITY MAXIMUM MINIMUM SIGMOID SOFTPLUS ";
const char kTypes[] = " half float double char uchar short ushort int uint long ulong ";
// Functions that kernels call, with their parameters.
const char* const kFunctions[] = {"ACT(x) ",    "F0(x) ",     "F1(x) ",       "F2(x) ",
                                  "OP(p,q) ",   "STEP(s,v) ", "MERGE(s,t) ",  "DONE(s,n) "};
const char kBothWays[] = "#define REVERSE (d == 1)";
constexpr size_t kMaxLine = 400;

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool capital(char c) { return (c >= 'A' && c <= 'Z') || c == '_' || digit(c); }

bool listed(const char* list, const char* name, size_t length) {
  for (const char* at = list; (at = strchr(at, ' ')) && at[1]; ++at)
    if (strncmp(at + 1, name, length) == 0 && at[1 + length] == ' ') return true;
  return false;
}

// "-0.5f", "16", "1e-05f"; returns what follows, nullptr when there is no number.
const char* past_number(const char* at) {
  if (!digit(*at)) return nullptr;
  char* end;
  strtod(at, &end);
  if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) return nullptr;
  return *end == 'f' ? end + 1 : end;
}

bool is_number(const char* text) {
  if (strcmp(text, "INFINITY") == 0 || strcmp(text, "(-INFINITY)") == 0 ||
      strcmp(text, "-INFINITY") == 0)
    return true;
  const char* end = past_number(text + (*text == '-'));
  return end && !*end;
}

bool is_type(const char* text) {
  size_t length = 0;
  while (letter(text[length])) ++length;
  const char* rest = text + length;
  const bool vector = !*rest || strcmp(rest, "2") == 0 || strcmp(rest, "4") == 0 ||
                      strcmp(rest, "8") == 0 || strcmp(rest, "16") == 0;
  return length && vector && listed(kTypes, text, length);
}

// A pure expression of numbers, `parameters` (a letter each) and kNames.
bool is_expression(const char* at, const char* parameters) {
  while (*at) {
    if (letter(*at)) {
      size_t length = 1;
      while (letter(at[length]) || digit(at[length])) ++length;
      const bool own = length == 1 && strchr(parameters, *at);
      if (!own && !listed(kNames, at, length)) return false;
      at += length;
    } else if (const char* end = past_number(at)) {
      at = end;
      if (letter(*at) || digit(*at)) return false;
    } else if (*at == '=' || *at == '!') {
      if (at[1] != '=') return false;
      at += 2;
    } else if (strchr("+-*/?:<>(), ", *at)) {
      // No ++, --, comments, or shifts: none of them is needed.
      if (strchr("+-*/<>", *at) && at[1] == *at) return false;
      if (*at == '/' && at[1] == '*') return false;
      ++at;
    } else {
      return false;
    }
  }
  return true;
}

bool is_function(const char* text) {
  for (const char* function : kFunctions) {
    const size_t length = strlen(function);
    if (strncmp(text, function, length) != 0) continue;
    char parameters[4] = "";
    int count = 0;
    for (const char* at = strchr(function, '('); *at != ')'; ++at)
      if (letter(*at)) parameters[count++] = *at;
    return is_expression(text + length, parameters);
  }
  return false;
}

bool is_define(const char* line) {
  if (strcmp(line, kBothWays) == 0) return true;
  if (strncmp(line, "#define ", 8) != 0) return false;
  const char* name = line + 8;
  if (!letter(*name)) return false;
  size_t length = 0;
  while (capital(name[length])) ++length;
  const char* rest = name + length;
  if (!length) return false;
  if (!*rest) return true;
  if (*rest == '(') return is_function(name);
  return *rest == ' ' && (is_number(rest + 1) || is_type(rest + 1));
}

}  // namespace

bool check_defines(const char* lines, Env& env) {
  char line[kMaxLine];
  while (*lines) {
    const char* end = strchrnul(lines, '\n');
    const size_t length = end - lines;
    if (length >= sizeof line) return env.fail("an OpenCL option of %zu characters", length);
    memcpy(line, lines, length);
    line[length] = 0;
    if (!is_define(line)) return env.fail("an OpenCL option that no kernel has: %.80s", line);
    lines = *end ? end + 1 : end;
  }
  return true;
}

}  // namespace lite::opencl
