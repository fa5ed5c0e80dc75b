// What programs of one process share on a device: its context, and the constants that they make of the same
// weights. Several sizes of a model and several predictors of it hold its weights once.
#pragma once

#include "api.h"
#include "device_plan.h"

namespace lite::opencl {

struct SharedContext;

// The process's context on a device, made if no program has one; nullptr with the reason in `status`.
SharedContext* enter_context(const Functions&, cl_device_id, cl_int* status);
cl_context context_of(const SharedContext*);
// Its last user releases it. Its constants were given back before.
void leave_context(SharedContext*);
// After a device failed: who enters from now on gets a new context.
void abandon_context(SharedContext*);

// Whether the device's matrix units work, once a program has tried them; false before.
bool know_matrix_units(SharedContext*, bool* work);
void note_matrix_units(SharedContext*, bool work);

// What tells a constant from others, apart from its operations. A program that uses it keeps its source where
// it is.
struct ConstantSource {
  const void* data;
  size_t bytes;
  uint32_t sum;        // of the bytes, unless they cannot change
  const Image* image;  // nullptr: a buffer
};

// The constant that a program uses, with the bytes of its array; nullptr where none does.
cl_mem find_constant(SharedContext*, const Constant&, const ConstantSource&, size_t* bytes);
// Hands over one that the caller has made and uses. False where there is no memory for the entry.
bool add_constant(SharedContext*, const Constant&, const ConstantSource&, size_t bytes, cl_mem);
// The last user of a constant releases it.
void drop_constant(SharedContext*, cl_mem);

}  // namespace lite::opencl
