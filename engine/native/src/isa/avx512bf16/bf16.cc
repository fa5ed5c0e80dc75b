// bf16.cc for the instruction set of this folder.
#include "isa/bf16.cc"
