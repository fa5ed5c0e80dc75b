// int8_tile.cc for the instruction set of this folder.
#include "isa/int8_tile.cc"
