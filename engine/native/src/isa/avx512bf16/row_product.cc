// row_product.cc for the instruction set of this folder.
#include "isa/row_product.cc"
