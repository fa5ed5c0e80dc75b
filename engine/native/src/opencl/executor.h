// Runs a program whose steps are those of an OpenCL device and of the CPU, in the plan's order.
#pragma once

#include "../runtime/runtime.h"
#include "device_plan.h"

namespace lite::opencl {

struct Executor {
  Device* device;      // its own
  DevicePlan plan;
  int32_t* place_of;   // per tensor: its buffer, -1: none
  int32_t* step_of;    // per step: its row of the plan, -1: a step of the CPU
  cl_mem *buffers, *constants, *scratch, *images;
  size_t* constant_bytes;
  cl_kernel* kernels;  // per launch
  size_t device_bytes;
};

// A device that the options name, for close_device; nullptr with one line in `error`.
Device* new_device(const lite_options&, char* error, size_t error_bytes);
void close_device(Device*);
// Loads a program with its OpenCL part onto a device, which is the executor's from then on where
// that is true. The program's memory holds the executor. False with a reason in env.error.
bool load(lite_program*, const uint8_t* bytes, size_t size, const void* const* weights,
          const size_t* weight_bytes, size_t num_weights, Device*);
// Writes the program's choice: the device, and for which kind the program was made.
void describe(lite_program*);
// Gives the device back.
void unload(Executor*);
// Every step once: run_steps of programs with an OpenCL part.
bool run(lite_program*);

}  // namespace lite::opencl
