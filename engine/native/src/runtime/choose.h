// Leaving a device that failed.
#pragma once

#include "runtime.h"

namespace lite {

// A program of a file whose device failed goes on with the file's program for the CPU, and its
// choice says why. False, with env.error, where that cannot be.
bool fall_back(lite_program*);
// A run of the program that took over, on this one's inputs and outputs.
bool run_fallback(lite_program*);

}  // namespace lite
