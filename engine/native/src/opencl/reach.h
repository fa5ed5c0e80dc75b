// Whether a launch stays within its memory, by what its kernel states.
#pragma once

#include "signature.h"

namespace lite::opencl {

// The memory that an argument names. Arguments of one `kind` and `number` share it.
struct Memory {
  Argument kind;
  uint32_t number;
  uint64_t bytes;          // of a buffer
  uint32_t width, height;  // of an image
  bool constant;           // no launch writes it
};

// Evaluates the kernel's statement for a launch: its grid and groups are the ones it asks for, its
// conditions hold, each argument's elements that it reaches lie inside its memory, and what it
// writes is apart from everything else. `memory` is by argument. False with a reason in env.error.
bool stays_within(const Launch&, const Memory memory[], uint64_t local_memory, Env&);
// Bytes of local memory that the kernel's statement asks for; 0 also for a statement that is wrong,
// which stays_within refuses.
uint64_t local_memory_of(const Launch&, const Env&);

}  // namespace lite::opencl
