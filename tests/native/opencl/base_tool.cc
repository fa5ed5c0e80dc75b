// What tests ask of the OpenCL part of the runtime, one question in each call.
//
//   base_tool class KIND PLATFORM NAME VENDOR     the device class
//   base_tool refusal LIBRARY WORDS               kind, reason and fix, a line each
//   base_tool blake2b BYTES < data                the digest
//   base_tool text NAME                           the kernel text after the #define lines
//   base_tool unpack ENTRY                        "intact", or why an entry of the cache is not
//   base_tool store FOLDER BYTES                  keeps an entry; the cache's warning
//   base_tool programs FOLDER COUNT RUNNER        as tests/opencl/cached_programs.py; RUNNER - is none
//   base_tool defines LINES                       nothing, or why a line may not come with a file
//   base_tool list-devices                        lite_opencl_report
//   base_tool --probe-...                         the other process's part
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lite_runtime.h"
#include "opencl/blake2b.h"
#include "opencl/defines.h"
#include "opencl/device.h"
#include "opencl/refusal.h"
#include "opencl/text.h"

using namespace lite::opencl;

const char* lite_version() { return "test"; }
const char* lite_target() { return "test"; }

namespace {

bool is(const char* a, const char* b) { return strcmp(a, b) == 0; }

const KernelText* named(const char* name) {
  for (int i = 0; const KernelText* text = kernel_text(i); ++i)
    if (is(text->name, name)) return text;
  return nullptr;
}

int hash_input(int digest_bytes) {
  Blake2b hash(digest_bytes);
  uint8_t part[1000], digest[64];
  char hex[129];
  while (const size_t got = fread(part, 1, sizeof part, stdin)) hash.add(part, got);
  hash.finish(digest);
  to_hex(digest, digest_bytes, hex);
  puts(hex);
  return 0;
}

// y = x + number of 16 numbers, as the kernel "unary" computes it.
bool adds(Device& device, cl_program program, int number) {
  const Functions& cl = device.cl;
  float x[16], y[16] = {};
  for (int i = 0; i < 16; ++i) x[i] = i;
  cl_int status;
  const cl_bitfield flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
  cl_mem in = cl.clCreateBuffer(device.context, flags, sizeof x, x, &status);
  cl_mem out = cl.clCreateBuffer(device.context, flags, sizeof y, y, &status);
  cl_kernel kernel = cl.clCreateKernel(program, "unary", &status);
  const int32_t count = 16;
  const size_t items = 4;
  if (!kernel) return false;
  status = cl.clSetKernelArg(kernel, 0, sizeof in, &in);
  status |= cl.clSetKernelArg(kernel, 1, sizeof out, &out);
  status |= cl.clSetKernelArg(kernel, 2, sizeof count, &count);
  status |= cl.clEnqueueNDRangeKernel(device.queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr,
                                      nullptr);
  status |= cl.clEnqueueReadBuffer(device.queue, out, 1, 0, sizeof y, y, 0, nullptr, nullptr);
  cl.clReleaseKernel(kernel);
  cl.clReleaseMemObject(in);
  cl.clReleaseMemObject(out);
  bool right = status == CL_SUCCESS;
  for (int i = 0; i < 16; ++i) right = right && y[i] == x[i] + number;
  return right;
}

int run_programs(const char* folder, int count, const char* runner) {
  DeviceOptions options;
  options.cache_dir = folder;
  options.runner = is(runner, "-") ? nullptr : runner;
  static Device device;
  char error[1000];
  if (!open_device(options, &device, error, sizeof error)) return puts(error), 1;
  int right = 0;
  for (int i = 0; i < count; ++i) {
    char defines[80];
    snprintf(defines, sizeof defines, "#define V 4\n#define ACT(x) ((x) + %d.0f)", i);
    cl_program program = device.programs.get(*named("unary"), defines, error, sizeof error);
    if (!program) return puts(error), 1;
    if (device.programs.get(*named("unary"), defines, error, sizeof error) != program) return 1;
    right += adds(device, program, i);
  }
  // One that no compiler takes.
  if (device.programs.get(*named("unary"), "#define ACT(x) nowhere(", error, sizeof error)) return 1;
  Text out;
  out.add("{\"right\": %d, \"compiled\": %d, \"warning\": ", right, device.programs.compiled);
  out.add_json(device.programs.warning());
  out.add(", \"refused\": ");
  out.add_json(error);
  out.add("}");
  puts(out.text());
  out.release();
  device.close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strncmp(what, "--probe-", 8) == 0) return lite_opencl_child(argc, argv);
  if (is(what, "class") && argc == 6)
    return puts(class_name(class_of(argv[2], argv[3], argv[4], argv[5]))), 0;
  if (is(what, "refusal") && argc == 4) {
    const Refusal refusal = explain_refusal(argv[2], argv[3]);
    printf("%s\n%s\n%s\n", refusal.kind, refusal.reason, refusal.fix);
    return 0;
  }
  if (is(what, "blake2b") && argc == 3) return hash_input(atoi(argv[2]));
  if (is(what, "text") && argc == 3) {
    const KernelText* text = named(argv[2]);
    if (!text || find_kernel_text(text->digest) != text) return 1;
    printf("%s\n%s", text->common, text->text);
    return 0;
  }
  if (is(what, "unpack") && argc == 3) {
    Text file, binary;
    const char* reason = "cannot be read";
    const bool good =
        read_whole(argv[2], &file, &reason) && unpack_entry(file, nullptr, &binary, &reason);
    puts(good ? "intact" : reason ? reason : "no file");
    file.release();
    binary.release();
    return 0;
  }
  if (is(what, "defines") && argc == 3) {
    char error[300] = "";
    lite::Env env{};
    env.error = error;
    env.error_bytes = sizeof error;
    return lite::opencl::check_defines(argv[2], env) ? 0 : (puts(error), 1);
  }
  if (is(what, "store") && argc == 4) {
    static BinaryCache cache;
    snprintf(cache.folder, sizeof cache.folder, "%s", argv[2]);
    Text key, binary;
    key.add("key");
    for (int i = 0; i < atoi(argv[3]); ++i) binary.add_bytes("b", 1);
    cache.store(key, binary);
    cache.store(key, binary);
    puts(cache.warning);
    key.release();
    binary.release();
    return 0;
  }
  if (is(what, "programs") && argc == 5) return run_programs(argv[2], atoi(argv[3]), argv[4]);
  if (is(what, "list-devices")) {
    char* text = lite_opencl_report(argc > 2 ? argv[2] : nullptr, argc > 3 ? atoi(argv[3]) : 0);
    fputs(text, stdout);
    lite_text_free(text);
    return 0;
  }
  return 2;
}
