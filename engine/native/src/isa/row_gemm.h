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

// Products of x with `count` rows of the matrix, at most kLanes; further lanes repeat the last one.
LITE_INLINE F row_products(const float* x, const float* rows, int64_t k, int count) {
  const auto row = [&](int r) __attribute__((always_inline)) {
    return rows + (r < count ? r : count - 1) * k;
  };
  F total[kLanes] = {};
  int64_t i = 0;
#if defined(LITE_PACKED_TILE)  // two vectors a load
  const float *at[kLanes], *from = x;
  F more[kLanes] = {};
  LITE_UNROLL for (int r = 0; r < kLanes; r++) at[r] = row(r);
  for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
    F v[2], w[kLanes][2];
    load_pair(v[0], v[1], from);
    LITE_UNROLL for (int r = 0; r < kLanes; r++) load_pair(w[r][0], w[r][1], at[r]);
    LITE_UNROLL for (int r = 0; r < kLanes; r++) {
      total[r] = fma(v[0], w[r][0], total[r]);
      more[r] = fma(v[1], w[r][1], more[r]);
    }
  }
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
