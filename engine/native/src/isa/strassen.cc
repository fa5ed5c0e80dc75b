#include "strassen.h"

#include <math.h>

#include "activation.h"
#include "tap_gemm.h"

#if defined(LITE_STRASSEN)

namespace lite::LITE_ISA {
namespace {

constexpr int kProductCount = 7, kSums = 4;
constexpr int64_t kLine = 64 / sizeof(float);
// A pair's additions must not overflow: beyond, and with what is not finite, products are plain.
constexpr float kLargeSum = 1e30f;

int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

bool may_be_added(F sizes) {
  float lanes[kLanes], total = 0;
  store(lanes, sizes);
  for (const float lane : lanes) total += lane;
  return total < kLargeSum;  // false for what is not a number
}

bool all_may_be_added(const float* w, int64_t count) {
  F sizes = F{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sizes += abs(load(w + i));
  if (i < count) sizes += abs(load_part(w + i, static_cast<int>(count - i)));
  return may_be_added(sizes);
}

// What each vector takes, in products of vectors: products of a pair's rows, a row's sums, the weights'.
// Fitted to ratios measured on Zen 4, with AVX-512 and with AVX2, which multiplies twice a cycle.
struct Additions {
  double combine, rows, weights;
};
constexpr Additions kDoublePumped{30, 45, 15}, kWhole{70, 45, 15};
constexpr double kPays = 0.97;      // of the plain products' time
// Sums of rows are read in order, which the third-level cache is fast enough for; those of weights are
// made once for each block.
constexpr double kCachesOfBlock = 2;

// Products of vectors, and what takes as long.
struct Costs {
  double plain, with;
};
Costs costs_of(const TapGemm& g, const Strassen& s, int64_t rows, const Additions& each) {
  const double k = static_cast<double>(2 * s.half * s.pieces), height = static_cast<double>(s.height);
  const double pairs = static_cast<double>(s.tile_pairs), columns = static_cast<double>(s.panel_pairs);
  const int64_t left = rows - 2 * s.height * s.tile_pairs;
  const double all = static_cast<double>(g.panels), blocks = ceil(pairs / static_cast<double>(s.block_pairs));
  const double low = static_cast<double>(left ? at_least(left, 2) : 0);
  const double multiply = pairs * columns * 7 * height * k;
  const double combine = pairs * columns * height * 2 * each.combine * static_cast<double>(s.pieces);
  const double add_rows = pairs * height * k / 2 / kLanes * each.rows;
  const double add_weights = blocks * columns * k * each.weights;
  const double rest = pairs * 2 * height * (all - 2 * columns) * 2 * k + low * all * 2 * k;
  return {static_cast<double>(rows) * all * 2 * k, multiply + combine + add_rows + add_weights + rest};
}

int64_t sums_per_pair(const Strassen& s) {
  return (kSums + (s.copied_rows ? 3 : 0)) * s.height * s.lda;
}

// The first piece of k that has two halves of the same length, not longer than a chain of sums may be.
bool cut_depth(int64_t k, Strassen* s) {
  const int64_t fewest = (k + 2 * kLongestSum - 1) / (2 * kLongestSum);
  for (s->pieces = fewest; s->pieces < fewest + 4; ++s->pieces) {
    if (k % (2 * s->pieces)) continue;
    s->half = k / (2 * s->pieces);
    return true;
  }
  return false;
}

// What a thread works on: two tiles of rows, two panels, one piece of k.
struct Part {
  const float* a[2][2];             // [tile][half of k]
  const float* sums;                // of the rows
  const float* w[2][2];             // [half of k][panel]
  const float* w_sums;
  float* products;                  // [7][height][kTileColumns]
};

Tile plain_tile(const TapGemm& g) {
  Tile t{};
  t.taps_y = t.taps_x = 1;
  t.lda = g.list.strips[0].lda;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  t.prefetch = nullptr;
  return t;
}

const float kZeros[kTileColumns] = {};

// a[] and sums of the rows of two tiles; false where plain products must do.
bool add_rows(const Strassen& s, const float* rows, ptrdiff_t lda, float* sums) {
  const int64_t half = s.half, tile = s.height * s.lda;
  F size = F{};
  const auto step = [&](const float* first, const float* second, float* to, auto read, auto write)
      __attribute__((always_inline)) {
    const F a11 = read(first), a12 = read(first + half), a21 = read(second), a22 = read(second + half);
    const F s1 = a21 + a22, s2 = s1 - a11;
    size += abs(a11) + abs(a12) + abs(a21) + abs(a22);
    write(to, s1);
    write(to + tile, s2);
    write(to + 2 * tile, a11 - a21);
    write(to + 3 * tile, a12 - s2);
    if (!s.copied_rows) return;
    write(to + 4 * tile, a11);
    write(to + 5 * tile, a12);
    write(to + 6 * tile, a22);
  };
  for (int64_t m = 0; m < s.height; ++m, rows += lda, sums += s.lda) {
    const float* second = rows + s.height * lda;
    int64_t i = 0;
    for (; i + kLanes <= half; i += kLanes)
      step(rows + i, second + i, sums + i, [](const float* p) { return load(p); },
           [](float* p, F v) { store(p, v); });
    if (const int rest = static_cast<int>(half - i))
      step(rows + i, second + i, sums + i, [=](const float* p) { return load_part(p, rest); },
           [=](float* p, F v) { store_part(p, v, rest); });
  }
  return may_be_added(size);
}

// Of the weights of two panels.
void add_weights(int64_t half, const float* const (&w)[2][2], float* sums) {
  const int64_t panel = half * kTileColumns;
  for (int64_t i = 0; i < panel; i += kLanes) {
    const F b11 = load(w[0][0] + i), b12 = load(w[0][1] + i), b21 = load(w[1][0] + i), b22 = load(w[1][1] + i);
    const F t1 = b12 - b11, t2 = b22 - t1;
    store(sums + i, t1);
    store(sums + panel + i, t2);
    store(sums + 2 * panel + i, b22 - b12);
    store(sums + 3 * panel + i, t2 - b21);
  }
}

}  // namespace

bool prepare_strassen(const TapGemm& g, bool rows_share_a_set, Env& env, Strassen* best) {
  const int64_t full = g.out_c / kTileColumns, rows = g.list.strips[0].pixels;
  best->tile_pairs = 0;
  Strassen s{};
  if (g.groups != 1 || full < 2 || !cut_depth(g.in_c, &s)) return false;
  s.panel_pairs = full / 2;
  s.copied_rows = rows_share_a_set;
  s.lda = (s.half + kLine - 1) / kLine * kLine + kLine;
  double least = 0;
  for (s.height = kTileRows; s.height > kTileRows * 2 / 3; --s.height) {
    s.tile_pairs = rows / (2 * s.height);
    if (s.tile_pairs == 0) continue;
    const double bytes = static_cast<double>(sums_per_pair(s)) * sizeof(float) * (s.copied_rows ? 1 : 7.0 / 4);
    const double block = kCachesOfBlock * static_cast<double>(env.l2_bytes) / bytes;
    s.block_pairs = block < 1 ? 1 : at_most(static_cast<int64_t>(block), s.tile_pairs);
    const Costs costs = costs_of(g, s, rows, env.cpu.halves && kLanes == 16 ? kDoublePumped : kWhole);
    const double ratio = costs.with / costs.plain;
    if (ratio > kPays || (least > 0 && ratio >= least)) continue;
    least = ratio;
    *best = s;
  }
  if (least == 0 || !all_may_be_added(g.weights, g.group_elems)) {
    best->tile_pairs = 0;
    return false;
  }
  best->scratch_bytes = sizeof(float) * static_cast<size_t>(
      best->block_pairs * sums_per_pair(*best) + kSums * best->half * kTileColumns +
      kProductCount * best->height * kTileColumns + best->block_pairs * kLine);
  return true;
}

ThreadGrid strassen_grid(const TapGemm& g, const Strassen& s, int threads) {
  const double k = static_cast<double>(g.in_c), pairs = static_cast<double>(s.tile_pairs);
  return choose_grid(threads, s.tile_pairs, s.panel_pairs, static_cast<double>(7 * s.height) * k,
                     pairs * static_cast<double>(s.height) * k, static_cast<double>(s.panel_pairs) * k * 14);
}

namespace {

struct Run {
  const TapGemm& g;
  const Strassen& s;
  const float* x;
  float* y;
  const float* residual;
  Tile t;

