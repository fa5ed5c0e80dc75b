// conv_gemm.cc in fp16, for the instruction set of this folder.
#define LITE_FP16
#include "isa/conv_gemm.cc"
