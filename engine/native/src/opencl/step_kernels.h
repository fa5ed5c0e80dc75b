// The kernels of each step: which of its ways the device goes, and their programs, built.
#pragma once

#include "executor.h"

namespace lite::opencl {

// For each step that has several ways the one that the device's table says, else that of this number,
// as in Onto. False without memory.
bool choose_ways(lite_program*, int way);
// Whether the step runs what its row in the file names.
bool is_own_way(const Executor&, uint32_t row);
// Every step's kernels, and what they need of constants, images and scratch. A step that does not
// build is tried as the file has it, then left to the CPU; with `whole` that is a failure, with a
// reason in env.error.
bool make_kernels(lite_program*, bool whole);
// Notes a row as the CPU's.
void leave(Left*, uint32_t row, const char* name, const char* reason);
// False with a reason in env.error.
bool refused(lite_program*, const char* what, cl_int status);

}  // namespace lite::opencl
