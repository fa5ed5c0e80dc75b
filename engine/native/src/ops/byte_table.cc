#include "byte_table.h"

#include "guard.h"
#include "runtime/dispatch.h"

#if defined(__x86_64__)
#pragma GCC diagnostic push  // gcc 12's own _mm512_undefined_epi32() reads itself (GCC PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lite {
namespace {

void map_each(const uint8_t* table, const uint8_t* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

#if defined(__x86_64__)
// Two shuffles answer the lower and the upper half of the table; the top bit of x chooses.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void map_vbmi(const uint8_t* table,
                                                                     const uint8_t* x, int64_t ldx,
                                                                     uint8_t* y, int64_t ldy,
                                                                     int64_t n, int64_t rows) {
  __m512i t[4];
  for (int i = 0; i < 4; ++i) t[i] = _mm512_loadu_si512(table + 64 * i);
  for (int64_t row = 0; row < rows; ++row, x += ldx, y += ldy)
    for (int64_t i = 0; i < n; i += 64) {
      const __mmask64 inside = n - i < 64 ? ~0ull >> (64 - (n - i)) : ~0ull;
      touches(x + i, n - i < 64 ? n - i : 64);
      touches(y + i, n - i < 64 ? n - i : 64);
      const __m512i v = _mm512_maskz_loadu_epi8(inside, x + i);
      const __m512i low = _mm512_permutex2var_epi8(t[0], v, t[1]);
      const __m512i high = _mm512_permutex2var_epi8(t[2], v, t[3]);
      _mm512_mask_storeu_epi8(y + i, inside,
                              _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), high));
    }
}

// Bytes of one worth are added up eight at a time.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) uint64_t sum_vbmi(const WideTable& table,
                                                                         uint8_t from,
                                                                         const uint8_t* x,
                                                                         int64_t n) {
  __m512i sums[4] = {};
  const __m512i first = _mm512_set1_epi8(static_cast<char>(from));
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 inside = n - i < 64 ? ~0ull >> (64 - (n - i)) : ~0ull;
    touches(x + i, n - i < 64 ? n - i : 64);
    const __m512i at = _mm512_sub_epi8(first, _mm512_maskz_loadu_epi8(inside, x + i));
    const __mmask64 upper = _mm512_movepi8_mask(at);
    _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
      const __m512i* t = reinterpret_cast<const __m512i*>(table.plane[k]);
      const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(t), at, _mm512_loadu_si512(t + 1));
      const __m512i high =
          _mm512_permutex2var_epi8(_mm512_loadu_si512(t + 2), at, _mm512_loadu_si512(t + 3));
      const __m512i found = _mm512_maskz_mov_epi8(inside, _mm512_mask_mov_epi8(low, upper, high));
      sums[k] = _mm512_add_epi64(sums[k], _mm512_sad_epu8(found, _mm512_setzero_si512()));
    }
  }
  __m512i all = sums[0];
  for (int k = 1; k < 4; ++k) all = _mm512_add_epi64(all, _mm512_slli_epi64(sums[k], 8 * k));
  uint64_t parts[8], sum = 0;
  _mm512_storeu_si512(parts, all);
  for (const uint64_t part : parts) sum += part;
  return sum;
}

// A shuffle answers 16 entries, and 0 where the top bit of its index is set. Of each half of the table
// every row of 16 is kept as the difference (exclusive or) to the row before: while 16 is taken off
// the index, with saturation, the rows up to the right one add up to it.
struct Differences {
  uint8_t rows[16][32];  // each twice, as shuffles of 32 bytes are two of 16

  explicit Differences(const uint8_t* table) {
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 32; ++j)
        rows[i][j] = table[16 * i + j % 16] ^ (i % 8 ? table[16 * (i - 1) + j % 16] : 0);
  }
};

