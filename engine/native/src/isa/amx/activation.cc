// activation.cc for the instruction set of this folder.
#include "isa/activation.cc"
