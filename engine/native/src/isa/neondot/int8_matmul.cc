// int8_matmul.cc for the instruction set of this folder.
#include "isa/int8_matmul.cc"
