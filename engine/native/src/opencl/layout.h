// Where the tensors of a plan lie on the device, and whether every launch stays there.
#pragma once

#include "../runtime/program.h"
#include "device_plan.h"

namespace lite::opencl {

// place_of: per tensor its buffer, -1 where it has none. False with a reason in env.error where a
// tensor does not fit its buffer, or what a step writes has none.
bool assign_places(const DevicePlan&, const Program&, int32_t* place_of, Env&);
// Whether every launch stays within its memory (reach.h). constant_bytes: per constant; `needed`:
// per launch whether it is looked at, nullptr: all are.
bool check_launches(const DevicePlan&, const Program&, const int32_t* place_of,
                    const size_t* constant_bytes, uint64_t local_memory, const bool* needed,
                    Env&);

}  // namespace lite::opencl
