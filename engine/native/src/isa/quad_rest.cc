// Tiles of 1 to 10 packed rows for cores that reorder, for the rows that are left of twelves: loads of four
// registers as in quad_tile.cc, of groups of four rows as pack_run leaves them.
#include "quad_tile.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

// v0 to v3 hold four k of a group of rows, v4 to v11 those of W, v12 to v31 the sums, a row in two (two vectors)
// or in one. x12 to x14 point to the groups.
#define LITE_FMA(sum, w, x, lane) "fmla v" #sum ".4s, v" #w ".4s, v" #x ".s[" #lane "]\n\t"
#define LITE_LOAD_W "ld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [x10], 64\n\t"
#define LITE_LOAD_MORE_W "ld1 {v8.4s, v9.4s, v10.4s, v11.4s}, [x10], 64\n\t"
#define LITE_LOAD_A(group) "ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [" #group "], 64\n\t"

// Rows of one k; w and v: the vectors of W.
#define LITE_ROW2(s, t, w, v, x, lane) LITE_FMA(s, w, x, lane) LITE_FMA(t, v, x, lane)
#define LITE_K2_1(w, v, x, a, b) LITE_ROW2(a, b, w, v, x, 0)
#define LITE_K2_2(w, v, x, a, b, c, d) LITE_ROW2(a, b, w, v, x, 0) LITE_ROW2(c, d, w, v, x, 1)
#define LITE_K2_4(w, v, x, a, b, c, d, e, f, g, h) \
  LITE_K2_2(w, v, x, a, b, c, d) LITE_ROW2(e, f, w, v, x, 2) LITE_ROW2(g, h, w, v, x, 3)
#define LITE_K1_1(w, x, a) LITE_FMA(a, w, x, 0)
#define LITE_K1_2(w, x, a, b) LITE_FMA(a, w, x, 0) LITE_FMA(b, w, x, 1)
#define LITE_K1_4(w, x, a, b, c, d) \
  LITE_K1_2(w, x, a, b) LITE_FMA(c, w, x, 2) LITE_FMA(d, w, x, 3)
// Four k of a group.
#define LITE_GROUP2(group, rows, ...)                                                         \
  LITE_LOAD_A(group) LITE_K2_##rows(4, 5, 0, __VA_ARGS__) LITE_K2_##rows(6, 7, 1, __VA_ARGS__) \
  LITE_K2_##rows(8, 9, 2, __VA_ARGS__) LITE_K2_##rows(10, 11, 3, __VA_ARGS__)
#define LITE_GROUP1(group, rows, ...)                                                     \
  LITE_LOAD_A(group) LITE_K1_##rows(4, 0, __VA_ARGS__) LITE_K1_##rows(5, 1, __VA_ARGS__)   \
  LITE_K1_##rows(6, 2, __VA_ARGS__) LITE_K1_##rows(7, 3, __VA_ARGS__)

// Four k of a tile: LITE_FOUR_K<vectors>_<rows>
#define LITE_START2 LITE_LOAD_W LITE_LOAD_MORE_W
#define LITE_FIRST2 LITE_GROUP2(x12, 4, 12, 13, 14, 15, 16, 17, 18, 19)
#define LITE_SECOND2 LITE_GROUP2(x13, 4, 20, 21, 22, 23, 24, 25, 26, 27)
#define LITE_FOUR_K2_1 LITE_START2 LITE_GROUP2(x12, 1, 12, 13)
#define LITE_FOUR_K2_2 LITE_START2 LITE_GROUP2(x12, 2, 12, 13, 14, 15)
#define LITE_FOUR_K2_4 LITE_START2 LITE_FIRST2
#define LITE_FOUR_K2_6 LITE_START2 LITE_FIRST2 LITE_GROUP2(x13, 2, 20, 21, 22, 23)
#define LITE_FOUR_K2_8 LITE_START2 LITE_FIRST2 LITE_SECOND2
#define LITE_FOUR_K2_10 LITE_START2 LITE_FIRST2 LITE_SECOND2 LITE_GROUP2(x14, 2, 28, 29, 30, 31)
#define LITE_FIRST1 LITE_GROUP1(x12, 4, 12, 13, 14, 15)
#define LITE_SECOND1 LITE_GROUP1(x13, 4, 16, 17, 18, 19)
#define LITE_FOUR_K1_1 LITE_LOAD_W LITE_GROUP1(x12, 1, 12)
#define LITE_FOUR_K1_2 LITE_LOAD_W LITE_GROUP1(x12, 2, 12, 13)
#define LITE_FOUR_K1_4 LITE_LOAD_W LITE_FIRST1
#define LITE_FOUR_K1_6 LITE_LOAD_W LITE_FIRST1 LITE_GROUP1(x13, 2, 16, 17)
#define LITE_FOUR_K1_8 LITE_LOAD_W LITE_FIRST1 LITE_SECOND1
#define LITE_FOUR_K1_10 LITE_LOAD_W LITE_FIRST1 LITE_SECOND1 LITE_GROUP1(x14, 2, 20, 21)

