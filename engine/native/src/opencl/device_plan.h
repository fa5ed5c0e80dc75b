// The OpenCL part of a program, checked and in the runtime's own memory. The format is in
// lite_engine/backends/opencl/native_plan.py, which writes it.
#pragma once

#include "device.h"
#include "lite_kernel.h"

namespace lite::opencl {

struct Place {
  uint32_t tensor, buffer;
};

enum class Operation : uint8_t {
  kReshape,
  kTranspose,
  kPad,
  kHalf,
  kFloat,
  kScale,
  kWinograd,
  kReverse,
  kFlip,
  kWiden,
};

struct ConstantStep {
  Operation operation;
  uint8_t count;
  uint32_t values[kMaxRank];
};

// A weight and what is done to it, in order.
struct Constant {
  uint32_t weight;
  DType dtype;
  uint8_t rank, num_steps;
  uint32_t dims[kMaxRank];
  const ConstantStep* steps;
};

struct Image {
  uint32_t width, height;
  DType dtype;
  int32_t constant;  // -1: scratch
};

enum class Argument : uint8_t {
  kTensor = 1,
  kConstant,
  kScratch,
  kImage,
  kInt,
  kFloat,
  kUchar,
  kUshort,
  kUint,
  kUlong,
};
constexpr uint32_t kMaxArguments = 64;

struct Launch {
  const KernelText* text;
  const char *options, *kernel;
  uint32_t dimensions;
  size_t grid[3], group[3];
  uint32_t num_args;
  Argument kinds[kMaxArguments];
  uint32_t values[kMaxArguments];
};

// The last two are not a file's, but those of steps that left the device (host_steps.cc): copies that
// bring rows together and change halves to floats, and back.
enum class Action : uint32_t { kLaunches, kUpload, kDownload, kFetch, kStore };

struct DeviceStep {
  uint32_t step;
  Action action;
  uint32_t first, count;    // launches
  const char* host_kernel;  // of the CPU, which may take the step over; nullptr: none
  bool floats;              // it computes in floats where the device has halves
  uint32_t origin;          // its row in the file
};

// What computes a row, by the words of a tuning table. The first of a row is what the row itself names.
struct Way {
  uint32_t row;
  const char *size, *name;
  uint32_t first, count;  // launches
};

struct DevicePlan {
  uint32_t version;
  DeviceClass device_class;
  int lanes;
  uint8_t needs;           // features
  uint32_t columns, rows;  // of the largest image
  uint32_t num_buffers, num_places, num_constants, num_scratch, num_images, num_launches, num_steps,
      num_ways;
  const uint64_t *buffers, *scratch;  // bytes
  const Place* places;
  const Constant* constants;
  const Image* images;
  const Launch* launches;
  DeviceStep* steps;
  const Way* ways;  // in the order of the rows
  const uint8_t* program;
  size_t program_bytes;
};

bool is_device_plan(const uint8_t* bytes, size_t size);
// Only what comes before the tables: for which devices it is. False for whatever is not a plan.
bool read_profile(const uint8_t* bytes, size_t size, DevicePlan*);
// Everything but what only a program's tensors can tell. False with a reason in env.error.
bool parse_device_plan(const uint8_t* bytes, size_t size, Env&, DevicePlan*);

}  // namespace lite::opencl
