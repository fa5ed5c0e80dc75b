#include "quad_tile.h"

#include "activation.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

// NOTE: a load of four registers takes neighbouring ones, so all registers are named: v0 to v3 hold A, v4 to
// v7 W, the others the sums, a row in two (two vectors) or in one.
#define LITE_FMA(sum, w, x, lane) "fmla v" #sum ".4s, v" #w ".4s, v" #x ".s[" #lane "]\n\t"
#define LITE_LOAD_A "ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [%[a]], 64\n\t"
#define LITE_LOAD_W "ld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [x10], 64\n\t"

#define LITE_ROW2(s, t, w, v, x, lane) LITE_FMA(s, w, x, lane) LITE_FMA(t, v, x, lane)
// One k of rows 0 to 7 and of rows 8 to 11; w and v: the vectors of W.
#define LITE_PAIRS2(w, v, even, odd)                                                      \
  LITE_ROW2(8, 9, w, v, 0, even) LITE_ROW2(10, 11, w, v, 0, odd)                          \
  LITE_ROW2(12, 13, w, v, 1, even) LITE_ROW2(14, 15, w, v, 1, odd)                        \
  LITE_ROW2(16, 17, w, v, 2, even) LITE_ROW2(18, 19, w, v, 2, odd)                        \
  LITE_ROW2(20, 21, w, v, 3, even) LITE_ROW2(22, 23, w, v, 3, odd)
#define LITE_LAST2(w, v, x)                                       \
  LITE_ROW2(24, 25, w, v, x, 0) LITE_ROW2(26, 27, w, v, x, 1)     \
  LITE_ROW2(28, 29, w, v, x, 2) LITE_ROW2(30, 31, w, v, x, 3)
#define LITE_FOUR_K2                                                  \
  LITE_LOAD_W LITE_LOAD_A LITE_PAIRS2(4, 5, 0, 2) LITE_PAIRS2(6, 7, 1, 3) \
  LITE_LOAD_A LITE_LAST2(4, 5, 0) LITE_LAST2(6, 7, 1)                 \
  LITE_LOAD_W LITE_LAST2(4, 5, 2) LITE_LAST2(6, 7, 3)                 \
  LITE_LOAD_A LITE_PAIRS2(4, 5, 0, 2) LITE_PAIRS2(6, 7, 1, 3)

#define LITE_PAIRS1(w, even, odd)                                                         \
  LITE_FMA(8, w, 0, even) LITE_FMA(9, w, 0, odd) LITE_FMA(10, w, 1, even) LITE_FMA(11, w, 1, odd) \
  LITE_FMA(12, w, 2, even) LITE_FMA(13, w, 2, odd) LITE_FMA(14, w, 3, even) LITE_FMA(15, w, 3, odd)
#define LITE_LAST1(w, x) \
  LITE_FMA(16, w, x, 0) LITE_FMA(17, w, x, 1) LITE_FMA(18, w, x, 2) LITE_FMA(19, w, x, 3)
#define LITE_FOUR_K1                                             \
  LITE_LOAD_W LITE_LOAD_A LITE_PAIRS1(4, 0, 2) LITE_PAIRS1(5, 1, 3) \
  LITE_LOAD_A LITE_LAST1(4, 0) LITE_LAST1(5, 1) LITE_LAST1(6, 2) LITE_LAST1(7, 3) \
  LITE_LOAD_A LITE_PAIRS1(6, 0, 2) LITE_PAIRS1(7, 1, 3)

// An odd number of four k enters the loop in its middle.
#define LITE_ALL_K(four_k)                                       \
  "mov x10, %[w]\n\tmov x11, %[rounds]\n\ttbnz %[k], 2, 2f\n1:\n\t" four_k "2:\n\t" four_k \
  "subs x11, x11, 1\n\tb.ne 1b\n\t"

#define LITE_BIAS(a, b, c, d) "ld1 {v" #a ".4s, v" #b ".4s, v" #c ".4s, v" #d ".4s}, [%[bias]]\n\t"

// make(first, second register of a row), or make(register)
#define LITE_ROWS2(make)                                                                    \
  make(8, 9) make(10, 11) make(12, 13) make(14, 15) make(16, 17) make(18, 19) make(20, 21)  \
  make(22, 23) make(24, 25) make(26, 27) make(28, 29) make(30, 31)
#define LITE_ROWS1(make)                                                                       \
  make(8) make(9) make(10) make(11) make(12) make(13) make(14) make(15) make(16) make(17) make(18) \
  make(19)
#define LITE_SUM1(s) register F v##s asm("v" #s);
#define LITE_SUM2(s, t) LITE_SUM1(s) LITE_SUM1(t)
#define LITE_RESULT(s) "=&w"(v##s)

