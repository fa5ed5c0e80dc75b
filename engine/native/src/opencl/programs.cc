#include "programs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "blake2b.h"

namespace lite::opencl {

namespace {

cl_int build(const Functions& cl, cl_program program, cl_device_id device, const char* options) {
  char all[200];
  snprintf(all, sizeof all, "%s -w", options);  // a driver may print its warnings otherwise
  return cl.clBuildProgram(program, 1, &device, all, nullptr, nullptr);
}

// Whether a driver keeps compiled kernels itself, so that binaries of ours would cost more than they
// save (driver_keeps of backends/opencl/programs.py has the figures).
bool driver_keeps(const char* platform) {
  const char* own = getenv("POCL_KERNEL_CACHE");
  return strcmp(platform, "Portable Computing Language") == 0 && !(own && strcmp(own, "0") == 0);
}

}  // namespace

void Programs::open(const Functions* cl, cl_context context, cl_device_id device,
                    const char* const identity[4], bool cpu, const char* cache_dir) {
  cl_ = cl;
  context_ = context;
  device_ = device;
  options_ = cpu ? kCpuBuildOptions : kBuildOptions;
  snprintf(name_, sizeof name_, "%s", identity[1]);
  for (int i = 0; i < 4; ++i) {
    identity_.add("%s", identity[i]);
    identity_.add_bytes("", 1);
  }
  if (driver_keeps(identity[0])) return;
  if (!cache_dir || !*cache_dir || strlen(cache_dir) > sizeof cache.folder - 10) return;
  snprintf(cache.folder, sizeof cache.folder, "%s/opencl", cache_dir);
  trial.open(cache.folder, identity);
}

void Programs::use_runner(const char* runner, const char* library, int device) {
  trial.runner = runner;
  snprintf(trial.library, sizeof trial.library, "%s", library);
  trial.device = device;
}

cl_program Programs::get(const KernelText& text, const char* defines, char* error,
                         size_t error_bytes) {
  Built made{};
  Blake2b hash(sizeof made.digest);
  hash.add(defines, strlen(defines));
  hash.add("\n", 1);
  hash.add(text.common, text.common_bytes);
  hash.add("\n", 1);
  hash.add(text.text, text.text_bytes);
  hash.finish(made.digest);
  const Built* all = reinterpret_cast<const Built*>(built_.data);
  for (size_t i = 0; i < built_.size / sizeof made; ++i)
    if (memcmp(all[i].digest, made.digest, sizeof made.digest) == 0) return all[i].program;

  char hex[65];
  to_hex(made.digest, sizeof made.digest, hex);
  Text key;
  key.add_bytes(identity_.text(), identity_.size);
  key.add("%s", options_);
  key.add_bytes("", 1);
  key.add("%s", hex);
  if (key.failed) {
    say(error, error_bytes, "out of memory");
  } else {
    made.program = loaded(key);
    if (!made.program) made.program = compile(text, defines, key, error, error_bytes);
  }
  key.release();
  if (!made.program) return nullptr;
  built_.add_bytes(&made, sizeof made);
  if (!built_.failed) return made.program;
  cl_->clReleaseProgram(made.program);
  say(error, error_bytes, "out of memory");
  return nullptr;
}

cl_program Programs::loaded(const Text& key) {
  Text binary;
  cl_program program = nullptr;
  char path[1000];
  if (cache.load(key, &binary)) {
    cache.path_of(key, path, sizeof path);
    if (trial.may_load(path, options_)) {
      program = load_binary(*cl_, context_, device_, binary, options_);
      trial.came_back();
      if (!program) cache.drop(key);  // the driver refuses its own binary
    }
  }
  binary.release();
  return program;
}

cl_program Programs::compile(const KernelText& text, const char* defines, const Text& key,
                             char* error, size_t error_bytes) {
  const char* parts[] = {defines, "\n", text.common, "\n", text.text};
  const size_t sizes[] = {strlen(defines), 1, text.common_bytes, 1, text.text_bytes};
  cl_int status;
  cl_program program = cl_->clCreateProgramWithSource(context_, 5, parts, sizes, &status);
  if (status != CL_SUCCESS) {
    say(error, error_bytes, "%s cannot build %s.cl: %s", name_, text.name, error_name(status));
    return nullptr;
  }
  status = build(*cl_, program, device_, options_);
  if (status != CL_SUCCESS) {
    char log[300] = "";
    build_error(*cl_, program, device_, log, sizeof log);
    say(error, error_bytes, "%s cannot build %s.cl: %s", name_, text.name,
        *log ? log : error_name(status));
    cl_->clReleaseProgram(program);
    return nullptr;
  }
  ++compiled;
  if (*cache.folder && cache.writes) keep_binary(program, key);
  return program;
}

void Programs::keep_binary(cl_program program, const Text& key) {
  size_t bytes = 0, size = 0;
  cl_int status =
      cl_->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, &size);
  if (status != CL_SUCCESS || !bytes) return;  // a driver need not have any
  unsigned char* data = static_cast<unsigned char*>(malloc(bytes));
  if (!data) return;
  status = cl_->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, &size);
  Text binary;
  binary.add_bytes(data, bytes);
  if (status == CL_SUCCESS && !binary.failed) cache.store(key, binary);
  binary.release();
  free(data);
}

void Programs::close() {
  const Built* all = reinterpret_cast<const Built*>(built_.data);
  for (size_t i = 0; i < built_.size / sizeof(Built); ++i) cl_->clReleaseProgram(all[i].program);
  built_.release();
  identity_.release();
  trial.close();
}

cl_program load_binary(const Functions& cl, cl_context context, cl_device_id device,
                       const Text& binary, const char* options) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(binary.text());
  cl_int status, taken = CL_SUCCESS;
  cl_program program = cl.clCreateProgramWithBinary(context, 1, &device, &binary.size, &bytes,
                                                    &taken, &status);
  if (status != CL_SUCCESS || !program) return nullptr;
  if (taken == CL_SUCCESS && build(cl, program, device, options) == CL_SUCCESS) return program;
  cl.clReleaseProgram(program);
  return nullptr;
}

void build_error(const Functions& cl, cl_program program, cl_device_id device, char* out,
                 size_t bytes) {
  size_t size = 0;
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  char* log = size && size < (1u << 24) ? static_cast<char*>(calloc(1, size + 1)) : nullptr;
  say(out, bytes, "no build log");
  if (!log) return;
  cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, &size);
  const char* const words[] = {"error", "fatal", "unresolved"};
  const char* chosen = nullptr;
  bool says_why = false;
  for (char* line = strtok(log, "\r\n"); line && !says_why; line = strtok(nullptr, "\r\n")) {
    line += strspn(line, " \t");
    if (!*line) continue;
    if (!chosen) chosen = line;
    for (const char* word : words)
      if (strcasestr(line, word)) says_why = true;
    if (says_why) chosen = line;
  }
  if (chosen) say(out, bytes, "%s", chosen);
  free(log);
}

}  // namespace lite::opencl
