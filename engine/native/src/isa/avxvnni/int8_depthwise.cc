// int8_depthwise.cc for the instruction set of this folder.
#include "isa/int8_depthwise.cc"
