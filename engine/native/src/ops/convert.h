// Elements of any type as int64 or double, a chunk at a time: what kernels that work on every type
// compute in.
#pragma once

#include "lite_kernel.h"

namespace lite {

constexpr int kChunk = 512;  // elements that fit the stack and the L1 cache

bool is_float(DType);  // f32, f16, bf16, f64

// `stride` is in elements; 0 repeats. u64 beyond 2^63 keeps its bits.
void load_ints(DType, const uint8_t* from, int64_t stride, int n, int64_t* out);
void load_doubles(DType, const uint8_t* from, int64_t stride, int n, double* out);
// Integers wrap, doubles are rounded to float types and truncated to integers (not finite: 0).
void store_ints(DType, const int64_t* from, int n, uint8_t* out);
void store_doubles(DType, const double* from, int n, uint8_t* out);

void halves_to_floats(const uint16_t* from, int64_t n, float* to);
void floats_to_halves(const float* from, int64_t n, uint16_t* to);  // ties to even
float half_to_float(uint16_t);
uint16_t float_to_half(float);    // ties to even
uint16_t float_to_bfloat(float);  // ties to even

// A scalar attribute as the bytes of one element.
void element_of(DType, double value, uint8_t out[8]);

}  // namespace lite
