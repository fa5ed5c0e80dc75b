// lite_run --check: the same run on the CPU, output by output.
#pragma once

#include <stddef.h>

#include "lite_runtime.h"

// Numbers for an input that is not given, the same in every run: from -1 to 1, bytes of any value, else 0 or 1, which
// are indices of every table.
void fill_with_numbers(const lite_tensor_info& info, void* data);

// Runs `p` and the file's program for the CPU on the inputs of `p`, and prints a line for each output.
// Where one differs by more than rounding explains, the layers that are wrong on the device go to the
// CPU until none differs. False, with one line in `error`, where one still does.
bool agrees_with_cpu(lite_file* file, lite_program* p, const lite_options& options, char* error,
                     size_t error_bytes);
