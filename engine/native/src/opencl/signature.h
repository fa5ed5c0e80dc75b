// What kinds of arguments a kernel takes, read from its own text.
#pragma once

#include "device_plan.h"

namespace lite::opencl {

// A parameter as the text has it: "global const T *x" is memory of T called x.
struct Parameter {
  const char *type, *name;
  size_t type_length, name_length;
  bool memory, image, written;  // written: memory without const, or an image that is written only
};

// The kernel's parameters, in order. A launch must have as many arguments as that, each of its
// kind: a driver may not survive a number where it expects memory. The number of parameters, or -1
// with a reason in env.error.
int matching_parameters(const Launch&, Env&, Parameter out[kMaxArguments]);

}  // namespace lite::opencl