template <int kVectors>
__attribute__((target("avx2"))) inline void map_vectors(const Differences& d, const uint8_t* x,
                                                        uint8_t* y) {
  const __m256i top = _mm256_set1_epi8(-128), step = _mm256_set1_epi8(16);
  __m256i at[2][kVectors], found[kVectors];
  _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
    at[0][v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x) + v);
    at[1][v] = _mm256_xor_si256(at[0][v], top);
    found[v] = _mm256_setzero_si256();
  }
  _Pragma("GCC unroll 16") for (int i = 0; i < 16; ++i) {
    const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(d.rows[i]));
    _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v) {
      __m256i& index = at[i / 8][v];
      if (i % 8) index = _mm256_subs_epi8(index, step);
      found[v] = _mm256_xor_si256(found[v], _mm256_shuffle_epi8(row, index));
      asm("" : "+x"(found[v]));  // NOTE: gcc 12 keeps all 32 shuffles to combine them at the end
    }
  }
  _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y) + v, found[v]);
}

__attribute__((target("avx2"))) void map_avx2(const uint8_t* table, const uint8_t* x, int64_t ldx,
                                              uint8_t* y, int64_t ldy, int64_t n, int64_t rows) {
  const Differences d(table);
  for (int64_t row = 0; row < rows; ++row, x += ldx, y += ldy) {
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) map_vectors<2>(d, x + i, y + i);
    for (; i + 32 <= n; i += 32) map_vectors<1>(d, x + i, y + i);
    map_each(table, x + i, y + i, n - i);
  }
}
#elif defined(__aarch64__)
// Four look-ups in 64 entries; an index outside leaves what was found before.
void map_neon(const uint8_t* table, const uint8_t* x, int64_t ldx, uint8_t* y, int64_t ldy,
              int64_t n, int64_t rows) {
  uint8x16x4_t t[4];
  for (int i = 0; i < 4; ++i) t[i] = vld1q_u8_x4(table + 64 * i);
  for (int64_t row = 0; row < rows; ++row, x += ldx, y += ldy) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
      const uint8x16_t v = vld1q_u8(x + i), next = vdupq_n_u8(64);
      uint8x16_t found = vqtbl4q_u8(t[0], v), at = v;
      for (int k = 1; k < 4; ++k) {
        at = vsubq_u8(at, next);
        found = vqtbx4q_u8(found, t[k], at);
      }
      vst1q_u8(y + i, found);
    }
    map_each(table, x + i, y + i, n - i);
  }
}
#endif

}  // namespace

void map_rows(const uint8_t* table, const uint8_t* x, int64_t ldx, uint8_t* y, int64_t ldy, int64_t n,
              int64_t rows) {
#if defined(__x86_64__)
  if (machine().vbmi) return map_vbmi(table, x, ldx, y, ldy, n, rows);
  if (machine().avx2 && n * rows >= 256) return map_avx2(table, x, ldx, y, ldy, n, rows);
#elif defined(__aarch64__)
  return map_neon(table, x, ldx, y, ldy, n, rows);
#endif
  for (int64_t row = 0; row < rows; ++row) map_each(table, x + row * ldx, y + row * ldy, n);
}

void make_wide_table(const uint32_t (&numbers)[256], WideTable* table) {
  for (int i = 0; i < 256; ++i) {
    table->number[i] = numbers[i];
    for (int k = 0; k < 4; ++k) table->plane[k][i] = static_cast<uint8_t>(numbers[i] >> 8 * k);
  }
}

uint64_t sum_numbers(const WideTable& table, uint8_t from, const uint8_t* x, int64_t n) {
#if defined(__x86_64__)
  if (machine().vbmi) return sum_vbmi(table, from, x, n);
#endif
  uint64_t sums[4] = {};  // one would wait for the number before
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += table.number[static_cast<uint8_t>(from - x[i + k])];
  for (; i < n; ++i) sums[0] += table.number[static_cast<uint8_t>(from - x[i])];
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace lite
