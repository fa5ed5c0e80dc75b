#include "signature.h"

namespace lite::opencl {

namespace {

// The parameters of `void NAME(`, between its brackets; nullptr when the text has no such kernel.
const char* parameters_of(const char* text, const char* name) {
  const size_t length = strlen(name);
  if (!length) return nullptr;
  for (const char* at = text; (at = strstr(at, "void ")) != nullptr;) {
    at += 5;
    if (strncmp(at, name, length) == 0 && at[length] == '(') {
      // A function of the file itself is `inline void`.
      const char* line = at - 5;
      const bool own = line - text >= 7 && strncmp(line - 7, "inline ", 7) == 0;
      if (!own) return at + length + 1;
    }
  }
  return nullptr;
}

bool contains(const char* at, const char* end, const char* word) {
  const char* found = strstr(at, word);
  return found && found < end;
}

bool starts(const char* at, const char* word) { return strncmp(at, word, strlen(word)) == 0; }

// Whether an argument may stand for the parameter between `at` and `end`.
bool suits(const char* at, const char* end, Argument kind) {
  while (*at == ' ' || *at == '\n') ++at;
  if (contains(at, end, "image2d_t")) return kind == Argument::kImage;
  if (starts(at, "global "))
    return kind == Argument::kTensor || kind == Argument::kConstant || kind == Argument::kScratch;
  if (starts(at, "int ")) return kind == Argument::kInt;
  if (starts(at, "float ")) return kind == Argument::kFloat;
  if (starts(at, "E ")) return kind >= Argument::kUchar;  // its size is the driver's to check
  return false;
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
bool suit(const char* at, const char* ends, const Launch& launch, uint32_t* count) {
  for (;;) {
    const char* end = at + strcspn(at, ends);
    const char* shared = shared_parameters(launch.text->common, at);
    if (shared) {
      if (!suit(shared, ",\n", launch, count)) return false;
    } else if (*count >= launch.num_args || !suits(at, end, launch.kinds[*count])) {
      return false;
    } else {
      ++*count;
    }
    if (*end != ',') return true;
    at = end + 1;
  }
}

}  // namespace

bool matches_signature(const Launch& launch, Env& env) {
  const char* at = parameters_of(launch.text->text, launch.kernel);
  if (!at) return env.fail("OpenCL: %s.cl has no kernel '%.60s'", launch.text->name, launch.kernel);
  uint32_t count = 0;
  if (!suit(at, ",)", launch, &count))
    return env.fail("OpenCL: kernel '%s' does not take argument %u", launch.kernel, count);
  if (count != launch.num_args)
    return env.fail("OpenCL: kernel '%s' takes %u arguments, not %u", launch.kernel, count,
                    launch.num_args);
  return true;
}

}  // namespace lite::opencl
