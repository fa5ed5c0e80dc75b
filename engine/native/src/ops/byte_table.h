// y[i] = table[x[i]] for bytes, and sums of such answers, with the widest byte shuffles that this machine has.
#pragma once

#include <stdint.h>

namespace lite {

// `rows` rows of n bytes, ldx and ldy bytes apart. x and y may be the same memory.
void map_rows(const uint8_t* table, const uint8_t* x, int64_t ldx, uint8_t* y, int64_t ldy, int64_t n,
              int64_t rows);

// 256 numbers, and their bytes of each worth as four tables.
struct WideTable {
  uint32_t number[256];
  uint8_t plane[4][256];
};
void make_wide_table(const uint32_t (&numbers)[256], WideTable*);

// The sum of number[(from - x[i]) mod 256].
uint64_t sum_numbers(const WideTable&, uint8_t from, const uint8_t* x, int64_t n);

}  // namespace lite
