// y[i] = table[x[i]] for bytes, with the widest byte shuffles that this machine has.
#pragma once

#include <stdint.h>

namespace lite {

// x and y may be the same memory.
void map_bytes(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n);

}  // namespace lite
