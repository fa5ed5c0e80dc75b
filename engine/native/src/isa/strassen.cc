#include "strassen.h"

#include <math.h>
#include <string.h>

#include "activation.h"
#include "core_kind.h"
#include "quad_tile.h"
#include "strassen_run.h"

#if defined(LITE_STRASSEN)

namespace lite::LITE_ISA {
namespace {

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// One level.
class Run {
 public:
  Run(const Strassen& plan, const Product& product, const Layer* whole, float* scratch)
      : s(plan), p(product), layer(whole), memory(scratch) {}

  void run(const StrassenPart& part) const;

 private:
  const float* row(int64_t m) const { return p.a + m * p.lda; }
  float* factor(int64_t pair, int64_t i) const {
    return memory + at.factors + (pair * s.factors + i) * s.factor_elems;
  }
  Quarters<const float> rows(int64_t m, int64_t k) const {
    return {row(m) + k, p.lda, s.height * p.lda, s.half};
  }
  void make_factors(int64_t pair, int64_t m, int64_t k) const;
  void multiply(int64_t pair, int64_t m, int64_t k, const float* const (&w)[2][2],
                const float* const (&ahead)[2][2]) const;
  void finish(int64_t m, int64_t panel_pair, int64_t piece) const;

  const Strassen& s;
  const Product& p;
  const Layer* layer;
  float* memory;
  const StrassenMemory at = memory_of(s);
};

#if defined(LITE_PACKED_TILE)
// All of them, packed.
void Run::make_factors(int64_t pair, int64_t m, int64_t k) const {
  float* sums = memory + at.rows;
  const int64_t size = s.height * s.ld_factor;
  add_rows(rows(m, k), s.height, s.half, sums, s.ld_factor, size);
  const bool quads = !issues_in_order();
  const auto pack = [&](const float* from, int64_t ld, int factor_of) {
    float* to = factor(pair, factor_of);
    const float* rows[kPackedRows];
    for (int i = 0; i < kPackedRows; ++i) rows[i] = from + i * ld;
    if (quads) pack_quads(rows, s.half, to);
    else for (int i = 0; i < kPackedRows; i += 4) pack_run(rows + i, s.half, to + i * s.half);
  };
  for (int i = 0; i < kStrassenSums; ++i) pack(sums + i * size, s.ld_factor, i);
  pack(row(m) + k, p.lda, kStrassenSums);
  pack(row(m) + k + s.half, p.lda, kStrassenSums + 1);
  pack(row(m + s.height) + k + s.half, p.lda, kStrassenSums + 2);
}
#else
// The sums; where rows share a set of the cache, copies of what is read in place elsewhere.
void Run::make_factors(int64_t pair, int64_t m, int64_t k) const {
  add_rows(rows(m, k), s.height, s.half, factor(pair, 0), s.ld_factor, s.factor_elems);
  if (s.factors == kStrassenSums) return;
  const auto copy = [&](const float* from, float* to) {
    for (int64_t i = 0; i < s.height; ++i, from += p.lda, to += s.ld_factor)
      memcpy(to, from, static_cast<size_t>(s.half) * sizeof(float));
  };
  copy(row(m) + k, factor(pair, kStrassenSums));
  copy(row(m) + k + s.half, factor(pair, kStrassenSums + 1));
  copy(row(m + s.height) + k + s.half, factor(pair, kStrassenSums + 2));
}
#endif

// Where the rows of a product are among the factors: the lower left quarter is in none.
constexpr int factor_index(int rows) { return rows < kLowerRight ? rows : kLowerRight - 1; }

// The seven products of a pair of tiles and a pair of panels; the first calls for a pair of panels fetch
// what comes behind it to the second-level cache.
void Run::multiply(int64_t pair, int64_t m, int64_t k, const float* const (&w)[2][2],
                   const float* const (&ahead)[2][2]) const {
  const int64_t panel = s.half * kTileColumns;
  const auto weights = [&](int i) {
    const int quarter = i - kUpperLeft;
    return quarter < 0 ? memory + at.weights + i * panel : w[quarter / 2][quarter % 2];
  };
  float* c = memory + at.products;
#if defined(LITE_PACKED_TILE)
  const bool quads = !issues_in_order();
  PackedTile t{};
  t.group = 4 * s.half;
  t.a_k = quads ? kPackedRows : 4;
  t.tiles = 1;
  t.rows = kPackedRows;
  t.k = s.half;
  t.ldc = t.columns = kTileColumns;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  const PackedTileFn fn = quads ? kQuadTile[1] : rest_tile(2, kPackedRows, false);
  for (const auto& factors : kStrassenFactors) {
    t.a = factor(pair, factor_index(factors.rows));
    t.w = weights(factors.weights);
    t.c = c;
    fn(t);
    c += s.height * kTileColumns;
  }
  (void)m, (void)k, (void)ahead;    // all factors are packed
#else
  const Quarters<const float> a = rows(m, k);
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.k = s.half;
  t.bias = kNoBias;
  t.columns = kTileColumns;
  t.ldw = t.ldc = kTileColumns;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  for (int i = 0; i < kStrassenProducts; ++i) {
    const auto [of_rows, of_weights] = kStrassenFactors[i];
    const int index = factor_index(of_rows), quarter = of_rows - kUpperLeft;
    const bool kept = index < s.factors;
    t.a = kept ? factor(pair, index) : a.at + quarter / 2 * a.down + quarter % 2 * a.across;
    t.lda = kept ? s.ld_factor : p.lda;
    t.w = weights(of_weights);
    t.c = c;
    const int64_t call = pair * kStrassenProducts + i;  // fetches half of what it multiplies
    const bool fetches = ahead[0][0] && call < 8;
    if (fetches) t.prefetch = ahead[call / 4][call / 2 % 2] + call % 2 * (panel / 2);
    t.prefetches = fetches;
    kTile[1][s.height - 1](t);
    c += s.height * kTileColumns;
  }
#endif
}

void Run::finish(int64_t m, int64_t panel_pair, int64_t piece) const {
  const int64_t n = 2 * panel_pair;
  const bool starts = piece == 0, ends = piece + 1 == s.pieces;
  const Quarters<float> c = p.outputs(m, n, s.height, 1);
  Finish f{{}, {}, ends ? p.lo : -INFINITY, ends ? p.hi : INFINITY};
  if (starts && p.bias) f.bias[0] = p.bias + n * kTileColumns, f.bias[1] = f.bias[0] + kTileColumns;
  if (!starts) f.more = {c.at, c.ld, c.down, c.across};
  else if (p.residual) f.more = p.additions(m, n, s.height, 1);
  combine(memory + at.products, kTileColumns, s.height * kTileColumns, s.height, f, c);
  if (ends && applies(p.activation))
    activate_rows(c.at, 2 * s.height, c.ld, 2 * kTileColumns, p.activation);
}

void Run::run(const StrassenPart& part) const {
  const auto [begin, end, panel_begin, panel_end] = part.pairs;
  const int64_t height = 2 * s.height, panel = s.half * kTileColumns;
  const bool any = panel_begin < panel_end;
  bool* added = reinterpret_cast<bool*>(memory + at.flags);
  float* scratch = memory + at.weights;  // of what is multiplied plainly
  for (int64_t block = begin; block < end; block += s.block_pairs) {
    const int64_t pairs = at_most(end - block, s.block_pairs);
    for (int64_t j = 0; j < pairs; ++j)
      added[j] = any && (!layer || rows_may_be_added(row((block + j) * height), p.lda, height, layer->g.in_c));
    for (int64_t piece = 0; any && piece < s.pieces; ++piece) {
      const int64_t k = 2 * piece * s.half;
      for (int64_t j = 0; j < pairs; ++j)
        if (added[j]) make_factors(j, (block + j) * height, k);
      for (int64_t q = panel_begin; q < panel_end; ++q) {
        const float *w[2][2], *ahead[2][2] = {};
        for (int i = 0; i < 2; ++i)
          for (int n = 0; n < 2; ++n) {
            w[i][n] = p.w + (2 * q + n) * p.panel_elems + k * kTileColumns + i * panel;
            if (q + 1 < panel_end) ahead[i][n] = w[i][n] + 2 * p.panel_elems;
          }
        add_weights(s.half, w, memory + at.weights, panel);
        for (int64_t j = 0; j < pairs; ++j) {
          if (!added[j]) continue;
          multiply(j, (block + j) * height, k, w, ahead);
          finish((block + j) * height, q, piece);
        }
      }
    }
    for (int64_t j = 0; j < pairs; ++j)
      if (any && !added[j])
        layer->multiply((block + j) * height, height, 2 * panel_begin, 2 * panel_end, scratch);
    if (part.rest_of_panels)
      layer->multiply(block * height, pairs * height, 2 * s.panel_pairs, layer->g.panels, scratch);
  }
  if (part.rest_of_rows && end * height < s.rows)
    layer->multiply(end * height, s.rows - end * height, 2 * panel_begin,
                    part.rest_of_panels ? layer->g.panels : 2 * panel_end, scratch);
}

}  // namespace

// Rows [m, m + count), over all of k.
void Layer::multiply(int64_t m, int64_t count, int64_t panel_begin, int64_t panel_end, float* scratch) const {
#if defined(LITE_PACKED_TILE)
  if (panel_begin < panel_end)
    run_packed_gemm(g.packed, x, y, residual, {m, m + count, panel_begin, panel_end}, scratch);
#else
  (void)scratch;
  const Product p = product();
  const TileSplit split = split_rows(count);
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.lda = p.lda;
  t.k = g.in_c;
  t.ldc = p.ldc;
  t.ldr = p.ldr;
  t.lo = p.lo;
  t.hi = p.hi;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t n = panel * kTileColumns;
    t.columns = static_cast<int32_t>(at_most(g.out_c - n, kTileColumns));
    t.ldw = tile_vectors(t.columns) * kLanes;
    t.w = p.w + panel * p.panel_elems;
    t.bias = p.bias + n;
    for_each_height(split, [&](int64_t row, int height, int tiles) {
      const int64_t first = m + row;
      t.a = p.a + first * p.lda;
      t.c = p.c + first * p.ldc + n;
      t.residual = p.residual ? p.residual + first * p.ldr + n : nullptr;
      t.count = tiles;
      multiply_tile(kTile[tile_vectors(t.columns) - 1][height - 1], t);
      if (applies(p.activation)) activate_rows(t.c, tiles * height, t.ldc, t.columns, p.activation);
    });
  }
#endif
}

