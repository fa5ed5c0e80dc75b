// One level of Strassen's scheme, as the outer level calls it.
#pragma once

#include "activation.h"
#include "strassen_sums.h"
#include "tap_gemm.h"

namespace lite::LITE_ISA {

// What the scheme is applied to: rows by panels, c = f(a * w + bias + residual).
struct Product {
  const float* a;
  int64_t lda;
  const float* w;
  int64_t panel_elems;
  const float* bias;                // or nullptr
  const float* residual;            // or nullptr
  int64_t ldr;
  float* c;
  int64_t ldc;
  float lo, hi;
  Activation activation;

  // Rows from m on, of panels from n on.
  Quarters<float> outputs(int64_t m, int64_t n, int64_t down, int64_t across) const {
    return {c + m * ldc + n * kTileColumns, ldc, down * ldc, across * kTileColumns};
  }
  Quarters<const float> additions(int64_t m, int64_t n, int64_t down, int64_t across) const {
    return {residual + m * ldr + n * kTileColumns, ldr, down * ldr, across * kTileColumns};
  }
};

// All of a layer, for what is multiplied plainly.
struct Layer {
  const TapGemm& g;
  const float* x;
  float* y;
  const float* residual;

  Product product() const {
    const Strassen& s = g.strassen;
    return {x + s.a, s.lda, g.weights, g.panel_elems, g.bias, residual ? residual + s.r : nullptr, s.ldr,
            y + s.c, s.ldc, g.lo,      g.hi,          g.activation};
  }
  // Rows [m, m + count), over all of k.
  void multiply(int64_t m, int64_t count, int64_t panel_begin, int64_t panel_end, float* scratch) const;
};

// Pairs of tiles and of panels, and what is left over behind all of them.
struct StrassenPart {
  GridPart pairs;
  bool rest_of_panels, rest_of_rows;
};

// Without a layer all rows may be added, and nothing is left over.
void run_once(const Strassen& plan, const Product& product, const Layer* whole, const StrassenPart&,
              float* scratch);
// Both levels of a thread's part.
void run_twice(const Layer&, int thread, float* scratch);

LITE_INLINE bool applies(const Activation& activation) {
  return activation.act != Act::kNone && activation.act != Act::kClip;
}

}  // namespace lite::LITE_ISA
