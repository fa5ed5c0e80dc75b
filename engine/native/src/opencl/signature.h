// What kinds of arguments a kernel takes, read from its own text.
#pragma once

#include "device_plan.h"

namespace lite::opencl {

// Whether a launch has a kernel of its text, and as many arguments as that, each of its kind: a
// driver may not survive a number where it expects memory. False with a reason in env.error.
bool matches_signature(const Launch&, Env&);

}  // namespace lite::opencl
