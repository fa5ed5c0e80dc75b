// What Strassen's scheme is applied to, and whether it pays.
#include <math.h>

#include "strassen_sums.h"
#include "tap_gemm.h"

#if defined(LITE_STRASSEN)

namespace lite::LITE_ISA {
namespace {

constexpr int64_t kLine = 64 / sizeof(float);
constexpr int kMostRows = kPacks ? kPackedRows : kTileRows;
// Lower ones of a low tile would wait for their weights.
constexpr int kFewestRows = !kPacks && kTileRows > 8 ? kTileRows * 2 / 3 + 1 : kMostRows;
// What each vector takes, in products of vectors: products of a pair's rows, a row's sums, the weights'.
// Fitted to measured ratios: with double-pumped AVX-512 on Zen 4; with AVX2 on Zen 3, whose 512 KiB of second-level
// cache hold few factors. On AArch64 counted, with stores for two.
struct Additions {
  double combine, rows, weights;
};
constexpr Additions kDoublePumped{30, 45, 15}, kHalf{100, 60, 30}, kPacked{40, 30, 12};
constexpr double kPays = 0.97;      // of the plain products' time
constexpr double kPaysTwice = 0.96;  // of one level's: the outer level's sums wait for memory, too
// Two threads share an even number of pairs evenly, each its own rows, which the next layer finds in its cache.
constexpr double kOddPairs = 1.01;
// Factors are read in order, which a third-level cache is fast enough for; sums of weights are made
// once for each block.
constexpr double kCachesOfBlock = 2;

int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

// Time of all pairs.
double time_of(const Strassen& s, const Additions& each) {
  const double k = static_cast<double>(2 * s.half * s.pieces), height = static_cast<double>(s.height);
  const double pairs = static_cast<double>(s.tile_pairs), columns = static_cast<double>(s.panel_pairs);
  const double blocks = ceil(pairs / static_cast<double>(s.block_pairs));
  const double multiply = pairs * columns * 7 * height * k;
  const double combine = pairs * columns * height * 2 * each.combine * static_cast<double>(s.pieces);
  const double add_rows = pairs * height * k / 2 / kLanes * each.rows;
  const double add_weights = blocks * columns * k * each.weights;
  return multiply + combine + add_rows + add_weights;
}

double plain_time(const TapGemm& g, int64_t rows, int64_t panels) {
  const double height = static_cast<double>(rows == 0 ? 0 : at_least(rows, 2));
  return height * static_cast<double>(panels * 2 * g.in_c);
}

// Of the time of plain products.
double share_of_time(const TapGemm& g, const Strassen& s, const Additions& each) {
  const int64_t rows = 2 * s.height * s.tile_pairs;
  const double rest = plain_time(g, rows, g.panels - 2 * s.panel_pairs) + plain_time(g, s.rows - rows, g.panels);
  return (time_of(s, each) + rest) / plain_time(g, s.rows, g.panels);
}

double share_of_time(const TapGemm& g, const StrassenTwice& s, const Additions& each) {
  Strassen once = g.strassen, inner = s.inner, rest_of_panels = once, rest_of_rows = once;
  inner.tile_pairs = s.block_quads;
  inner.panel_pairs = s.panel_quads;
  rest_of_panels.tile_pairs = 2 * s.quads;
  rest_of_panels.panel_pairs -= 2 * s.panel_quads;
  rest_of_rows.tile_pairs -= 2 * s.quads;
  const double blocks = static_cast<double>(s.quads) / static_cast<double>(s.block_quads);
  const double k = static_cast<double>(g.in_c), columns = static_cast<double>(2 * s.panel_quads);
  const double height = static_cast<double>(2 * s.quads * once.height);
  const double added = height * columns * 2 * each.combine + height * k / 2 / kLanes * each.rows +
                       columns * k * each.weights;
  const int64_t rows = 2 * once.height * once.tile_pairs;
  const double rest = plain_time(g, rows, g.panels - 2 * once.panel_pairs) + plain_time(g, once.rows - rows, g.panels);
  const double rests = time_of(rest_of_panels, each) + time_of(rest_of_rows, each) + rest;
  return (7 * blocks * time_of(inner, each) + added + rests) / plain_time(g, once.rows, g.panels);
}

// Rows, where all pixels are one row each of the input and of the output.
bool find_rows(const ConvShape& s, Strassen* to) {
  for (int i = 0; i < 2; ++i)
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad[i] != 0) return false;
  if (s.groups != 1 || s.in.images * s.in.h != 1 || s.out.images * s.out.h != 1 || s.in.w != s.out.w)
    return false;
  to->rows = s.out.w;
  to->a = s.in.origin, to->c = s.out.origin;
  to->lda = s.in.pixel, to->ldc = s.out.pixel;
  if (s.has_residual) to->r = s.residual.origin, to->ldr = s.residual.pixel;
  return true;
}

// The fewest pieces of k with two halves of one length, not longer than a chain of sums may be.
bool cut_depth(int64_t k, Strassen* s) {
  constexpr int64_t kGrain = kPacks ? 4 : 1;
  const int64_t fewest = (k + 2 * kLongestSum - 1) / (2 * kLongestSum);
  for (s->pieces = fewest; s->pieces < fewest + 4; ++s->pieces) {
    if (s->pieces == 0 || k % (2 * s->pieces * kGrain)) continue;
    s->half = k / (2 * s->pieces);
    return true;
  }
  return false;
}

// Elements of the factors of a pair of tiles, and how many pairs are computed at a time.
void set_blocks(const Env& env, Strassen* s) {
  s->ld_factor = (s->half + kLine - 1) / kLine * kLine + kLine;
  s->factor_elems = kPacks ? (s->height * s->half + kPackedSlack + kLine - 1) / kLine * kLine
                           : s->height * s->ld_factor;
  const double bytes = static_cast<double>(sizeof(float) * kStrassenProducts * s->factor_elems);
  const double block = kCachesOfBlock * static_cast<double>(env.l2_bytes) / bytes;
  s->block_pairs = block < 1 ? 1 : block > s->tile_pairs ? s->tile_pairs : static_cast<int64_t>(block);
}

// A second level around the one that g->strassen has; none where it does not apply.
StrassenTwice twice(const TapGemm& g, const Env& env) {
  StrassenTwice s{};
#if defined(LITE_STRASSEN_TWICE)
  s.inner = g.strassen;
  if (g.in_c % 2 || !cut_depth(g.in_c / 2, &s.inner)) return s;
  s.panel_quads = g.strassen.panel_pairs / 2;
  const int64_t quads = s.panel_quads ? g.strassen.tile_pairs / 2 : 0;
  if (quads == 0) return s;
  s.inner.tile_pairs = quads;
  set_blocks(env, &s.inner);
  const int64_t blocks = (quads + s.inner.block_pairs - 1) / s.inner.block_pairs;
  s.block_quads = s.inner.block_pairs = (quads + blocks - 1) / blocks;
  s.quads = quads;
#endif
  (void)g, (void)env;
  return s;
}

}  // namespace

