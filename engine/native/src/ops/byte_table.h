// y[i] = table[x[i]] for bytes, with the widest byte shuffles that this machine has.
#pragma once

#include <stdint.h>

namespace lite {

// `rows` rows of n bytes, ldx and ldy bytes apart. x and y may be the same memory.
void map_rows(const uint8_t* table, const uint8_t* x, int64_t ldx, uint8_t* y, int64_t ldy, int64_t n,
              int64_t rows);

}  // namespace lite
