// dynamic_quantize.cc for the instruction set of this folder.
#include "isa/dynamic_quantize.cc"
