#include "strassen.h"

#include <math.h>
#include <string.h>

#include "activation.h"
#include "core_kind.h"
#include "quad_tile.h"
#include "tap_gemm.h"

#if defined(LITE_STRASSEN)

namespace lite::LITE_ISA {
namespace {

// Additions must not overflow: rows of larger numbers, and of what is not finite, are multiplied plainly.
constexpr float kLargeSum = 1e30f;

int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

// The sums of the rows of two tiles, as [kStrassenSums][height][ld].
void add_rows(const Strassen& s, const float* rows, int64_t ld, float* sums) {
  const int64_t half = s.half, tile = s.height * ld;
  const auto step = [=](const float* first, const float* second, float* to, auto read, auto write)
      __attribute__((always_inline)) {
    const F a11 = read(first), a12 = read(first + half), a21 = read(second), a22 = read(second + half);
    const F s1 = a21 + a22, s2 = s1 - a11;
    write(to, s1);
    write(to + tile, s2);
    write(to + 2 * tile, a11 - a21);
    write(to + 3 * tile, a12 - s2);
  };
  for (int64_t m = 0; m < s.height; ++m, rows += s.lda, sums += ld) {
    const float* second = rows + s.height * s.lda;
    int64_t i = 0;
    for (; i + kLanes <= half; i += kLanes)
      step(rows + i, second + i, sums + i, [](const float* p) { return load(p); },
           [](float* p, F v) { store(p, v); });
    if (const int rest = kPacks ? 0 : static_cast<int>(half - i))  // packed in fours
      step(rows + i, second + i, sums + i, [=](const float* p) { return load_part(p, rest); },
           [=](float* p, F v) { store_part(p, v, rest); });
  }
}

LITE_INLINE void load_row(F (&v)[2], const float* p) {
#if defined(LITE_PACKED_TILE)
  load_pair_at(v[0], v[1], p);
#else
  LITE_UNROLL for (int n = 0; n < 2; n++) v[n] = load(p + n * kLanes);
#endif
}
LITE_INLINE void store_row(float* p, F first, F second) {
#if defined(LITE_PACKED_TILE)
  store_pair(p, first, second);
#else
  store(p, first);
  store(p + kLanes, second);
#endif
}

// Of the weights of two panels, as [kStrassenSums][half][kTileColumns].
void add_weights(int64_t half, const float* const (&w)[2][2], float* sums) {
  const int64_t panel = half * kTileColumns;
  for (int64_t i = 0; i < panel; i += kTileColumns, sums += kTileColumns) {
    F b11[2], b12[2], b21[2], b22[2], t1[2], t2[2];
    load_row(b11, w[0][0] + i);
    load_row(b12, w[0][1] + i);
    load_row(b21, w[1][0] + i);
    load_row(b22, w[1][1] + i);
    LITE_UNROLL for (int n = 0; n < 2; n++) {
      t1[n] = b12[n] - b11[n];
      t2[n] = b22[n] - t1[n];
    }
    store_row(sums, t1[0], t1[1]);
    store_row(sums + panel, t2[0], t2[1]);
    store_row(sums + 2 * panel, b22[0] - b12[0], b22[1] - b12[1]);
    store_row(sums + 3 * panel, t2[0] - b21[0], t2[1] - b21[1]);
  }
}

const float kZeros[2 * kTileColumns] = {};

// The sizes of numbers, a vector each.
LITE_INLINE F sizes_of(const float* x, int64_t n) {
  F sizes = F{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sizes += abs(load(x + i));
  if (i < n) sizes += abs(load_part(x + i, static_cast<int>(n - i)));
  return sizes;
}
bool are_small(F sizes) {
  float lanes[kLanes], total = 0;
  store(lanes, sizes);
  for (const float lane : lanes) total += lane;
  return total < kLargeSum;         // false for what is not a number
}

class Run {
 public:
  Run(const TapGemm& gemm, const float* input, float* output, const float* added, float* scratch)
      : g(gemm), s(gemm.strassen), x(input), y(output), residual(added), memory(scratch) {}

  void run(const GridPart& part);

 private:
  const float* row(int64_t m) const { return x + s.a + m * s.lda; }
  float* factor(int64_t pair, int64_t i) const {
    return memory + at.factors + (pair * s.factors + i) * s.factor_elems;
  }
  bool rows_may_be_added(int64_t m) const;
  void make_factors(int64_t pair, int64_t m, int64_t k) const;
  void multiply(int64_t pair, int64_t m, int64_t k, const float* const (&w)[2][2],
                const float* const (&ahead)[2][2]) const;
  template <bool kMore>
  void combine(const float* bias, const float* more, int64_t ldr, float* c, F lo, F hi) const;
  void finish(int64_t m, int64_t panel_pair, int64_t piece) const;
  void multiply_plainly(int64_t m, int64_t count, int64_t panel_begin, int64_t panel_end) const;

  const TapGemm& g;
  const Strassen& s;
  const float* x;
  float* y;
  const float* residual;
  float* memory;
  const StrassenMemory at = memory_of(s);
};

bool Run::rows_may_be_added(int64_t m) const {
  F sizes = F{};
  for (int64_t i = 0; i < 2 * s.height; ++i) sizes += sizes_of(row(m + i), g.in_c);
  return are_small(sizes);
}

#if defined(LITE_PACKED_TILE)
// All of them, packed.
void Run::make_factors(int64_t pair, int64_t m, int64_t k) const {
  float* sums = memory + at.rows;
  add_rows(s, row(m) + k, s.ld_factor, sums);
  const bool quads = !issues_in_order();
  const auto pack = [&](const float* from, int64_t ld, float* to) {
    const float* rows[kPackedRows];
    for (int i = 0; i < kPackedRows; ++i) rows[i] = from + i * ld;
    if (quads) pack_quads(rows, s.half, to);
    else for (int i = 0; i < kPackedRows; i += 4) pack_run(rows + i, s.half, to + i * s.half);
  };
  for (int i = 0; i < kStrassenSums; ++i) pack(sums + i * s.height * s.ld_factor, s.ld_factor, factor(pair, i));
  pack(row(m) + k, s.lda, factor(pair, 4));
  pack(row(m) + k + s.half, s.lda, factor(pair, 5));
  pack(row(m + s.height) + k + s.half, s.lda, factor(pair, 6));
}
#else
// The sums; where rows share a set of the cache, copies of what is read in place elsewhere.
void Run::make_factors(int64_t pair, int64_t m, int64_t k) const {
  add_rows(s, row(m) + k, s.ld_factor, factor(pair, 0));
  if (s.factors == kStrassenSums) return;
  const auto copy = [&](const float* from, float* to) {
    for (int64_t i = 0; i < s.height; ++i, from += s.lda, to += s.ld_factor)
      memcpy(to, from, static_cast<size_t>(s.half) * sizeof(float));
  };
  copy(row(m) + k, factor(pair, 4));
  copy(row(m) + k + s.half, factor(pair, 5));
  copy(row(m + s.height) + k + s.half, factor(pair, 6));
}
#endif

// The seven products of a pair of tiles and a pair of panels; the first calls for a pair of panels fetch
// what comes behind it to the second-level cache.
void Run::multiply(int64_t pair, int64_t m, int64_t k, const float* const (&w)[2][2],
                   const float* const (&ahead)[2][2]) const {
  const int64_t panel = s.half * kTileColumns;
  const float* sums = memory + at.weights;
  const struct {
    int factor;
    const float* w;
  } products[kStrassenProducts] = {{4, w[0][0]},          {5, w[1][0]}, {3, w[1][1]},
                                   {6, sums + 3 * panel}, {0, sums},    {1, sums + panel},
                                   {2, sums + 2 * panel}};
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
  for (const auto& product : products) {
    t.a = factor(pair, product.factor);
    t.w = product.w;
    t.c = c;
    fn(t);
    c += s.height * kTileColumns;
  }
  (void)m, (void)k, (void)ahead;    // all factors are packed
#else
  const float* in_place[] = {row(m) + k, row(m) + k + s.half, row(m + s.height) + k + s.half};
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.k = s.half;
  t.bias = kZeros;
  t.columns = kTileColumns;
  t.ldw = t.ldc = kTileColumns;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  for (int i = 0; i < kStrassenProducts; ++i) {
    const int index = products[i].factor;
    const bool kept = index < s.factors;
    t.a = kept ? factor(pair, index) : in_place[index - kStrassenSums];
    t.lda = kept ? s.ld_factor : s.lda;
    t.w = products[i].w;
    t.c = c;
    const int64_t call = pair * kStrassenProducts + i;  // fetches half of what it multiplies
    const bool fetches = ahead[0][0] && call < 8;
    if (fetches) t.prefetch = ahead[call / 4][call / 2 % 2] + call % 2 * (panel / 2);
    kTile[fetches][1][s.height - 1](t);
    c += s.height * kTileColumns;
  }
#endif
}

// Sums of the products to the rows of two tiles of c; `more`, by rows of ldr, is added.
template <bool kMore>
void Run::combine(const float* bias, const float* more, int64_t ldr, float* c, F lo, F hi) const {
  const int64_t size = s.height * kTileColumns, down = s.height * s.ldc, more_down = s.height * ldr;
  const auto finish = [&](F v, float* to, const float* add) __attribute__((always_inline)) {
    if (kMore) v += load(add);
    store(to, min(hi, max(lo, v)));
  };
  for (int j = 0; j < 2; j++) {
    const F b1 = load(bias + j * kLanes), b2 = load(bias + kTileColumns + j * kLanes);
    const float *from = memory + at.products + j * kLanes, *add = more + j * kLanes;
    float* to = c + j * kLanes;
    for (int64_t i = 0; i < s.height; ++i, from += kTileColumns, to += s.ldc, add += ldr) {
      const F p1 = load(from), p5 = load(from + 4 * size);
      const F u2 = p1 + load(from + 5 * size), u3 = u2 + load(from + 6 * size), u4 = u2 + p5;
      finish(p1 + load(from + size) + b1, to, add);
      finish(u4 + load(from + 2 * size) + b2, to + kTileColumns, add + kTileColumns);
      finish(u3 - load(from + 3 * size) + b1, to + down, add + more_down);
      finish(u3 + p5 + b2, to + down + kTileColumns, add + more_down + kTileColumns);
    }
  }
}

bool applies(const Activation& activation) {
  return activation.act != Act::kNone && activation.act != Act::kClip;
}

void Run::finish(int64_t m, int64_t panel_pair, int64_t piece) const {
  const int64_t n = 2 * panel_pair * kTileColumns;
  const bool starts = piece == 0, ends = piece + 1 == s.pieces;
  const float* bias = starts ? g.bias + n : kZeros;
  float* c = y + s.c + m * s.ldc + n;
  const float* more = !starts ? c : residual ? residual + s.r + m * s.ldr + n : nullptr;
  const int64_t ldr = starts ? s.ldr : s.ldc;
  const F lo = splat(ends ? g.lo : -INFINITY), hi = splat(ends ? g.hi : INFINITY);
  if (more) combine<true>(bias, more, ldr, c, lo, hi);
  else combine<false>(bias, bias, 0, c, lo, hi);
  if (ends && applies(g.activation))
    activate_rows(c, 2 * s.height, s.ldc, 2 * kTileColumns, g.activation);
}

// Rows [m, m + count), over all of k; nothing else may be in use of scratch memory behind the flags.
void Run::multiply_plainly(int64_t m, int64_t count, int64_t panel_begin, int64_t panel_end) const {
#if defined(LITE_PACKED_TILE)
  if (panel_begin < panel_end)
    run_packed_gemm(g.packed, x, y, residual, {m, m + count, panel_begin, panel_end}, memory + at.weights);
#else
  const TileSplit split = split_rows(count);
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.lda = s.lda;
  t.k = g.in_c;
  t.ldc = s.ldc;
  t.ldr = s.ldr;
  t.lo = g.lo;
  t.hi = g.hi;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t n = panel * kTileColumns;
    t.columns = static_cast<int32_t>(at_most(g.out_c - n, kTileColumns));
    t.ldw = tile_vectors(t.columns) * kLanes;
    t.w = g.weights + panel * g.panel_elems;
    t.bias = g.bias + n;
    for (int j = 0; j < split.tiles; ++j) {
      const int64_t first = m + tile_begin(split, j);
      const int height = tile_rows(split, j);
      t.a = row(first);
      t.c = y + s.c + first * s.ldc + n;
      t.residual = residual ? residual + s.r + first * s.ldr + n : nullptr;
      multiply_tile(kTile[0][tile_vectors(t.columns) - 1][height - 1], t);
      if (applies(g.activation)) activate_rows(t.c, height, t.ldc, t.columns, g.activation);
    }
  }
#endif
}

void Run::run(const GridPart& part) {
  const auto [begin, end, panel_begin, panel_end] = part;
  if (begin == end || panel_begin == panel_end) return;
  const int64_t height = 2 * s.height, panel = s.half * kTileColumns;
  const bool last = panel_end == s.panel_pairs;
  bool* added = reinterpret_cast<bool*>(memory + at.flags);
  for (int64_t block = begin; block < end; block += s.block_pairs) {
    const int64_t pairs = at_most(end - block, s.block_pairs);
    for (int64_t j = 0; j < pairs; ++j) added[j] = rows_may_be_added((block + j) * height);
    for (int64_t piece = 0; piece < s.pieces; ++piece) {
      const int64_t k = 2 * piece * s.half;
      for (int64_t j = 0; j < pairs; ++j)
        if (added[j]) make_factors(j, (block + j) * height, k);
      for (int64_t q = panel_begin; q < panel_end; ++q) {
        const float *w[2][2], *ahead[2][2] = {};
        for (int i = 0; i < 2; ++i)
          for (int n = 0; n < 2; ++n) {
            w[i][n] = g.weights + (2 * q + n) * g.panel_elems + k * kTileColumns + i * panel;
            if (q + 1 < panel_end) ahead[i][n] = w[i][n] + 2 * g.panel_elems;
          }
        add_weights(s.half, w, memory + at.weights);
        for (int64_t j = 0; j < pairs; ++j) {
          if (!added[j]) continue;
          multiply(j, (block + j) * height, k, w, ahead);
          finish((block + j) * height, q, piece);
        }
      }
    }
    for (int64_t j = 0; j < pairs; ++j)
      if (!added[j]) multiply_plainly((block + j) * height, height, 2 * panel_begin, 2 * panel_end);
    if (last) multiply_plainly(block * height, pairs * height, 2 * s.panel_pairs, g.panels);
  }
  const int64_t done = s.tile_pairs * height;
  if (end == s.tile_pairs && done < s.rows)
    multiply_plainly(done, s.rows - done, 2 * panel_begin, last ? g.panels : 2 * panel_end);
}

}  // namespace

bool may_be_added(const float* x, int64_t n) { return are_small(sizes_of(x, n)); }

void run_strassen(const TapGemm& g, const float* x, float* y, const float* residual, int thread,
                  void* scratch) {
  const Strassen& s = g.strassen;
  Run(g, x, y, residual, static_cast<float*>(scratch))
      .run(part_of(g.grid, s.tile_pairs, 1, s.panel_pairs, thread));
}

}  // namespace lite::LITE_ISA

#endif
