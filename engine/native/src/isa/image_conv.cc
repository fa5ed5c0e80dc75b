#include "image_conv.h"

#include <math.h>

#include "activation.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

constexpr int run_of(int taps) { return taps * kImageChannels; }
// Numbers that a tile reads of a row: whole pairs of vectors.
constexpr int seen_of(int taps, int stride) {
  const int numbers = (kImagePixels - 1) * stride * kImageChannels + run_of(taps);
  return (numbers + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
}

// A row of taps: number e of the row is element e % 4 of seen[e / 4], output p meets it with the weights of
// k = e - p * kStep.
//
// NOTE: the asm keeps the order of the source: a vector is loaded one k before its first use, when another
// one has just been used for the last time, so that all of them fit into the registers.
template <int kTaps, int kStride, int kVectors>
struct ImageRow {
  static constexpr int kStep = kStride * kImageChannels;  // numbers from one output's run to the next one's
  static constexpr int kRun = run_of(kTaps), kSeen = seen_of(kTaps, kStride) / kLanes;
  const float *x, *w;
  F seen[kSeen], weights[kRun + 1][kVectors];
  F (&sum)[kImagePixels][kVectors];

  // The last k that needs no more than the first `count` vectors.
  static constexpr int last_k(int count) { return count * kLanes - 1 - (kImagePixels - 1) * kStep; }

  template <int kFirst>
  LITE_INLINE void see() {
    load_pair_at<kFirst * 16>(seen[kFirst], seen[kFirst + 1], x);
  }
  template <int k>
  LITE_INLINE void weigh() {
    if constexpr (kVectors == 2) load_pair_at<k * 32>(weights[k][0], weights[k][1], w);
    else if constexpr (k % 2 == 0) load_pair_at<k * 16>(weights[k][0], weights[k + 1][0], w);
  }
  template <int kFirst, int kEnd>
  LITE_INLINE void see_all() {
    if constexpr (kFirst < kEnd) {
      see<kFirst>();
      see_all<kFirst + 2, kEnd>();
    }
  }
  template <int k, int p, int n>
  LITE_INLINE void multiply() {
    constexpr int e = p * kStep + k;
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]"
                 : "+w"(sum[p][n])
                 : "w"(weights[k][n]), "w"(seen[e / kLanes]), "i"(e % kLanes));
    if constexpr (p + 1 < kImagePixels) multiply<k, p + 1, n>();
    else if constexpr (n + 1 < kVectors) multiply<k, 0, n + 1>();
  }
  template <int k, int kSeenNow>
  LITE_INLINE void each_k() {
    if constexpr (k < kRun) {
      constexpr bool more = kSeenNow < kSeen && last_k(kSeenNow) <= k;
      if constexpr (more) see<kSeenNow>();
      if constexpr (k + 1 < kRun) weigh<k + 1>();
      multiply<k, 0, 0>();
      each_k<k + 1, kSeenNow + 2 * more>();
    }
  }
  LITE_INLINE void add() {
    constexpr int kFirst = kSeen < 10 ? kSeen : 10;
    asm volatile("" ::: "memory");  // what lies there was stored
    weigh<0>();
    see_all<0, kFirst>();
    each_k<0, kFirst>();
  }
};

struct ImageTiles {
  int64_t tiles;                    // of an output row; the last one steps back
  const float* const* rows;         // first numbers of each tile's rows of taps
  int64_t count;                    // rows of a tile
  const float* w;
  const float* bias;
  float* c;
  float* last;                      // where the last tile's first pixel is
  ptrdiff_t ldc;
  int columns;                      // valid ones
  float lo, hi, slope;              // see slope_of
  bool hard_swish;
};

template <int kTaps, int kStride, int kVectors>
void run_tiles(const ImageTiles& t) {
  const F lo = splat(t.lo), hi = splat(t.hi);
  const bool clips_low = t.lo != -INFINITY, clips_high = t.hi != INFINITY;
  const int tail = t.columns % kLanes;
  const float* const* rows = t.rows;
  float* next = t.c;
  for (int64_t i = 1; i <= t.tiles; i++, next += kImagePixels * t.ldc) {
    F sum[kImagePixels][kVectors];
    LITE_UNROLL for (int n = 0; n < kVectors; n++) {
      const F b = load(t.bias + n * kLanes);
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++) sum[p][n] = b;
    }
    const float* w = t.w;
    for (int64_t y = t.count; y > 0; y--, rows++, w += run_of(kTaps) * kVectors * kLanes) {
      ImageRow<kTaps, kStride, kVectors> row{*rows, w, {}, {}, sum};
      row.add();
    }
    if (t.hard_swish) {
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++)
          sum[p][n] = activate_vector<Act::kHardSwish>(sum[p][n], lo, hi);
    }
    if (t.slope != 1) {
      const F slope = splat(t.slope);
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) sum[p][n] = max(sum[p][n], slope * sum[p][n]);
    }
    if (clips_low) {
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) sum[p][n] = max(lo, sum[p][n]);
    }
    if (clips_high) {
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) sum[p][n] = min(hi, sum[p][n]);
    }
    float* c = i < t.tiles ? next : t.last;
    LITE_UNROLL for (int p = 0; p < kImagePixels; p++, c += t.ldc) {
      if (kVectors == 2 && !tail) {
        store_pair(c, sum[p][0], sum[p][1]);
        continue;
      }
      if (kVectors == 2) store(c, sum[p][0]);
      float* const end = c + (kVectors - 1) * kLanes;
      if (tail) store_part(end, sum[p][kVectors - 1], tail);
      else store(end, sum[p][kVectors - 1]);
    }
  }
}

