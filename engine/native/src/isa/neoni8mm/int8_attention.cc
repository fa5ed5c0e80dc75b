// int8_attention.cc for the instruction set of this folder.
#include "isa/int8_attention.cc"
