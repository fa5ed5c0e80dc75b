// int8_conv.cc for the instruction set of this folder.
#include "isa/int8_conv.cc"
