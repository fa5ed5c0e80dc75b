// Leaving a device that failed.
#pragma once

#include "runtime.h"

namespace lite {

// After a run that failed, another program takes over; its choice says why. leave_step: the same without
// the step at which the device failed. fall_back: the file's program for the CPU. False where that
// cannot be: env.error then still says why the run failed.
bool leave_step(lite_program*);
bool fall_back(lite_program*);
// A run of the program that took over, on this one's inputs and outputs.
bool run_next(lite_program*);

}  // namespace lite
