#include "signature.h"

#include "statement.h"

namespace lite::opencl {

namespace {

// The parameters of `void NAME(`, between its brackets; nullptr when the text has no such kernel.
const char* parameters_of(const char* text, const char* name) {
  const size_t length = strlen(name);
  if (!length) return nullptr;
  for (const char* at = text; (at = strstr(at, "void ")) != nullptr;) {
    at += 5;
    if (strncmp(at, name, length) == 0 && at[length] == '(') {
      // A function of the file itself is `static inline void`.
      const char* line = at - 5;
      const bool own = line - text >= 7 && strncmp(line - 7, "inline ", 7) == 0;
      if (!own) return at + length + 1;
    }
  }
  return nullptr;
}

// The words of a parameter: qualifiers, its type and its name.
Parameter read(const char* at, const char* end) {
  Parameter found{};
  bool constant = false;
  for (;;) {
    while (at < end && !is_letter(*at)) ++at;
    if (at == end) break;
    const size_t length = word_length(at);
    if (is_word(at, length, "global")) found.memory = true;
    else if (is_word(at, length, "const") || is_word(at, length, "read_only")) constant = true;
    else if (is_word(at, length, "write_only") || is_word(at, length, "restrict")) {}
    else if (!found.type) {
      found.type = at;
      found.type_length = length;
      found.image = is_word(at, length, "image2d_t");
    } else {
      found.name = at;
      found.name_length = length;
    }
    at += length;
  }
  found.written = (found.memory || found.image) && !constant;
  return found;
}

// Whether an argument may stand for a parameter.
bool suits(const Parameter& p, Argument kind) {
  if (!p.name) return false;
  if (p.image) return kind == Argument::kImage;
  if (p.memory)
    return kind == Argument::kTensor || kind == Argument::kConstant || kind == Argument::kScratch;
  if (is_word(p.type, p.type_length, "int")) return kind == Argument::kInt;
  if (is_word(p.type, p.type_length, "float")) return kind == Argument::kFloat;
  // Of a type that an option names; its size is the driver's to check.
  return is_word(p.type, p.type_length, "E") && kind >= Argument::kUchar;
}

// Parameters that several kernels share have a name in common.h: `#define ENDING float low, …`.
const char* shared_parameters(const char* common, const char* at) {
  while (*at == ' ' || *at == '\n') ++at;
  size_t length = 0;
  while (at[length] >= 'A' && at[length] <= 'Z') ++length;
  if (!length || (at[length] != ',' && at[length] != ')')) return nullptr;
  for (const char* line = common; (line = strstr(line, "#define ")) != nullptr;) {
    line += 8;
    if (strncmp(line, at, length) == 0 && line[length] == ' ') return line + length + 1;
  }
  return nullptr;
}

// Whether the parameters from `at` up to one of `ends` are those of the launch from *count on.
bool suit(const char* at, const char* ends, const Launch& launch, int* count, Parameter* out) {
  for (;;) {
    const char* end = at + strcspn(at, ends);
    const char* shared = shared_parameters(launch.text->common, at);
    if (shared) {
      if (!suit(shared, ",\n", launch, count, out)) return false;
    } else {
      if (*count >= static_cast<int>(launch.num_args)) return false;
      out[*count] = read(at, end);
      if (!suits(out[*count], launch.kinds[*count])) return false;
      ++*count;
    }
    if (*end != ',') return true;
    at = end + 1;
  }
}

}  // namespace

int matching_parameters(const Launch& launch, Env& env, Parameter out[kMaxArguments]) {
  const char* at = parameters_of(launch.text->text, launch.kernel);
  int count = 0;
  if (!at)
    env.fail("OpenCL: %s.cl has no kernel '%.60s'", launch.text->name, launch.kernel);
  else if (!suit(at, ",)", launch, &count, out))
    env.fail("OpenCL: kernel '%s' does not take argument %d", launch.kernel, count);
  else if (count != static_cast<int>(launch.num_args))
    env.fail("OpenCL: kernel '%s' takes %d arguments, not %u", launch.kernel, count,
             launch.num_args);
  else
    return count;
  return -1;
}

}  // namespace lite::opencl
