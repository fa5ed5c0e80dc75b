// int8_winograd.cc for the instruction set of this folder.
#include "isa/int8_winograd.cc"