  const Strip& strip() const { return g.list.strips[0]; }
  const float* row(int64_t m) const { return x + strip().a + m * strip().lda; }

  // Rows [m, m + count) times one panel, k of [first, first + depth).
  void multiply(int64_t m, int64_t count, int64_t panel, int64_t first, int64_t depth) {
    const Strip& p = strip();
    const int64_t n = panel * kTileColumns;
    const bool starts = first == 0, ends = first + depth == g.in_c;
    t.columns = static_cast<int32_t>(at_most(g.out_c - n, kTileColumns));
    t.ldw = tile_vectors(t.columns) * kLanes;
    t.w = g.weights + panel * g.panel_elems + first * t.ldw;
    t.k = depth;
    t.bias = starts ? g.bias + n : kZeros;
    t.ldc = p.ldc;
    t.lda = p.lda;
    t.lo = ends ? g.lo : -INFINITY;
    t.hi = ends ? g.hi : INFINITY;
    t.hard_swish = ends && g.activation.act == Act::kHardSwish;
    const TileSplit split = split_rows(count);
    for (int j = 0; j < split.tiles; ++j) {
      const int64_t at = m + tile_begin(split, j);
      const int height = tile_rows(split, j);
      t.a = row(at) + first;
      t.c = y + p.c + at * p.ldc + n;
      t.residual = !starts ? t.c : residual ? residual + p.r + at * p.ldr + n : nullptr;
      t.ldr = starts ? p.ldr : p.ldc;
      multiply_tile(kTile[0][tile_vectors(t.columns) - 1][height - 1], t);
      if (ends && applies()) activate_rows(t.c, height, t.ldc, t.columns, g.activation);
    }
  }

