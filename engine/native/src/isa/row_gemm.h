// One row times a constant matrix whose columns lie together: y[N] = activation(x[K] b[N,K] + c).
//
// Every weight is used once: it is read where it lies in the file, and packing it would read it
// twice and hold it twice.
#pragma once

#include "activation.h"
#include "packed_tile.h"
#include "transpose.h"

namespace lite::LITE_ISA {

struct RowGemm {
  const float* weights;  // [n][k]
  const float* bias;     // [n]
  int64_t k, n;
  Activation activation;
};

#if defined(LITE_PACKED_TILE)
// Sixteen numbers of x and of four rows, each row's products in two sums; every load stands four or
// more instructions before its use.
#define LITE_ROW_PRODUCTS(row, w0, w1, w2, w3)                                                    \
  "fmla %[t" #row "].4s, v0.4s, v" #w0 ".4s\n\tfmla %[m" #row "].4s, v1.4s, v" #w1 ".4s\n\t"      \
  "fmla %[t" #row "].4s, v2.4s, v" #w2 ".4s\n\tfmla %[m" #row "].4s, v3.4s, v" #w3 ".4s\n\t"
LITE_INLINE void add_quads(const float*& x, const float* (&at)[4], F (&total)[4], F (&more)[4]) {
  asm volatile(
      "ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [%[x]], 64\n\t"
      "ld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [%[a0]], 64\n\t"
      "ld1 {v16.4s, v17.4s, v18.4s, v19.4s}, [%[a1]], 64\n\t" LITE_ROW_PRODUCTS(0, 4, 5, 6, 7)
      "ld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [%[a2]], 64\n\t" LITE_ROW_PRODUCTS(1, 16, 17, 18, 19)
      "ld1 {v16.4s, v17.4s, v18.4s, v19.4s}, [%[a3]], 64\n\t" LITE_ROW_PRODUCTS(2, 4, 5, 6, 7)
      LITE_ROW_PRODUCTS(3, 16, 17, 18, 19)
      : [x] "+r"(x), [a0] "+r"(at[0]), [a1] "+r"(at[1]), [a2] "+r"(at[2]), [a3] "+r"(at[3]),
        [t0] "+w"(total[0]), [t1] "+w"(total[1]), [t2] "+w"(total[2]), [t3] "+w"(total[3]),
        [m0] "+w"(more[0]), [m1] "+w"(more[1]), [m2] "+w"(more[2]), [m3] "+w"(more[3])
      :: "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "memory");
}
#undef LITE_ROW_PRODUCTS
#endif

// Products of x with `count` rows of the matrix, at most kLanes; further lanes repeat the last one.
LITE_INLINE F row_products(const float* x, const float* rows, int64_t k, int count) {
  const auto row = [&](int r) __attribute__((always_inline)) {
    return rows + (r < count ? r : count - 1) * k;
  };
  F total[kLanes] = {};
  int64_t i = 0;
#if defined(LITE_PACKED_TILE)  // four vectors a load
  const float *at[kLanes], *from = x;
  F more[kLanes] = {};
  LITE_UNROLL for (int r = 0; r < kLanes; r++) at[r] = row(r);
  for (; i + 4 * kLanes <= k; i += 4 * kLanes) add_quads(from, at, total, more);
  LITE_UNROLL for (int r = 0; r < kLanes; r++) total[r] += more[r];
#endif
  for (; i + kLanes <= k; i += kLanes) {
    const F v = load(x + i);
    LITE_UNROLL for (int r = 0; r < kLanes; r++) total[r] = fma(v, load(row(r) + i), total[r]);
  }
  if (const int rest = static_cast<int>(k - i)) {
    const F v = load_part(x + i, rest);
    LITE_UNROLL for (int r = 0; r < kLanes; r++)
        total[r] = fma(v, load_part(row(r) + i, rest), total[r]);
  }
  transpose(total);
  LITE_UNROLL for (int step = kLanes / 2; step; step /= 2)
      for (int r = 0; r < step; r++) total[r] += total[r + step];
  return total[0];
}

inline void run_row_gemm(const RowGemm& g, const float* x, float* y, int thread, int threads) {
  int64_t n, end;
  share(g.n, kLanes, thread, threads, &n, &end);
  const int64_t begin = n;
  for (; n + kLanes <= end; n += kLanes)
    store(y + n, row_products(x, g.weights + n * g.k, g.k, kLanes) + load(g.bias + n));
  if (const int rest = static_cast<int>(end - n); rest > 0)
    store_part(y + n, row_products(x, g.weights + n * g.k, g.k, rest) + load_part(g.bias + n, rest),
               rest);
  if (g.activation.act != Act::kNone && end > begin)
    activate(y + begin, end - begin, g.activation);
}

}  // namespace lite::LITE_ISA
