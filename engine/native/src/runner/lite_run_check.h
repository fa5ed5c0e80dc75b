// lite_run --check: the same run on the CPU, output by output.
#pragma once

#include <stddef.h>

#include "lite_runtime.h"

// Runs the file's program for the CPU on the inputs of `p`, which has run, and prints a line for each
// output. False, with one line in `error`, where an output differs by more than rounding explains.
bool agrees_with_cpu(lite_file* file, lite_program* p, const lite_options& options, char* error,
                     size_t error_bytes);
