// Which of the ways to compute a step is the fastest on a device, by running a program with each.
#pragma once

#include "executor.h"

namespace lite::opencl {

// Measures the ways of a file's program for sizes that the device's table does not know, and keeps
// what it finds there. A way that fails is not the fastest. The device notes times, and is the
// caller's.
void measure(const lite_file*, const void* part, size_t part_bytes, const lite_options&, Device*);

}  // namespace lite::opencl
