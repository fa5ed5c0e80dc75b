// The outer of two levels of Strassen's scheme, over quads of tiles and of panels; what is left over of them
// takes one level.
#include <math.h>

#include "strassen_run.h"

#if defined(LITE_STRASSEN_TWICE)

namespace lite::LITE_ISA {
namespace {

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

class OuterRun {
 public:
  OuterRun(const Layer& whole, const GridPart& range, float* scratch)
      : layer(whole), part(range), memory(scratch) {}

  void run();

 private:
  void add_up_weights() const;
  void run_block(int64_t m, int64_t height) const;
  void finish(int64_t m, int64_t height) const;

  const Layer& layer;
  const GridPart part;
  float* memory;
  const StrassenTwice& s = layer.g.strassen_twice;
  const Product p = layer.product();
  const int64_t half = layer.g.in_c / 2, panel = half * kTileColumns;
  // Of the left half; those of the right half lie `across` behind them, whatever part of both a thread has.
  const int64_t first_panel = 2 * part.panel_begin, panels = 2 * (part.panel_end - part.panel_begin);
  const int64_t across = 2 * s.panel_quads;
  const StrassenTwiceMemory at = memory_of(s, panels / 2);
};

void OuterRun::add_up_weights() const {
  for (int64_t j = 0; j < panels; ++j) {
    const float* left = p.w + (first_panel + j) * p.panel_elems;
    const float* right = left + across * p.panel_elems;
    add_weights(half, {{left, right}, {left + panel, right + panel}}, memory + at.weights + j * panel,
                panels * panel);
  }
}

// Twice `height` rows from m on.
void OuterRun::run_block(int64_t m, int64_t height) const {
  const Quarters<const float> a = {p.a + m * p.lda, p.lda, height * p.lda, half};
  add_rows(a, height, half, memory + at.rows, at.ld, height * at.ld);
  Strassen inner = s.inner;
  inner.tile_pairs = height / (2 * inner.height);
  inner.panel_pairs = panels / 2;
  float* c = memory + at.products;
  for (const auto& factors : kStrassenFactors) {
    const int rows = factors.rows - kUpperLeft, weights = factors.weights - kUpperLeft;
    Product product{};
    product.a = rows < 0 ? memory + at.rows + factors.rows * height * at.ld
                         : a.at + rows / 2 * a.down + rows % 2 * a.across;
    product.lda = rows < 0 ? at.ld : p.lda;
    product.w = weights < 0 ? memory + at.weights + factors.weights * panels * panel
                            : p.w + (first_panel + weights % 2 * across) * p.panel_elems + weights / 2 * panel;
    product.panel_elems = weights < 0 ? panel : p.panel_elems;
    product.c = c;
    product.ldc = at.products_ld;
    product.lo = -INFINITY;
    product.hi = INFINITY;
    run_once(inner, product, nullptr, {{0, inner.tile_pairs, 0, inner.panel_pairs}, false, false}, memory + at.inner);
    c += height * at.products_ld;
  }
  finish(m, height);
}

// A few rows at a time, so that the lines of all their columns lie in order.
void OuterRun::finish(int64_t m, int64_t height) const {
  constexpr int64_t kRows = 4;
  for (int64_t i = 0; i < height; i += kRows) {
    const int64_t count = at_most(height - i, kRows);
    for (int64_t j = 0; j < panels; ++j) {
      const int64_t n = first_panel + j;
      const float* products = memory + at.products + i * at.products_ld + j * kTileColumns;
      const float* bias = p.bias + n * kTileColumns;
      Finish f{{bias, bias + across * kTileColumns}, {}, p.lo, p.hi};
      if (p.residual) f.more = p.additions(m + i, n, height, across);
      combine(products, at.products_ld, height * at.products_ld, count, f, p.outputs(m + i, n, height, across));
    }
    if (!applies(p.activation)) continue;
    const Quarters<float> c = p.outputs(m + i, first_panel, height, across);
    for (int quarter = 0; quarter < 4; ++quarter)
      activate_rows(c.at + quarter / 2 * c.down + quarter % 2 * c.across, count, c.ld, panels * kTileColumns,
                    p.activation);
  }
}

void OuterRun::run() {
  const Strassen& once = layer.g.strassen;
  const auto rest = [&](const StrassenPart& range) { run_once(once, p, &layer, range, memory); };
  const int64_t rows = 4 * s.inner.height, pairs = panels / 2, right = s.panel_quads + part.panel_begin;
  const int64_t begin = part.begin * s.block_quads, end = at_most(part.end * s.block_quads, s.quads);
  bool has_sums = false;
  for (int64_t block = begin; block < end; block += s.block_quads) {
    const int64_t quads = at_most(end - block, s.block_quads), tiles = 2 * block, behind = tiles + 2 * quads;
    if (rows_may_be_added(p.a + block * rows, p.lda, quads * rows, layer.g.in_c)) {
      if (!has_sums) add_up_weights();
      has_sums = true;
      run_block(block * rows, quads * rows / 2);
    } else {
      rest({{tiles, behind, part.panel_begin, part.panel_begin + pairs}, false, false});
      rest({{tiles, behind, right, right + pairs}, false, false});
      has_sums = false;             // they lay in the same memory
    }
  }
  const bool last = part.panel_end == s.panel_quads;
  if (last) rest({{2 * begin, 2 * end, 2 * s.panel_quads, once.panel_pairs}, true, false});
  if (end < s.quads) return;
  rest({{2 * end, once.tile_pairs, part.panel_begin, part.panel_begin + pairs}, false, true});
  rest({{2 * end, once.tile_pairs, right, last ? once.panel_pairs : right + pairs}, last, true});
}

}  // namespace

void run_twice(const Layer& layer, int thread, float* scratch) {
  const StrassenTwice& s = layer.g.strassen_twice;
  const GridPart part = part_of(layer.g.grid, s.blocks(), 1, s.panel_quads, thread);
  if (part.begin < part.end && part.panel_begin < part.panel_end) OuterRun(layer, part, scratch).run();
}

}  // namespace lite::LITE_ISA

#endif
