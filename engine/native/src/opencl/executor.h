// Runs a program whose steps are those of an OpenCL device and of the CPU, in the plan's order.
#pragma once

#include "../runtime/runtime.h"
#include "borders.h"
#include "device_plan.h"

namespace lite::opencl {

// Steps that the CPU took over because the device does not run them.
struct Left {
  bool* rows;        // per row of the file's plan
  uint32_t count;
  const char* name;  // the first such step
  char reason[300];
  bool* own_way;     // per row: it runs as the file has it, because another way failed; nullptr: none
};

// What the ways that were chosen need: a flag for each row of the plan's tables.
struct Needed {
  bool *launches, *constants, *images, *scratch;
};

struct Executor {
  Device* device;      // its own
  DevicePlan plan;
  const DeviceStep* file_steps;  // plan.steps before some were left to the CPU
  uint32_t num_file_steps;
  int32_t* place_of;   // per tensor: its buffer, -1: none
  int32_t* step_of;    // per step: its row of the plan, -1: a step of the CPU
  cl_mem *buffers, *constants, *scratch, *images;
  size_t* constant_bytes;
  cl_kernel* kernels;  // per launch
  int32_t* way_of;     // per row of the file's plan: its way in plan.ways, -1: it has one only
  Needed needed;
  Borders borders;
  size_t device_bytes;
  Left left;
  bool reference;      // as in Onto
  uint8_t* staging;    // a tensor of the device between its form there and on the host
  int32_t failed_row;  // of the file's plan: what the last run ended at, -1: nothing of one step
};

// What a program is loaded onto: a device, less the steps that failed on it before (nullptr: none).
// `whole`: a step that the device does not take is a failure, because another program may do.
// `way`: the number of the way of each step that the device's table does not know, -1: the first.
struct Onto {
  Device* device;
  const Left* left;
  bool whole;
  int way = -1;
  bool reference = false;  // every step that can is the CPU's
  Ports* ports = nullptr;  // of the program that this one takes over from
};

// A device that the options name, for close_device; nullptr with one line in `error`. `beside` is the
// model file's folder, where a table of what was measured may lie, nullptr: none.
Device* new_device(const lite_options&, const char* beside, char* error, size_t error_bytes);
void close_device(Device*);
// What a file's section TUNED says of the device's fastest variants.
void add_stored_tuning(Device*, const char* section, size_t bytes);
// Loads a program with its OpenCL part onto a device, which is the executor's from then on where
// that is true. The program's memory holds the executor. A step whose kernels the device does not take
// goes to the CPU where the file says how. False with a reason in env.error.
bool load(lite_program*, const uint8_t* bytes, size_t size, const void* const* weights,
          const size_t* weight_bytes, size_t num_weights, const Onto&);
// After a run that failed: whether the same program without the step at which it did may go on. Its
// device is then no longer the program's.
bool leave_failed_step(lite_program*, Onto*);
// The same program onto the same device, with layers that the CPU runs from then on; `p` keeps the device.
// False with a reason in env.error where one is not the device's or the CPU has no kernel for it.
bool leave_layers(lite_program* p, const char* const* layers, int count, const char* reason, Left* left);
Device* device_of(const Executor*);
// Takes what a program has on its device away from it; the device is the caller's from then on.
Device* detach(lite_program*);
// The same for a program that takes over from this one and has its ports.
Device* hand_over(lite_program*);
// A device that no program runs on any more; it stays while `p` has ports on it.
void retire(lite_program* p, Device*);
// The memory of an input or output that a device which shares the host's memory computes in; nullptr:
// it has none, or it cannot be mapped, which the next run says.
uint8_t* port_memory(lite_program*, int tensor);
// Writes the program's choice: the device, for which kind the program was made, what the CPU runs.
void describe(lite_program*);
// What a person should know once of a device's folders, and what was measured on it; nullptr: nothing.
const char* device_warning(const Executor*);
const char* tuning_summary(const Executor*);
// Gives the device back, at the end of the program that has it.
void unload(lite_program*);
// Every step once: run_steps of programs with an OpenCL part.
bool run(lite_program*);

}  // namespace lite::opencl
