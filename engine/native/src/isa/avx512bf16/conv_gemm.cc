// conv_gemm.cc for the instruction set of this folder.
#include "isa/conv_gemm.cc"