int numbers_seen(const ConvShape& s) {
  return seen_of(static_cast<int>(s.kernel[1]), static_cast<int>(s.stride[1]));
}

// Where the tiles of one output row find their rows of taps. Those that reach over an edge get copies
// with zeros, as does the last one: whole vectors are read. Whole rows outside are left out.
void point_tiles(const ConvShape& s, int64_t tiles, const float* image, int64_t y, int64_t ky0, int64_t ky1,
                 const float** pointers, float* copies) {
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3];
  const int64_t columns = (kImagePixels - 1) * s.stride[1] + s.kernel[1];
  const int seen = numbers_seen(s);
  const int64_t down = s.dilation[0] * s.in.row;
  const float* const top = image + (y * s.stride[0] - s.pad[0]) * s.in.row + ky0 * down;
  for (int64_t i = 0; i < tiles; i++) {
    const int64_t x = i + 1 < tiles ? i * kImagePixels : s.out.w - kImagePixels;
    const int64_t first = x * s.stride[1] - s.pad[1];
    const bool inside = first >= low && first * kImageChannels + seen <= high * kImageChannels;
    const float* row = top;
    if (inside) {
      row += first * kImageChannels;
      for (int64_t ky = ky0; ky < ky1; ky++, row += down) *pointers++ = row;
      continue;
    }
    for (int64_t ky = ky0; ky < ky1; ky++, row += down) {
      int64_t begin, end;
      tap_window(first, 1, columns, low, high, &begin, &end);
      memset(copies, 0, static_cast<size_t>(seen) * sizeof(float));
      if (end > begin)
        memcpy(copies + begin * kImageChannels, row + (first + begin) * kImageChannels,
               static_cast<size_t>((end - begin) * kImageChannels) * sizeof(float));
      *pointers++ = copies;
      copies += seen;
    }
  }
}

}  // namespace

bool prepare_image_conv(const ConvShape& s, Env& env, ImageConv* g) {
  g->shape = s;
  g->tiles = (s.out.w + kImagePixels - 1) / kImagePixels;
  const size_t seen = static_cast<size_t>(numbers_seen(s));
  size_t pointers, copies;
  if (!mul_size(static_cast<size_t>(g->tiles * s.kernel[0]), sizeof(float*), &pointers) ||
      !mul_size(static_cast<size_t>(g->tiles * s.kernel[0]), seen * sizeof(float), &copies)) {
    return env.fail("output too large");
  }
  g->scratch_bytes = pointers + copies + 64;
  return true;
}

void run_image_conv(const ImageConv& g, const float* x, float* y, const GridPart& part, void* scratch) {
  const auto [row_begin, row_end, panel_begin, panel_end] = part;
  const ConvShape& s = g.shape;
  const bool wide = s.kernel[1] == kWideTaps, twice = s.stride[1] == 2;
  const int64_t run = run_of(static_cast<int>(s.kernel[1]));
  const Act act = s.activation.act;
  const float slope = slope_of(s.activation);
  const bool apply =
      act != Act::kNone && act != Act::kClip && act != Act::kHardSwish && slope == 1;
  const float** const pointers = static_cast<const float**>(scratch);
  float* const copies = reinterpret_cast<float*>(pointers + g.tiles * s.kernel[0]);
  ImageTiles t{};
  t.tiles = g.tiles;
  t.rows = pointers;
  t.ldc = s.out.pixel;
  t.lo = act == Act::kClip ? s.activation.a : -INFINITY;
  t.hi = act == Act::kClip ? s.activation.b : INFINITY;
  t.slope = slope;
  t.hard_swish = act == Act::kHardSwish;
  for (int64_t row = row_begin; row < row_end; row++) {
    const int64_t image = row / s.out.h, oy = row - image * s.out.h;
    int64_t ky0, ky1;
    tap_window(oy * s.stride[0] - s.pad[0], s.dilation[0], s.kernel[0], -s.in.halo[0],
               s.in.h + s.in.halo[2], &ky0, &ky1);
    t.count = ky1 - ky0;
    point_tiles(s, g.tiles, x + s.in.origin + image * s.in.image, oy, ky0, ky1, pointers, copies);
    float* const out = y + s.out.origin + image * s.out.image + oy * s.out.row;
    for (int64_t panel = panel_begin; panel < panel_end; panel++) {
      const int64_t channel = panel * kTileColumns, left = s.group_out - channel;
      t.columns = static_cast<int>(left < kTileColumns ? left : kTileColumns);
      const int vectors = tile_vectors(t.columns);
      t.w = g.weights + panel * g.panel_elems + ky0 * run * vectors * kLanes;
      t.bias = g.bias + channel;
      t.c = out + channel;
      t.last = t.c + (s.out.w - kImagePixels) * t.ldc;
      const bool two = vectors == 2;
      const auto run_row = wide    ? two ? run_tiles<kWideTaps, 2, 2> : run_tiles<kWideTaps, 2, 1>
                           : twice ? two ? run_tiles<kImageTaps, 2, 2> : run_tiles<kImageTaps, 2, 1>
                           : two   ? run_tiles<kImageTaps, 1, 2> : run_tiles<kImageTaps, 1, 1>;
      run_row(t);
      if (apply) activate_rows(t.c, s.out.w, t.ldc, t.columns, s.activation);
    }
  }
}

}  // namespace lite::LITE_ISA

#endif
