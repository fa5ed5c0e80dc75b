// Steps that a device does not run: the CPU takes each over, between copies that profiles show.
#pragma once

#include "executor.h"

namespace lite::opencl {

// Puts the CPU's kernels in the place of the rows that x.left names: the program gets tensors on the
// host beside those of the device, and copies. Halves become floats where the kernel wants them.
// Before the program's memory is set up. False with a reason in env.error.
bool move_to_host(lite_program*, const void* const* weights, const size_t* weight_bytes,
                  size_t num_weights);
// The rows of a device's tensor to a dense one of the host, and back; halves there may be floats here.
void to_host(const Tensor& device, const uint8_t* bytes, const Tensor& host);
void from_host(const Tensor& host, const Tensor& device, uint8_t* bytes);

}  // namespace lite::opencl