  bool applies() const {
    const Act act = g.activation.act;
    return act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  }

  // The seven products of a pair; `ahead` is fetched to the second-level cache meanwhile, or nullptr.
  void products(const Part& p, const float* const (&ahead)[4], int64_t from) {
    const int64_t tile = s.height * s.lda, panel = s.half * kTileColumns, size = s.height * kTileColumns;
    const int64_t lda = s.copied_rows ? s.lda : strip().lda;
    const struct { const float* a; int64_t lda; const float* w; } factors[kProductCount] = {
        {p.a[0][0], lda, p.w[0][0]},
        {p.a[0][1], lda, p.w[1][0]},
        {p.sums + 3 * tile, s.lda, p.w[1][1]},
        {p.a[1][1], lda, p.w_sums + 3 * panel},
        {p.sums, s.lda, p.w_sums},
        {p.sums + tile, s.lda, p.w_sums + panel},
        {p.sums + 2 * tile, s.lda, p.w_sums + 2 * panel},
    };
    t.columns = kTileColumns;
    t.ldw = t.ldc = kTileColumns;
    t.k = s.half;
    t.bias = kZeros;
    t.residual = nullptr;
    t.lo = -INFINITY;
    t.hi = INFINITY;
    t.hard_swish = false;
    for (int i = 0; i < kProductCount; ++i) {
      t.a = factors[i].a;
      t.lda = factors[i].lda;
      t.w = factors[i].w;
      t.c = p.products + i * size;
      // A call fetches half of what it multiplies.
      const int64_t half = from + i;
      const bool fetches = ahead[0] && half < 8;
      t.prefetch = fetches ? ahead[half / 2] + half % 2 * (panel / 2) : nullptr;
      kTile[fetches][1][s.height - 1](t);
    }
  }

  // Sums of the products to the rows of two tiles; `more`, by rows of ldr, is added.
  template <bool kMore, bool kHardSwish>
  void combine(const float* products, const float* bias, const float* more, ptrdiff_t ldr, float* c,
               F lo, F hi) const {
    const int64_t size = s.height * kTileColumns;
    const ptrdiff_t ldc = strip().ldc, down = s.height * ldc, more_down = s.height * ldr;
    const auto finish = [&](F v, float* to, const float* add) __attribute__((always_inline)) {
      if (kMore) v += load(add);
      store(to, kHardSwish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v)));
    };
    LITE_UNROLL for (int j = 0; j < 2; j++, bias += kLanes, more += kMore ? kLanes : 0, c += kLanes) {
      const F b1 = load(bias), b2 = load(bias + kTileColumns);
      const float *from = products + j * kLanes, *add = more;
      float* to = c;
      for (int64_t i = 0; i < s.height; ++i, from += kTileColumns, to += ldc) {
        const F p1 = load(from), p5 = load(from + 4 * size);
        const F u2 = p1 + load(from + 5 * size), u3 = u2 + load(from + 6 * size), u4 = u2 + p5;
        finish(p1 + load(from + size) + b1, to, add);
        finish(u4 + load(from + 2 * size) + b2, to + kTileColumns, add + kTileColumns);
        finish(u3 - load(from + 3 * size) + b1, to + down, add + more_down);
        finish(u3 + p5 + b2, to + down + kTileColumns, add + more_down + kTileColumns);
        if (kMore) add += ldr;
      }
    }
  }

