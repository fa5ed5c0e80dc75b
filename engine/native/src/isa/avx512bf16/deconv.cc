// deconv.cc for the instruction set of this folder.
#include "isa/deconv.cc"
