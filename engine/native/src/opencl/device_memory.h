// What a program has on its device: buffers of its tensors, packed weights, images, scratch.
#pragma once

#include "executor.h"

namespace lite::opencl {

// False with a reason in env.error; what was made until then is the caller's to release.
bool make_memory(lite_program*, const void* const* weights, const size_t* weight_bytes, size_t num_weights);
void release_memory(Executor*);

}  // namespace lite::opencl
