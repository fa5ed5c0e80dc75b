// tap_gemm.cc for the instruction set of this folder, with products of halves.
#define LITE_HALF_PRODUCTS
#include "isa/tap_gemm.cc"
