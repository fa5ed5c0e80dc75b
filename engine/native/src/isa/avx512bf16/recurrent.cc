// recurrent.cc for the instruction set of this folder.
#include "isa/recurrent.cc"
