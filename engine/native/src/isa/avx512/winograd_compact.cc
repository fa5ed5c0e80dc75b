// 3x3 stride-1 convolution of a map of up to four tiles by Winograd's F(4,3), the weights
// transformed as they are read.
//
// With so few tiles the weights of F(4,3), four times the 3x3 ones, and even those of F(2,3) take
// longer to arrive than to multiply. Here they stay in memory as they are and become points in
// registers, a row of six at a time, which all tiles are multiplied with. The factors of the
// points (F43::kFactors) are left out of the weights and multiplied into the sums.
//
//   V[chunk of 16 channels][point][tile][channel]       input transform
//   g[panel of 16 columns][channel][3][3][column]       weights; a chunk stays in the L1 cache
//   M[point][tile][column]                              of a panel, there too
#include <string.h>

#include "isa/activation.h"
#include "isa/winograd_tiles.h"

namespace lite::LITE_ISA {
namespace {

constexpr Form kF43 = form_of<F43, F43>("43");
constexpr int kPoints = F43::kPoints, kAll = kPoints * kPoints;
constexpr int kMostTiles = 4, kChunk = kLanes;
constexpr int64_t kChunkElems = kAll * kMostTiles * kLanes;   // of V
constexpr int kAhead = kChunk * 9 / kPoints;                    // cache lines

struct Compact : Winograd {
  int64_t chunks;
  float factors[kAll];                 // of the points
};

// Row kRow of the points of one column of 3x3 weights, without its factor.
template <int kRow>
LITE_INLINE F blend(const float* g) {
  constexpr int kNext = 3 * kLanes;
  const F first = load(g + (kRow == 5 ? 2 * kNext : 0));
  if (kRow == 0 || kRow == 5) return first;
  const F middle = load(g + kNext), last = load(g + 2 * kNext);
  constexpr float kPoint = (kRow < 3 ? F43::kNear : F43::kFar) * (kRow % 2 ? 1 : -1);
  return fma(splat(kPoint), middle, fma(splat(kPoint * kPoint), last, first));
}

// Row kRow of M += a chunk of V times weights. Meanwhile kAhead cache lines are fetched to L2.
template <int kTiles, int kRow>
void multiply(const float* v, const float* g, float* sums, const float* ahead) {
  F acc[kPoints][kTiles];
  LITE_UNROLL for (int j = 0; j < kPoints; ++j)
    LITE_UNROLL for (int t = 0; t < kTiles; ++t)
      acc[j][t] = load(sums + (j * kTiles + t) * kLanes);
  const F near = splat(F43::kNear), near2 = splat(F43::kNear2);
  const F far = splat(F43::kFar), far2 = splat(F43::kFar2);
  const auto channel = [&](const float* v, const float* g) __attribute__((always_inline)) {
    const auto point = [&](int j, F u) __attribute__((always_inline)) {
      LITE_UNROLL for (int t = 0; t < kTiles; ++t)
        acc[j][t] = fma(splat(v[(j * kMostTiles + t) * kLanes]), u, acc[j][t]);
    };
    const F a = blend<kRow>(g), b = blend<kRow>(g + kLanes), c = blend<kRow>(g + 2 * kLanes);
    point(0, a);
    point(5, c);
    const F even = fma(near2, c, a), even2 = fma(far2, c, a);
    point(1, fma(near, b, even));
    point(2, fma(-near, b, even));
    point(3, fma(far, b, even2));
    point(4, fma(-far, b, even2));
  };
  // Fetched one by one: more at once would hold up what is needed now.
  constexpr int kStep = 2, kLines = kAhead * kStep / kChunk;
  for (const float* end = v + kChunk; v < end; v += kStep, g += kStep * 9 * kLanes) {
    LITE_UNROLL for (int i = 0; i < kLines; ++i, ahead += kLanes) prefetch_l2(ahead);
    LITE_UNROLL for (int k = 0; k < kStep; ++k) channel(v + k, g + k * 9 * kLanes);
  }
  LITE_UNROLL for (int j = 0; j < kPoints; ++j)
    LITE_UNROLL for (int t = 0; t < kTiles; ++t)
      store(sums + (j * kTiles + t) * kLanes, acc[j][t]);
}

using MultiplyFn = void (*)(const float*, const float*, float*, const float*);
#define LITE_ALL_ROWS(tiles)                                                            \
  {multiply<tiles, 0>, multiply<tiles, 1>, multiply<tiles, 2>,                          \
   multiply<tiles, 3>, multiply<tiles, 4>, multiply<tiles, 5>}
constexpr MultiplyFn kMultiply[kMostTiles][kPoints] = {LITE_ALL_ROWS(1), LITE_ALL_ROWS(2),
                                                       LITE_ALL_ROWS(3), LITE_ALL_ROWS(4)};

bool suits(const Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal) || step.by_rows) return false;
  for (int i = 0; i < 2; ++i)
    if (s.stride[i] != 1 || s.dilation[i] != 1) return false;
  const PixelView& y = s.out;
  const int64_t tiles = y.images * ((y.h + 3) / 4) * ((y.w + 3) / 4);
  const int64_t pixels = y.images * y.h * y.w, c = s.in.c;
  // Vector operations for a channel and vector of columns: 60 for the points and 36 a tile, against
  // 9 a pixel of the plain sum.
  return tiles <= kMostTiles && 60 + 36 * tiles < 9 * pixels && c >= kChunk &&
         4 * kAll * kMostTiles * c <= static_cast<int64_t>(env.l2_bytes / 2);
}

