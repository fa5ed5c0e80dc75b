// The integer kernels once more, for the instruction set of this folder.
#include "isa/int8_tile.cc"
#include "isa/int8_gemm.cc"
#include "isa/int8_conv.cc"