#define LITE_BIAS(a, b, c, d) "ld1 {v" #a ".4s, v" #b ".4s, v" #c ".4s, v" #d ".4s}, [%[bias]]\n\t"
#define LITE_BIASES_4 LITE_BIAS(12, 13, 14, 15)
#define LITE_BIASES_8 LITE_BIASES_4 LITE_BIAS(16, 17, 18, 19)
#define LITE_BIASES_12 LITE_BIASES_8 LITE_BIAS(20, 21, 22, 23)
#define LITE_BIASES_16 LITE_BIASES_12 LITE_BIAS(24, 25, 26, 27)
#define LITE_BIASES_20 LITE_BIASES_16 LITE_BIAS(28, 29, 30, 31)

#define LITE_SUM(s) register F v##s asm("v" #s);
#define LITE_RESULT(s) "=&w"(v##s)

// Of `sums` registers, a multiple of 4, that are at least rows * vectors. An odd number of four k enters the
// loop in its middle.
#define LITE_REST_TILE(rows, vectors, sums)                                                   \
  void tile##vectors##_##rows(const PackedTile& t) {                                          \
    float bias[16] = {};                                                                      \
    for (int i = 0; t.bias && i < 16; i += kLanes) store(bias + i, load(t.bias + i % (vectors * kLanes))); \
    const float *a = t.a, *residual = t.residual;                                             \
    float* c = t.c;                                                                           \
    for (int64_t tiles = t.tiles; tiles > 0; tiles--, a += t.a_next, c += rows * t.ldc) {     \
      LITE_SUM(12) LITE_SUM(13) LITE_SUM(14) LITE_SUM(15) LITE_SUM(16) LITE_SUM(17)           \
      LITE_SUM(18) LITE_SUM(19) LITE_SUM(20) LITE_SUM(21) LITE_SUM(22) LITE_SUM(23)           \
      LITE_SUM(24) LITE_SUM(25) LITE_SUM(26) LITE_SUM(27) LITE_SUM(28) LITE_SUM(29)           \
      LITE_SUM(30) LITE_SUM(31)                                                               \
      asm volatile(                                                                           \
          LITE_BIASES_##sums                                                                  \
          "mov x10, %[w]\n\tmov x11, %[rounds]\n\tmov x12, %[a]\n\tadd x13, x12, %[group]\n\t" \
          "add x14, x13, %[group]\n\ttbnz %[k], 2, 2f\n1:\n\t"                                \
          LITE_FOUR_K##vectors##_##rows "2:\n\t" LITE_FOUR_K##vectors##_##rows                \
          "subs x11, x11, 1\n\tb.ne 1b\n\t"                                                   \
          : LITE_RESULT(12), LITE_RESULT(13), LITE_RESULT(14), LITE_RESULT(15),               \
            LITE_RESULT(16), LITE_RESULT(17), LITE_RESULT(18), LITE_RESULT(19),               \
            LITE_RESULT(20), LITE_RESULT(21), LITE_RESULT(22), LITE_RESULT(23),               \
            LITE_RESULT(24), LITE_RESULT(25), LITE_RESULT(26), LITE_RESULT(27),               \
            LITE_RESULT(28), LITE_RESULT(29), LITE_RESULT(30), LITE_RESULT(31)                \
          : [a] "r"(a), [w] "r"(t.w), [k] "r"(t.k), [rounds] "r"((t.k + 4) / 8),              \
            [group] "r"(t.group * static_cast<ptrdiff_t>(sizeof(float))), [bias] "r"(bias)    \
          : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "x10",  \
            "x11", "x12", "x13", "x14", "cc", "memory");                                      \
      const F all[] = {v12, v13, v14, v15, v16, v17, v18, v19, v20, v21,                      \
                       v22, v23, v24, v25, v26, v27, v28, v29, v30, v31};                     \
      F acc[rows][vectors];                                                                   \
      LITE_UNROLL for (int m = 0; m < rows; m++)                                              \
        LITE_UNROLL for (int n = 0; n < vectors; n++) acc[m][n] = all[m * vectors + n];       \
      finish_tile(t, acc, c, residual);                                                       \
      if (residual) residual += rows * t.ldr;                                                 \
    }                                                                                         \
  }
LITE_REST_TILE(1, 1, 4)
LITE_REST_TILE(2, 1, 4)
LITE_REST_TILE(4, 1, 4)
LITE_REST_TILE(6, 1, 8)
LITE_REST_TILE(8, 1, 8)
LITE_REST_TILE(10, 1, 12)
LITE_REST_TILE(1, 2, 4)
LITE_REST_TILE(2, 2, 4)
LITE_REST_TILE(4, 2, 8)
LITE_REST_TILE(6, 2, 12)
LITE_REST_TILE(8, 2, 16)
LITE_REST_TILE(10, 2, 20)

// A height in between takes the next one: its last row is computed for nothing.
constexpr PackedTileFn kRest[2][10] = {
    {tile1_1, tile1_2, tile1_4, tile1_4, tile1_6, tile1_6, tile1_8, tile1_8, tile1_10, tile1_10},
    {tile2_1, tile2_2, tile2_4, tile2_4, tile2_6, tile2_6, tile2_8, tile2_8, tile2_10, tile2_10}};

}  // namespace

PackedTileFn rest_tile(int vectors, int64_t rows, bool quads) {
  return quads && rows <= 10 ? kRest[vectors - 1][rows - 1] : kPackedTile[vectors - 1][rows - 1];
}

}  // namespace lite::LITE_ISA

#endif