  void finish(const float* products, int64_t m, int64_t pair, int64_t piece) const {
    const int64_t n = 2 * pair * kTileColumns;
    const bool starts = piece == 0, ends = piece + 1 == s.pieces;
    const float no_bias[2 * kTileColumns] = {};
    const float* bias = starts ? g.bias + n : no_bias;
    float* c = y + strip().c + m * strip().ldc + n;
    const float* more = !starts ? c : residual ? residual + strip().r + m * strip().ldr + n : nullptr;
    const ptrdiff_t ldr = starts ? strip().ldr : strip().ldc;
    const F lo = splat(ends ? g.lo : -INFINITY), hi = splat(ends ? g.hi : INFINITY);
    const bool hard_swish = ends && g.activation.act == Act::kHardSwish;
    if (more && hard_swish) combine<true, true>(products, bias, more, ldr, c, lo, hi);
    else if (more) combine<true, false>(products, bias, more, ldr, c, lo, hi);
    else if (hard_swish) combine<false, true>(products, bias, bias, 0, c, lo, hi);
    else combine<false, false>(products, bias, bias, 0, c, lo, hi);
    if (ends && applies()) activate_rows(c, 2 * s.height, strip().ldc, 2 * kTileColumns, g.activation);
  }
};

}  // namespace

void run_strassen(const TapGemm& g, const Strassen& s, const float* x, float* y, const float* residual,
                  int thread, void* scratch) {
  const auto [begin, end, panel_begin, panel_end] = part_of(g.grid, s.tile_pairs, 1, s.panel_pairs, thread);
  if (begin == end || panel_begin == panel_end) return;
  Run run{g, s, x, y, residual, plain_tile(g)};
  const int64_t rows = g.list.strips[0].pixels, height = 2 * s.height, panel = s.half * kTileColumns;
  const int64_t last_panel = panel_end == s.panel_pairs ? g.panels : 2 * panel_end;
  float* w_sums = static_cast<float*>(scratch);
  float* products = w_sums + kSums * panel;
  float* sums = products + kProductCount * s.height * kTileColumns;
  int32_t* added = reinterpret_cast<int32_t*>(sums + s.block_pairs * sums_per_pair(s));
  for (int64_t block = begin; block < end; block += s.block_pairs) {
    const int64_t pairs = at_most(end - block, s.block_pairs);
    for (int64_t piece = 0; piece < s.pieces; ++piece) {
      const int64_t k = 2 * piece * s.half;
      for (int64_t j = 0; j < pairs; ++j)
        added[j] = add_rows(s, run.row((block + j) * height) + k, g.list.strips[0].lda,
                             sums + j * sums_per_pair(s));
      for (int64_t q = panel_begin; q < panel_end; ++q) {
        Part p;
        const float* ahead[4] = {};
        for (int i = 0; i < 2; ++i)
          for (int n = 0; n < 2; ++n) {
            p.w[i][n] = g.weights + (2 * q + n) * g.panel_elems + k * kTileColumns + i * panel;
            if (q + 1 < panel_end) ahead[2 * i + n] = p.w[i][n] + 2 * g.panel_elems;
          }
        add_weights(s.half, p.w, w_sums);
        p.w_sums = w_sums;
        p.products = products;
        for (int64_t j = 0; j < pairs; ++j) {
          const int64_t m = (block + j) * height;
          const float* own = sums + j * sums_per_pair(s);
          if (!added[j]) {
            for (int n = 0; n < 2; ++n) run.multiply(m, height, 2 * q + n, k, 2 * s.half);
            continue;
          }
          for (int i = 0; i < 2; ++i)
            for (int n = 0; n < 2; ++n)
              p.a[i][n] = run.row(m + i * s.height) + k + n * s.half;
          if (s.copied_rows) {
            const int64_t tile = s.height * s.lda;
            p.a[0][0] = own + 4 * tile;
            p.a[0][1] = own + 5 * tile;
            p.a[1][1] = own + 6 * tile;
          }
          p.sums = own;
          run.products(p, ahead, j * kProductCount);
          run.finish(products, m, q, piece);
        }
      }
    }
    for (int64_t n = 2 * s.panel_pairs; n < last_panel; ++n)
      run.multiply(block * height, pairs * height, n, 0, g.in_c);
  }
  const int64_t left = rows - s.tile_pairs * height;
  if (end == s.tile_pairs && left > 0)
    for (int64_t n = 2 * panel_begin; n < last_panel; ++n)
      run.multiply(s.tile_pairs * height, left, n, 0, g.in_c);
}

}  // namespace lite::LITE_ISA

#endif
