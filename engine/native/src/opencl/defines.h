// The `#define` lines of a launch. Kernel texts are the runtime's own; these lines come with a file.
#pragma once

#include "lite_kernel.h"

namespace lite::opencl {

// Whether every line gives a name nothing, a number or a type, or one of the functions that kernels
// leave open a pure expression of its parameters: no memory is reached, nothing is assigned. False
// with a reason in env.error.
bool check_defines(const char* lines, Env& env);

}  // namespace lite::opencl
