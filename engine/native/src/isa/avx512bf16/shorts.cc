// shorts.cc for the instruction set of this folder.
#include "isa/shorts.cc"
