// What Strassen's scheme is applied to, and whether it pays.
#include <math.h>

#include "tap_gemm.h"

#if defined(LITE_STRASSEN)

namespace lite::LITE_ISA {
namespace {

constexpr int64_t kLine = 64 / sizeof(float);
constexpr int kMostRows = kPacks ? kPackedRows : kTileRows;
// Lower ones of a low tile would wait for their weights.
constexpr int kFewestRows = !kPacks && kTileRows > 8 ? kTileRows * 2 / 3 + 1 : kMostRows;
// What each vector takes, in products of vectors: products of a pair's rows, a row's sums, the weights'.
// Fitted to ratios measured on Zen 4, with AVX-512 and with AVX2, which multiplies twice a cycle; on
// AArch64 counted, with stores for two.
struct Additions {
  double combine, rows, weights;
};
constexpr Additions kDoublePumped{30, 45, 15}, kWhole{70, 45, 15}, kPacked{40, 30, 12};
constexpr double kPays = 0.97;      // of the plain products' time
// Two threads share an even number of pairs evenly, each its own rows, which the next layer finds in its cache.
constexpr double kOddPairs = 1.01;
// Factors are read in order, which a third-level cache is fast enough for; sums of weights are made
// once for each block.
constexpr double kCachesOfBlock = 2;

int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

// Of the time of plain products.
double share_of_time(const TapGemm& g, const Strassen& s, const Additions& each) {
  const double k = static_cast<double>(g.in_c), height = static_cast<double>(s.height);
  const double pairs = static_cast<double>(s.tile_pairs), columns = static_cast<double>(s.panel_pairs);
  const int64_t left = s.rows - 2 * s.height * s.tile_pairs;
  const double panels = static_cast<double>(g.panels), low = static_cast<double>(left ? at_least(left, 2) : 0);
  const double blocks = ceil(pairs / static_cast<double>(s.block_pairs));
  const double multiply = pairs * columns * 7 * height * k;
  const double combine = pairs * columns * height * 2 * each.combine * static_cast<double>(s.pieces);
  const double add_rows = pairs * height * k / 2 / kLanes * each.rows;
  const double add_weights = blocks * columns * k * each.weights;
  const double rest = pairs * 2 * height * (panels - 2 * columns) * 2 * k + low * panels * 2 * k;
  return (multiply + combine + add_rows + add_weights + rest) / (static_cast<double>(s.rows) * panels * 2 * k);
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

}  // namespace

bool prepare_strassen(const ConvShape& shape, bool rows_share_a_set, Env& env, TapGemm* g) {
  Strassen s{};
  s.panel_pairs = g->out_c / kTileColumns / 2;
  if (!find_rows(shape, &s) || s.panel_pairs == 0 || !cut_depth(g->in_c, &s)) return false;
  s.factors = kPacks || rows_share_a_set ? kStrassenProducts : kStrassenSums;
  s.ld_factor = (s.half + kLine - 1) / kLine * kLine + kLine;
  const Additions& each = kPacks ? kPacked : env.cpu.halves && kLanes == 16 ? kDoublePumped : kWhole;
  double least = kPays;
  bool pays = false;
  for (s.height = kMostRows; s.height >= kFewestRows; --s.height) {
    s.tile_pairs = s.rows / (2 * s.height);
    if (s.tile_pairs == 0) continue;
    s.factor_elems = kPacks ? (s.height * s.half + kPackedSlack + kLine - 1) / kLine * kLine
                            : s.height * s.ld_factor;
    const double bytes = static_cast<double>(sizeof(float) * kStrassenProducts * s.factor_elems);
    const double block = kCachesOfBlock * static_cast<double>(env.l2_bytes) / bytes;
    s.block_pairs = block < 1 ? 1 : block > s.tile_pairs ? s.tile_pairs : static_cast<int64_t>(block);
    const double share = share_of_time(*g, s, each);
    const double chosen = s.tile_pairs % 2 ? share * kOddPairs : share;
    if (chosen > least) continue;
    least = chosen;
    g->strassen = s;
    pays = true;
  }
  if (!pays || !may_be_added(g->weights, g->group_elems)) return false;
  s = g->strassen;
  const double k = static_cast<double>(g->in_c);
  g->grid = choose_grid(env.threads, s.tile_pairs, s.panel_pairs, static_cast<double>(7 * s.height) * k,
                        static_cast<double>(s.rows) * k / 2, static_cast<double>(s.panel_pairs) * k * each.weights);
  const size_t own = static_cast<size_t>(memory_of(s).end) * sizeof(float);
  const size_t plain = static_cast<size_t>(memory_of(s).weights) * sizeof(float) + g->scratch_bytes;
  g->scratch_bytes = own > plain ? own : plain;
  return true;
}

}  // namespace lite::LITE_ISA

#endif
