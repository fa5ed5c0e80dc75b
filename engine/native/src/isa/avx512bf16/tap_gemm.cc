// tap_gemm.cc for the instruction set of this folder.
#include "isa/tap_gemm.cc"
