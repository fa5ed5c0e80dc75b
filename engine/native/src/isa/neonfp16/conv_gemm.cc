// conv_gemm.cc for the instruction set of this folder, with products of halves.
#define LITE_HALF_PRODUCTS
#include "isa/conv_gemm.cc"
