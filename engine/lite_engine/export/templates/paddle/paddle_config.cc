// Settings of paddle_api.h, and what it asks of the machine.
#include <cctype>
#include <cstring>
#include <string>

#include "lite_runtime.h"
#include "paddle_api.h"
#include "paddle_log.h"

namespace paddle {
namespace lite_api {

namespace {

void without_effect(const char* setting) {
  LITE_LOG("%s has no effect: this runtime drives CPUs and OpenCL", setting);
}

struct OpenCl {
  bool usable = false, fp16 = false;
  int kind = -1;
};

int kind_of(std::string device) {
  for (char& c : device) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  const char* const words[] = {"adreno", "mali", "powervr"};
  for (int i = 0; i < 3; ++i)
    if (device.find(words[i]) != std::string::npos) return i + 1;
  return 4;
}

// Rows of the report's devices; quotes within its texts are escaped, so no text reads like a key.
OpenCl look() {
  OpenCl found;
  char* text = lite_opencl_report(nullptr, 0);
  std::string report = text ? text : "";
  lite_text_free(text);
  size_t at = report.find("\"devices\": [");
  while (at != std::string::npos && (at = report.find("{\"index\":", at)) != std::string::npos) {
    const size_t next = report.find("{\"index\":", at + 1);
    const std::string device = report.substr(at, next == std::string::npos ? next : next - at);
    at = next;
    if (device.find("\"reason\": \"\"") == std::string::npos) continue;
    if (!found.usable) found.kind = kind_of(device.substr(0, device.find("\"extensions\":")));
    found.usable = true;
    found.fp16 = found.fp16 || device.find("\"fp16\": true") != std::string::npos;
  }
  return found;
}

const OpenCl& opencl() {
  static const OpenCl found = look();
  return found;
}

}  // namespace

bool IsOpenCLBackendValid(bool check_fp16_valid) {
  return opencl().usable && (opencl().fp16 || !check_fp16_valid);
}
int GetOpenCLDeviceType() { return opencl().kind; }

ConfigBase::ConfigBase(PowerMode mode, int threads) {
  set_power_mode(mode);
  set_threads(threads);
}

void ConfigBase::set_threads(int threads) {
  if (threads < 1) LITE_LOG("threads must be at least 1, got %d; one is used", threads);
  threads_ = threads < 1 ? 1 : threads;
}

void ConfigBase::set_power_mode(PowerMode mode) {
  if (mode < LITE_POWER_HIGH || mode > LITE_POWER_RAND_LOW) {
    LITE_LOG("power mode %d does not exist; LITE_POWER_NO_BIND is used", static_cast<int>(mode));
    mode = LITE_POWER_NO_BIND;
  }
  if (mode == LITE_POWER_LOW || mode >= LITE_POWER_RAND_HIGH)
    LITE_LOG("LITE_POWER_LOW and LITE_POWER_RAND_*: the system chooses the cores");
  mode_ = mode;
}

void ConfigBase::set_opencl_binary_path_name(const std::string& path, const std::string&) {
  opencl_path_ = path;
}

void ConfigBase::set_opencl_tune(CLTuneMode mode, const std::string&, const std::string&, size_t) {
  if (mode != CL_TUNE_NONE)
    LITE_LOG("set_opencl_tune has no effect: variants and work-group sizes are the file's");
}

void ConfigBase::set_opencl_precision(CLPrecisionType precision) { opencl_precision_ = precision; }

void ConfigBase::set_subgraph_model_cache_dir(const std::string&) {
  without_effect("set_subgraph_model_cache_dir");
}
bool ConfigBase::check_nnadapter_device_name(const std::string&) { return false; }
void ConfigBase::set_nnadapter_device_names(const std::vector<std::string>&) {
  without_effect("set_nnadapter_device_names");
}
void ConfigBase::set_nnadapter_context_properties(const std::string&) {
  without_effect("set_nnadapter_context_properties");
}
void ConfigBase::set_nnadapter_model_cache_dir(const std::string&) {
  without_effect("set_nnadapter_model_cache_dir");
}
void ConfigBase::set_nnadapter_model_cache_buffers(const std::string&, const std::vector<char>&) {
  without_effect("set_nnadapter_model_cache_buffers");
}
void ConfigBase::set_nnadapter_dynamic_shape_info(
    const std::map<std::string, std::vector<std::vector<int64_t>>>&) {
  without_effect("set_nnadapter_dynamic_shape_info");
}
void ConfigBase::set_metal_lib_path(const std::string&) { without_effect("set_metal_lib_path"); }
void ConfigBase::set_metal_use_mps(bool) { without_effect("set_metal_use_mps"); }
void ConfigBase::set_metal_use_aggressive(bool) { without_effect("set_metal_use_aggressive"); }
void ConfigBase::set_metal_use_memory_reuse(bool) { without_effect("set_metal_use_memory_reuse"); }
void ConfigBase::set_metal_device(void*) { without_effect("set_metal_device"); }
void ConfigBase::add_discarded_pass(const std::string&) {
  LITE_LOG("add_discarded_pass has no effect: a file's passes ran when it was converted");
}

void MobileConfig::set_model_from_file(const std::string& path) {
  file_ = path;
  from_memory_ = false;
}
void MobileConfig::set_model_from_buffer(const std::string& bytes) {
  set_model_from_buffer(std::string(bytes));
}
void MobileConfig::set_model_from_buffer(std::string&& bytes) {
  buffer_ = std::move(bytes);
  param_.clear();
  from_memory_ = true;
}
void MobileConfig::set_model_from_buffer(const char* bytes, size_t size) {
  set_model_from_buffer(std::string(bytes, size));
}
void MobileConfig::set_model_buffer(const char* model, size_t model_size, const char* param,
                                    size_t param_size) {
  set_model_from_buffer(model, model_size);
  param_.assign(param ? param : "", param ? param_size : 0);
}

void MobileConfig::SetArmL3CacheSize(L3CacheSetMethod, int) {
  LITE_LOG("SetArmL3CacheSize has no effect: kernels are prepared for the caches that are found");
}

bool MobileConfig::check_fp16_valid() {
  return std::string(lite_cpu_features()).find("neonfp16") != std::string::npos;
}

}  // namespace lite_api
}  // namespace paddle
