// pool.cc in fp16, for the instruction set of this folder.
#define LITE_FP16
#include "isa/pool.cc"
