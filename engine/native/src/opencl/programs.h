// Programs of one device: a kernel text after `#define` lines, compiled once and kept, in memory and
// on disk.
#pragma once

#include "api.h"
#include "binary_cache.h"
#include "kernel_texts.h"
#include "load_trial.h"

namespace lite::opencl {

struct Programs {
  BinaryCache cache;
  LoadTrial trial;
  int compiled = 0;  // programs that were not in the cache

  // `identity`: platform, device, versions of device and driver. `cache_dir` nullptr: nothing kept.
  void open(const Functions* cl, cl_context, cl_device_id, const char* const identity[4], bool cpu,
            const char* cache_dir);
  // lite_run (nullptr: none), the library, the device's number there: for the first load ever.
  void use_runner(const char* runner, const char* library, int device);
  // The built program, which stays this object's; nullptr with one line in `error`.
  cl_program get(const KernelText&, const char* defines, char* error, size_t error_bytes);
  // What a person should know once, empty when nothing happened.
  const char* warning() const { return *trial.warning ? trial.warning : cache.warning; }
  void close();

 private:
  struct Built {
    uint8_t digest[32];
    cl_program program;
  };
  cl_program loaded(const Text& key);
  cl_program compile(const KernelText&, const char* defines, const Text& key, char* error,
                     size_t error_bytes);
  void keep_binary(cl_program, const Text& key);

  const Functions* cl_ = nullptr;
  cl_context context_ = nullptr;
  cl_device_id device_ = nullptr;
  char name_[256] = "";
  const char* options_ = "";
  Text identity_;
  Text built_;  // array of Built
};

// What every program is built with: BUILD_OPTIONS of backends/opencl/profile.py.
constexpr char kBuildOptions[] = "-cl-mad-enable";
constexpr char kCpuBuildOptions[] = "-cl-mad-enable -DCPU";

// The line of a build log that says why.
void build_error(const Functions&, cl_program, cl_device_id, char* out, size_t bytes);
// A program made of a driver's binary and built; nullptr when it is refused.
cl_program load_binary(const Functions&, cl_context, cl_device_id, const Text& binary,
                       const char* options);

}  // namespace lite::opencl
