// sparse_int8.cc for the instruction set of this folder.
#include "isa/sparse_int8.cc"
