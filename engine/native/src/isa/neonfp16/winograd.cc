// winograd.cc of halves, for the instruction set of this folder.
#define LITE_HALVES
#include "isa/winograd.cc"
