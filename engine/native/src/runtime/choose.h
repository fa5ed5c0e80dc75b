// Which program of a file runs, and which takes over where that one's device failed.
#pragma once

#include "runtime.h"

namespace lite {

// The file's program for a CPU target, which must be this machine's. nullptr with one line in `error`.
lite_program* cpu_program(lite_file*, const char* target, const lite_options&, char* error,
                          size_t error_bytes);
// After a run that failed, another program takes over; its choice says why. leave_step: the same without
// the step at which the device failed. fall_back: the file's program for the CPU. False where that
// cannot be: env.error then still says why the run failed.
bool leave_step(lite_program*);
bool fall_back(lite_program*);
// A run of the program that took over, on this one's inputs and outputs.
bool run_next(lite_program*);

}  // namespace lite