void run_once(const Strassen& plan, const Product& product, const Layer* whole, const StrassenPart& part,
              float* scratch) {
  Run(plan, product, whole, scratch).run(part);
}

void run_strassen(const TapGemm& g, const float* x, float* y, const float* residual, int thread,
                  void* scratch) {
  const Layer layer{g, x, y, residual};
  const Strassen& s = g.strassen;
  float* memory = static_cast<float*>(scratch);
#if defined(LITE_STRASSEN_TWICE)
  if (g.strassen_twice.quads) return run_twice(layer, thread, memory);
#endif
  const GridPart part = part_of(g.grid, s.tile_pairs, 1, s.panel_pairs, thread);
  if (part.begin != part.end && part.panel_begin != part.panel_end)
    run_once(s, layer.product(), &layer, {part, part.panel_end == s.panel_pairs, false}, memory);
  // All threads share the rows behind the last pair: with the last pair they would be too much for one.
  const int64_t done = 2 * s.height * s.tile_pairs;
  const int parts = g.grid.by_tiles * g.grid.by_panels;
  if (done == s.rows || thread >= parts) return;
  int64_t begin, end;
  share(g.panels, 1, thread, parts, &begin, &end);
  layer.multiply(done, s.rows - done, begin, end, memory + memory_of(s).weights);
}

}  // namespace lite::LITE_ISA

#endif
