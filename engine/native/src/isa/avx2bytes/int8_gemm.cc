// int8_gemm.cc for the instruction set of this folder.
#include "isa/int8_gemm.cc"
