// attention.cc for the instruction set of this folder.
#include "isa/attention.cc"
