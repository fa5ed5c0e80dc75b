// In place of everything else of OpenCL in a static executable, which cannot load libraries.
#include <stdlib.h>

#include "executor.h"
#include "child.h"
#include "kernel_texts.h"
#include "measure.h"
#include "text.h"

namespace lite::opencl {

namespace {

constexpr char kReason[] = "this program is linked statically and cannot load libraries";
constexpr char kFix[] = "start lite_run_opencl, or link with liblite_runtime.so";

}  // namespace

Device* new_device(const lite_options&, const char*, char* error, size_t error_bytes) {
  say(error, error_bytes, "OpenCL: %s; %s", kReason, kFix);
  return nullptr;
}

// Without a device nothing of the following is reached.
void close_device(Device*) {}
void add_stored_tuning(Device*, const char*, size_t) {}
bool load(lite_program*, const uint8_t*, size_t, const void* const*, const size_t*, size_t,
          const Onto&) {
  return false;
}
Device* device_of(const Executor*) { return nullptr; }
Device* detach(lite_program*) { return nullptr; }
Device* hand_over(lite_program*) { return nullptr; }
void retire(lite_program*, Device*) {}
uint8_t* port_memory(lite_program*, int) { return nullptr; }
void measure(const lite_file*, const void*, size_t, const lite_options&, Device*) {}
const char* device_warning(const Executor*) { return nullptr; }
const char* tuning_summary(const Executor*) { return nullptr; }
bool leave_failed_step(lite_program*, Onto*) { return false; }
bool leave_layers(lite_program*, const char* const*, int, const char*, Left*) { return false; }
void describe(lite_program*) {}
void unload(lite_program*) {}
bool run(lite_program*) { return false; }
bool add_kernel_text(const char*, size_t, char* error, size_t error_bytes) {
  return say(error, error_bytes, "holds an OpenCL kernel: %s; %s", kReason, kFix);
}
bool load_kernel_text(const char*, char* error, size_t error_bytes) {
  return add_kernel_text(nullptr, 0, error, error_bytes);
}
bool read_profile(const uint8_t*, size_t, DevicePlan*) { return false; }

bool is_device_plan(const uint8_t* bytes, size_t size) {
  return size >= 4 && memcmp(bytes, "LCLP", 4) == 0;
}

}  // namespace lite::opencl

using namespace lite::opencl;

char* lite_opencl_report(const char*, int32_t) {
  Text out;
  out.add("{\"version\": \"%s\", \"target\": \"%s\",\n \"libraries\": [\n  {\"library\": \"\", "
          "\"found_by\": \"\", \"state\": \"static\", \"reason\": \"%s\", \"fix\": \"%s\"}],\n "
          "\"devices\": [],\n \"kernels\": {}}\n",
          lite_version(), lite_target(), kReason, kFix);
  if (out.failed) out.release();
  return out.data;
}

int lite_program_check(lite_program*, double, lite_layer_check* first, char*, size_t) {
  *first = {};
  return 0;
}

void lite_text_free(void* text) { free(text); }

int lite_opencl_child(int, char**) { return kNotStarted; }
