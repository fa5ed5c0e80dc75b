// OpenCL devices: what each says of itself, which one is taken, and the one that is open.
#pragma once

#include "library.h"
#include "programs.h"
#include "tuning.h"

namespace lite::opencl {

constexpr int kMaxDevices = 32;

// As DeviceProfile's device_class in backends/opencl/profile.py, in the same words.
enum class DeviceClass : uint8_t { kCpu, kGpu, kNvidia, kMali, kAdreno };
const char* class_name(DeviceClass);
// `kind`: "CPU", "GPU" or "other".
DeviceClass class_of(const char* kind, const char* platform, const char* name, const char* vendor);

// What a program may need: bits of NEEDS in backends/opencl/native_plan.py. The last four are ways to
// write a dot product of four 8-bit integers (kernels/i8.h).
constexpr uint8_t kFp16 = 1, kMatrixUnits = 2, kDotKhr = 4, kDotArm = 8, kDotArmAdd = 16, kDotQcom = 32;
constexpr uint8_t kDots = kDotKhr | kDotArm | kDotArmAdd | kDotQcom;
// The first of the features in words, for a sentence.
const char* feature_name(uint8_t features);

struct DeviceInfo {
  char platform[256], name[256], vendor[256], version[256], driver[256];
  char* extensions;  // separated by spaces; of listed devices only, the lister frees it
  const char* kind;  // "CPU", "GPU" or "other"
  DeviceClass device_class;
  uint32_t compute_units;
  uint64_t global_memory, largest_buffer, local_memory;  // bytes
  size_t group_size, group_sizes[3];                     // most work-items: in all, per dimension
  uint32_t buffer_align;                                 // bytes, of where a sub-buffer may begin
  int lanes;                                             // floats in a vector register: 4, 8 or 16
  uint32_t image_columns, image_rows;                    // of the largest image2d, 0: no images
  uint8_t dots;       // features among kDots that it has
  bool fp16;          // half arithmetic, not only storage
  bool matrix_units;  // NVIDIA's, tried with right numbers
  bool fast_fma;      // of a CPU
  bool unified_memory;

  uint8_t features() const {
    return (fp16 ? kFp16 : 0) | (matrix_units ? kMatrixUnits : 0) | dots;
  }
};

struct ListedDevice {
  Functions cl;
  cl_device_id id;
  DeviceInfo info;
};

// Every device of a platform; their number. Nothing is compiled.
int list_devices(const Platform&, ListedDevice* out, int room);
// Why not even a trivial kernel runs; false with one line in `reason`.
bool runs_trivially(const ListedDevice&, char* reason, size_t reason_bytes);
// A JSON object for each device of a platform is written to `fd`, each in a line "D object". With
// `tried` only; otherwise its devices are just counted.
void describe_devices(const Platform&, bool tried, int fd);

// Whether matrix units give the right numbers, in both precisions; false off NVIDIA.
bool matrix_units_work(const ListedDevice&, cl_context, cl_command_queue);

struct DeviceOptions {
  const char* device = nullptr;     // index or part of the name; nullptr: LITE_OPENCL_DEVICE
  const char* cache_dir = nullptr;  // folder of compiled kernels; nullptr: none are kept
  const char* beside = nullptr;     // the model file's folder, nullptr: none
  const char* runner = nullptr;     // lite_run, which opens unknown libraries (opening.h)
  int timeout_s = 0;
  bool timed = false;  // the queue notes times of its events
};

struct SharedContext;

// A device ready for use. One thread at a time.
struct Device {
  Functions cl;
  cl_device_id id = nullptr;
  SharedContext* shared = nullptr;
  cl_context context = nullptr;      // its context
  cl_command_queue queue = nullptr;  // in order
  DeviceInfo info;
  int index = 0;  // in the order of the list
  bool timed = false;  // as in the options
  char library[512];
  Programs programs;
  Tuning tuning;

  // Half arithmetic where values are multiplied as they are: not on CPUs.
  bool half_math() const { return info.fp16 && info.device_class != DeviceClass::kCpu; }
  void close();
};

// Chooses as backends/opencl/device.py does: the named device, else the first that runs a trivial
// kernel, GPUs first. False with one line in `error`.
bool open_device(const DeviceOptions&, Device* out, char* error, size_t error_bytes);

}  // namespace lite::opencl