bool prepare_strassen(const ConvShape& shape, bool rows_share_a_set, Env& env, TapGemm* g) {
  // Two products of 16 lanes a cycle leave the caches no time for factors: on Xeons with 2 MiB of second-level cache
  // it takes 1.00 to 1.25 times the time of plain products, at all sizes from 56 x 256 x 256 to 1024 x 2048 x 2048.
  if (kLanes == 16 && !env.cpu.halves) return false;
  Strassen s{};
  s.panel_pairs = g->out_c / kTileColumns / 2;
  if (!find_rows(shape, &s) || s.panel_pairs == 0 || !cut_depth(g->in_c, &s)) return false;
  s.factors = kPacks || rows_share_a_set ? kStrassenProducts : kStrassenSums;
  const Additions& each = kPacks ? kPacked : kLanes < 16 ? kHalf : kDoublePumped;
  double least = kPays;
  bool pays = false;
  for (s.height = kMostRows; s.height >= kFewestRows; --s.height) {
    s.tile_pairs = s.rows / (2 * s.height);
    if (s.tile_pairs == 0) continue;
    set_blocks(env, &s);
    const double share = share_of_time(*g, s, each);
    const double chosen = s.tile_pairs % 2 ? share * kOddPairs : share;
    if (chosen > least) continue;
    least = chosen;
    g->strassen = s;
    pays = true;
  }
  if (!pays || !rows_may_be_added(g->weights, 0, 1, g->group_elems)) return false;
  s = g->strassen;
  StrassenTwice& outer = g->strassen_twice;
  outer = twice(*g, env);
  if (outer.quads && share_of_time(*g, outer, each) > kPaysTwice * share_of_time(*g, s, each)) outer.quads = 0;
  const double k = static_cast<double>(g->in_c);
  const int64_t tiles = outer.quads ? outer.blocks() : s.tile_pairs;
  const int64_t panels = outer.quads ? outer.panel_quads : s.panel_pairs;
  const double cost = static_cast<double>(7 * s.height) * k;  // of pairs; others have as many times of it
  g->grid = choose_parts(env, tiles, panels,
                         cost * static_cast<double>(s.tile_pairs / tiles * (s.panel_pairs / panels)),
                         static_cast<double>(s.rows) * k / 2, static_cast<double>(s.panel_pairs) * k * each.weights);
  int64_t elems = memory_of(s).end;
  if (outer.quads) elems = at_least(elems, memory_of(outer, outer.panel_quads).end);
  const size_t own = static_cast<size_t>(elems) * sizeof(float);
  const size_t plain = static_cast<size_t>(memory_of(s).weights) * sizeof(float) + g->scratch_bytes;
  g->scratch_bytes = own > plain ? own : plain;
  return true;
}

}  // namespace lite::LITE_ISA

#endif
