#include "statement.h"

namespace lite::opencl {

namespace {

const char kOptions[] = "//@ options ";

// The option NAME in the list of a file: what follows the name there.
const char* listed(const char* text, const char* name, size_t length) {
  for (const char* line = text; (line = strstr(line, kOptions)) != nullptr;) {
    line += sizeof kOptions - 1;
    for (const char* at = line;;) {
      const size_t own = word_length(at);
      if (own == length && strncmp(at, name, length) == 0) return at + own;
      at += strcspn(at, " \n");
      if (*at != ' ') break;
      ++at;
    }
  }
  return nullptr;
}

// What follows the name in the launch's `#define NAME`, nullptr where it has none.
const char* defined(const char* lines, const char* name, size_t length) {
  for (const char* line = lines; (line = strstr(line, "#define ")) != nullptr;) {
    line += 8;
    if (word_length(line) == length && strncmp(line, name, length) == 0) return line + length;
  }
  return nullptr;
}

// Digits alone, at most nine, up to the line's end.
bool whole_number(const char* at, int64_t* value) {
  const char* first = at;
  for (*value = 0; is_digit(*at) && at - first < 10; ++at) *value = *value * 10 + (*at - '0');
  return at > first && at - first < 10 && (!*at || *at == '\n');
}

// Whether "=1,4..8" has a number.
bool among(const char* at, int64_t value) {
  while (*at == '=' || *at == ',') {
    ++at;
    int64_t ends[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
      for (ends[i] = 0; is_digit(*at); ++at) ends[i] = ends[i] * 10 + (*at - '0');
      if (at[0] != '.' || at[1] != '.') {
        if (i == 0) ends[1] = ends[0];
        break;
      }
      at += 2;
    }
    if (value >= ends[0] && value <= ends[1]) return true;
  }
  return false;
}

}  // namespace

int64_t type_bytes(const char* type, size_t length) {
  static const struct {
    const char* name;
    int bytes;
  } kTypes[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2},  {"int", 4},
                {"uint", 4}, {"float", 4}, {"long", 8},  {"ulong", 8},  {"double", 8}};
  size_t letters = 0;
  while (letters < length && is_letter(type[letters])) ++letters;
  const char* const suffixes[] = {"", "2", "4", "8", "16"};
  int64_t lanes = 0;
  for (int i = 0; i < 5; ++i)
    if (is_word(type + letters, length - letters, suffixes[i])) lanes = int64_t{1} << i;
  for (const auto& t : kTypes)
    if (is_word(type, letters, t.name)) return t.bytes * lanes;
  return 0;
}

const char* statement_of(const Launch& launch) {
  static const char kKernel[] = "//@ kernel ";
  const size_t length = strlen(launch.kernel);
  for (const char* at = launch.text->text; (at = strstr(at, kKernel)) != nullptr;) {
    at += sizeof kKernel - 1;
    if (length && strncmp(at, launch.kernel, length) == 0 && at[length] == '\n')
      return at + length + 1;
  }
  return nullptr;
}

const char* next_line(const char** next) {
  const char* line = *next;
  if (strncmp(line, "//@ ", 4) != 0) return nullptr;
  *next = line + strcspn(line, "\n") + 1;
  return line + 4;
}

bool check_options(const Launch& launch, Env& env) {
  for (const char* line = launch.options; (line = strstr(line, "#define ")) != nullptr;) {
    line += 8;
    const size_t length = word_length(line);
    const char* form = listed(launch.text->text, line, length);
    const char* value = line + length;
    bool good = form && !defined(value, line, length);
    int64_t number;
    if (good && *form == '=')
      good = *value == ' ' && whole_number(value + 1, &number) && among(form, number);
    else if (good && strncmp(form, ":type", 5) == 0)
      good = *value == ' ' && type_bytes(value + 1, strcspn(value + 1, "\n"));
    else if (good && *form == '(')
      good = strncmp(value, form, strcspn(form, ")") + 1) == 0;
    else if (good)  // what a flag is defined as, or which number, makes no difference to its reach
      good = *form == ':' ? *value == ' ' : !*value || *value == '\n';
    if (!good)
      return env.fail("OpenCL: %s.cl takes no option '%.*s'", launch.text->name,
                      static_cast<int>(strcspn(line, "\n") < 60 ? strcspn(line, "\n") : 60), line);
  }
  return true;
}

bool option_value(const Launch& launch, const char* name, size_t length, int64_t* value) {
  const char* form = listed(launch.text->text, name, length);
  if (!form || *form == '(' || strncmp(form, ":number", 7) == 0) return false;
  const char* given = defined(launch.options, name, length);
  *value = given != nullptr;
  if (given && *form == '=') return whole_number(given + 1, value);
  if (given && *form == ':') *value = type_bytes(given + 1, strcspn(given + 1, "\n"));
  return true;
}

}  // namespace lite::opencl