bool prepare(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal)) return false;
  Compact* w = static_cast<Compact*>(env.allocate(sizeof(Compact)));
  if (!w) return env.out_of_memory();
  step.state = w;
  if (!describe(s, kF43, env, w)) return false;
  for (int i = 0; i < kAll; ++i)
    w->factors[i] = static_cast<float>(F43::kFactors[i / kPoints] * F43::kFactors[i % kPoints]);
  w->chunks = w->padded_channels / kChunk;
  w->panels = (s.out.c + kLanes - 1) / kLanes;
  w->panel_elems = w->padded_channels * 9 * kLanes;
  const Recipe recipe{LITE_ISA_NAME " compact",
                      s.weights->data,
                      s.weights->bytes,
                      {w->channels, w->padded_channels, s.out.c}};
  bool made;
  float* weights = static_cast<float*>(
      env.allocate_packed(recipe, (w->panels * w->panel_elems + 1) * kBytes, &made));
  if (!weights) return env.out_of_memory();
  w->weights = weights;
  const float* from = s.weights->as<float>();
  for (int64_t n = 0; n < s.out.c && !made; ++n) {
    float* to = weights + n / kLanes * w->panel_elems + n % kLanes;
    for (int64_t i = 0; i < w->channels * 9; ++i, ++from, to += kLanes) *to = *from;
  }
  step.scratch_bytes = sizeof(float) * (w->chunks + 1) * kChunkElems;
  set_variant(step, "f32_conv2d_winograd43__" LITE_ISA_NAME "_compact");
  return true;
}

// A panel of M; meanwhile the weights of a panel are fetched from `ahead` on.
void multiply_panel(const Compact& w, int64_t panel, const float* v, const float* ahead,
                    float* sums) {
  const int tiles = static_cast<int>(w.tiles);
  const float* g = w.weights + panel * w.panel_elems;
  memset(sums, 0, sizeof(float) * kAll * tiles * kLanes);
  for (int64_t chunk = 0; chunk < w.chunks; ++chunk, g += kChunk * 9 * kLanes) {
    for (int i = 0; i < kPoints; ++i, v += kPoints * kMostTiles * kLanes) {
      kMultiply[tiles - 1][i](v, g, sums + i * kPoints * tiles * kLanes, ahead);
      ahead += kAhead * kLanes;
    }
  }
  for (int xi = 0; xi < kAll; ++xi) {
    for (int t = 0; t < tiles; ++t, sums += kLanes)
      store(sums, splat(w.factors[xi]) * load(sums));
  }
}

void run(const Step& step, int, int thread, int threads, void* scratch) {
  const Compact& w = *static_cast<const Compact*>(step.state);
  const float* x = step.inputs[0]->as<float>();
  const float* residual = w.has_residual ? step.inputs[3]->as<float>() : nullptr;
  float* y = step.outputs[0]->as<float>();
  int64_t begin, end;
  share(w.panels, 1, thread, threads, &begin, &end);
  if (begin == end) return;
  float* v = static_cast<float*>(scratch);
  float* sums = v + w.chunks * kChunkElems;
  for (int64_t t = 0; t < w.tiles; ++t)
    transform_input<F43, F43, kChunkElems>(w, x, tile_at(w, t), v + t * kLanes, kMostTiles * kLanes);
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t n0 = panel * kLanes, left = w.out.c - n0, columns = left < kLanes ? left : kLanes;
    const int64_t next = panel + 1 < end ? panel + 1 : panel;
    multiply_panel(w, panel, v, w.weights + next * w.panel_elems, sums);
    for (int64_t t = 0; t < w.tiles; ++t) {
      const TileAt at = tile_at(w, t);
      write_tile<F43, F43>(w, sums + t * kLanes, w.tiles * kLanes, at, n0, columns, y, residual);
      if (w.applies) activate_tiles(w, at, at.x, n0, columns, y);
    }
  }
}

const Kernel kCompact[] = {
    {"Conv", "f32_conv2d_winograd43", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
    {"Conv", "f32_conv2d_3x3", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(winograd_compact, kCompact)
