// f32_tile.cc for the instruction set of this folder.
#include "isa/f32_tile.cc"