#define LITE_SCRATCH1 LITE_SUM1(0)
#define LITE_SCRATCH2 LITE_SUM2(0, 1)
#define LITE_ADD1(s)                                                                            \
  asm volatile("ld1 {v0.4s}, [%1], %2" : "=w"(v0), "+r"(residual) : "r"(ldr));                  \
  v##s += v0;
#define LITE_ADD2(s, t)                                                                         \
  asm volatile("ld1 {v0.4s, v1.4s}, [%2], %3" : "=w"(v0), "=w"(v1), "+r"(residual) : "r"(ldr)); \
  v##s += v0;                                                                                   \
  v##t += v1;
#define LITE_SWISH1(s) v##s = activate_vector<Act::kHardSwish>(v##s, lo, hi);
#define LITE_SWISH2(s, t) LITE_SWISH1(s) LITE_SWISH1(t)
#define LITE_LOW1(s) v##s = max(lo, v##s);
#define LITE_LOW2(s, t) LITE_LOW1(s) LITE_LOW1(t)
#define LITE_HIGH1(s) v##s = min(hi, v##s);
#define LITE_HIGH2(s, t) LITE_HIGH1(s) LITE_HIGH1(t)
#define LITE_STORE1(s) \
  asm volatile("st1 {v" #s ".4s}, [%0], %1" : "+r"(c) : "r"(ldc), "w"(v##s) : "memory");
#define LITE_STORE2(s, t)                                        \
  asm volatile("st1 {v" #s ".4s, v" #t ".4s}, [%0], %1"           \
               : "+r"(c) : "r"(ldc), "w"(v##s), "w"(v##t) : "memory");
// Where the last vector has `tail` columns, 1 to 3.
#define LITE_TAIL1(s) store_part(c, v##s, tail); c += t.ldc;
#define LITE_TAIL2(s, t1) store(c, v##s); store_part(c + kLanes, v##t1, tail); c += t.ldc;
#define LITE_SPILL1(s) store(sum, v##s); sum += kLanes;
#define LITE_SPILL2(s, t) LITE_SPILL1(s) LITE_SPILL1(t)

#define LITE_RESULTS1                                                                        \
  LITE_RESULT(8), LITE_RESULT(9), LITE_RESULT(10), LITE_RESULT(11), LITE_RESULT(12),          \
      LITE_RESULT(13), LITE_RESULT(14), LITE_RESULT(15), LITE_RESULT(16), LITE_RESULT(17),    \
      LITE_RESULT(18), LITE_RESULT(19)
#define LITE_RESULTS2                                                                        \
  LITE_RESULTS1, LITE_RESULT(20), LITE_RESULT(21), LITE_RESULT(22), LITE_RESULT(23),          \
      LITE_RESULT(24), LITE_RESULT(25), LITE_RESULT(26), LITE_RESULT(27), LITE_RESULT(28),    \
      LITE_RESULT(29), LITE_RESULT(30), LITE_RESULT(31)
#define LITE_BIASES1 LITE_BIAS(8, 9, 10, 11) LITE_BIAS(12, 13, 14, 15) LITE_BIAS(16, 17, 18, 19)
#define LITE_BIASES2 \
  LITE_BIASES1 LITE_BIAS(20, 21, 22, 23) LITE_BIAS(24, 25, 26, 27) LITE_BIAS(28, 29, 30, 31)

#define LITE_QUAD_TILE(vectors)                                                               \
  void tile##vectors(const PackedTile& t) {                                                   \
    float bias[16] = {};                                                                      \
    for (int i = 0; t.bias && i < 16; i += kLanes) store(bias + i, load(t.bias + i % (vectors * kLanes))); \
    const float *a = t.a, *residual = t.residual;                                             \
    float* c = t.c;                                                                           \
    const int64_t rounds = (t.k + 4) / 8;                                                     \
    const ptrdiff_t skip = t.a_next - t.k * kPackedRows;                                      \
    const ptrdiff_t ldc = t.ldc * static_cast<ptrdiff_t>(sizeof(float));                      \
    for (int64_t tiles = t.tiles; tiles > 0; tiles--, a += skip) {                            \
      LITE_ROWS##vectors(LITE_SUM##vectors)                                                   \
      asm volatile(LITE_BIASES##vectors LITE_ALL_K(LITE_FOUR_K##vectors)                      \
                   : LITE_RESULTS##vectors, [a] "+&r"(a)                                      \
                   : [w] "r"(t.w), [k] "r"(t.k), [rounds] "r"(rounds), [bias] "r"(bias)       \
                   : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "x10", "x11", "cc", "memory"); \
      const uint32_t tasks = t.tasks;                                                         \
      const int tail = t.columns % kLanes;                                                    \
      if (tasks & kPart && (!tail || t.c_rows || tasks & (kResidual | kHardSwish))) {         \
        float sums[kPackedRows * vectors * kLanes], *sum = sums;                              \
        LITE_ROWS##vectors(LITE_SPILL##vectors)                                               \
        finish_part(t, sums, vectors, c, residual);                                           \
        c += kPackedRows * t.ldc;                                                             \
        if (residual) residual += kPackedRows * t.ldr;                                        \
        continue;                                                                             \
      }                                                                                       \
      const F lo = splat(t.lo), hi = splat(t.hi);                                             \
      if (tasks & kResidual) {                                                                \
        const ptrdiff_t ldr = t.ldr * static_cast<ptrdiff_t>(sizeof(float));                  \
        LITE_SCRATCH##vectors                                                                 \
        LITE_ROWS##vectors(LITE_ADD##vectors)                                                 \
      }                                                                                       \
      if (tasks & kHardSwish) {                                                               \
        LITE_ROWS##vectors(LITE_SWISH##vectors)                                               \
      }                                                                                       \
      if (tasks & kLow) {                                                                     \
        LITE_ROWS##vectors(LITE_LOW##vectors)                                                 \
      }                                                                                       \
      if (tasks & kHigh) {                                                                    \
        LITE_ROWS##vectors(LITE_HIGH##vectors)                                                \
      }                                                                                       \
      if (tail) {                                                                             \
        LITE_ROWS##vectors(LITE_TAIL##vectors)                                                \
        continue;                                                                             \
      }                                                                                       \
      LITE_ROWS##vectors(LITE_STORE##vectors)                                                 \
    }                                                                                         \
  }
LITE_QUAD_TILE(1)
LITE_QUAD_TILE(2)

}  // namespace

const PackedTileFn kQuadTile[2] = {tile1, tile2};

// Four k of eight rows as pairs of k, and of four rows.
#define LITE_PAIR_ROWS                                                                            \
  "ldp d0, d4, [%0], 16\n\tldp d1, d5, [%1], 16\n\tldp d2, d6, [%2], 16\n\tldp d3, d7, [%3], 16\n\t"  \
  "ldp d16, d20, [%4], 16\n\tldp d17, d21, [%5], 16\n\tldp d18, d22, [%6], 16\n\t"                 \
  "ldp d19, d23, [%7], 16\n\tst1 {v0.2s, v1.2s, v2.2s, v3.2s}, [%12], 32\n\t"                     \
  "st1 {v16.2s, v17.2s, v18.2s, v19.2s}, [%12], 32\n\t"
#define LITE_PAIR_ENDS                                \
  "st1 {v4.2s, v5.2s, v6.2s, v7.2s}, [%12], 32\n\t"    \
  "st1 {v20.2s, v21.2s, v22.2s, v23.2s}, [%12], 32\n\t"
#define LITE_PACK_OPERANDS                                                                          \
  "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(p[4]), "+r"(p[5]), "+r"(p[6]), "+r"(p[7]),     \
      "+r"(p[8]), "+r"(p[9]), "+r"(p[10]), "+r"(p[11]), "+r"(to)::"v0", "v1", "v2", "v3", "v4", "v5", \
      "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
      "v28", "v29", "v30", "v31", "memory"

float* pack_quads(const float* const* rows, int64_t n, float* to) {
  const float* p[kPackedRows];
  LITE_UNROLL for (int m = 0; m < kPackedRows; m++) p[m] = rows[m];
  for (; n >= 8; n -= 8) {
    asm volatile(
        LITE_PAIR_ROWS
        "ldp q24, q28, [%8], 32\n\tldp q25, q29, [%9], 32\n\tldp q26, q30, [%10], 32\n\t"
        "ldp q27, q31, [%11], 32\n\tst4 {v24.4s, v25.4s, v26.4s, v27.4s}, [%12], 64\n\t"
        LITE_PAIR_ENDS LITE_PAIR_ROWS
        "st4 {v28.4s, v29.4s, v30.4s, v31.4s}, [%12], 64\n\t" LITE_PAIR_ENDS
        : LITE_PACK_OPERANDS);
  }
  if (n >= 4) {
    asm volatile(
        LITE_PAIR_ROWS
        "ldr q24, [%8], 16\n\tldr q25, [%9], 16\n\tldr q26, [%10], 16\n\tldr q27, [%11], 16\n\t"
        "st4 {v24.4s, v25.4s, v26.4s, v27.4s}, [%12], 64\n\t" LITE_PAIR_ENDS
        : LITE_PACK_OPERANDS);
  }
  return to;
}

}  // namespace lite::LITE_ISA

#endif
