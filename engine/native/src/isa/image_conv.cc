#include "image_conv.h"

#include <math.h>

#include "activation.h"

#if defined(LITE_PACKED_TILE)

namespace lite::LITE_ISA {
namespace {

constexpr int kStep = 2 * kImageChannels;  // numbers from one output's run to the next one's
constexpr int kRun = kImageTaps * kImageChannels;
// Numbers that a tile reads of a row, whole vectors.
constexpr int kSeen = ((kImagePixels - 1) * kStep + kRun + kLanes - 1) / kLanes * kLanes;

// One row of taps. v16 to v27 hold what the outputs see: number e of the row is element e % 4 of v(16 + e / 4).
// The weights of the next k are loaded before those of one are used. (gcc would spill these sums.)
#define LITE_SEE                                                                            \
  "ldp q16, q17, [%[x]]\n\tldp q18, q19, [%[x], 32]\n\tldp q20, q21, [%[x], 64]\n\t" \
  "ldp q22, q23, [%[x], 96]\n\tldp q24, q25, [%[x], 128]\n\tldp q26, q27, [%[x], 160]\n\t"
#define LITE_ONE(sum, w, v, e) "fmla %[" #sum "].4s, v" #w ".4s, v" #v ".s[" #e "]\n\t"
#define LITE_K1(w0, v0, e0, v1, e1, v2, e2, v3, e3, v4, e4, v5, e5, v6, e6) \
  LITE_ONE(A0, w0, v0, e0) LITE_ONE(B0, w0, v1, e1) LITE_ONE(C0, w0, v2, e2) \
  LITE_ONE(D0, w0, v3, e3) LITE_ONE(E0, w0, v4, e4) LITE_ONE(F0, w0, v5, e5) \
  LITE_ONE(G0, w0, v6, e6)
#define LITE_K2(w0, w1, v0, e0, v1, e1, v2, e2, v3, e3, v4, e4, v5, e5, v6, e6) \
  LITE_ONE(A0, w0, v0, e0) LITE_ONE(B0, w0, v1, e1) LITE_ONE(C0, w0, v2, e2) \
  LITE_ONE(D0, w0, v3, e3) LITE_ONE(E0, w0, v4, e4) LITE_ONE(F0, w0, v5, e5) \
  LITE_ONE(G0, w0, v6, e6) LITE_ONE(A1, w1, v0, e0) LITE_ONE(B1, w1, v1, e1) \
  LITE_ONE(C1, w1, v2, e2) LITE_ONE(D1, w1, v3, e3) LITE_ONE(E1, w1, v4, e4) \
  LITE_ONE(F1, w1, v5, e5) LITE_ONE(G1, w1, v6, e6)

template <int kVectors>
void add_row(const float* x, const float* w, F (&sum)[kImagePixels][kVectors]);
template <>
LITE_INLINE void add_row<1>(const float* x, const float* w, F (&sum)[kImagePixels][1]) {
  asm volatile(
      LITE_SEE "ldr q28, [%[w], 0]\n\t"
      "ldr q29, [%[w], 16]\n\t"
      LITE_K1(28, 16, 0, 17, 2, 19, 0, 20, 2, 22, 0, 23, 2, 25, 0)
      "ldr q30, [%[w], 32]\n\t"
      LITE_K1(29, 16, 1, 17, 3, 19, 1, 20, 3, 22, 1, 23, 3, 25, 1)
      "ldr q31, [%[w], 48]\n\t"
      LITE_K1(30, 16, 2, 18, 0, 19, 2, 21, 0, 22, 2, 24, 0, 25, 2)
      "ldr q28, [%[w], 64]\n\t"
      LITE_K1(31, 16, 3, 18, 1, 19, 3, 21, 1, 22, 3, 24, 1, 25, 3)
      "ldr q29, [%[w], 80]\n\t"
      LITE_K1(28, 17, 0, 18, 2, 20, 0, 21, 2, 23, 0, 24, 2, 26, 0)
      "ldr q30, [%[w], 96]\n\t"
      LITE_K1(29, 17, 1, 18, 3, 20, 1, 21, 3, 23, 1, 24, 3, 26, 1)
      "ldr q31, [%[w], 112]\n\t"
      LITE_K1(30, 17, 2, 19, 0, 20, 2, 22, 0, 23, 2, 25, 0, 26, 2)
      "ldr q28, [%[w], 128]\n\t"
      LITE_K1(31, 17, 3, 19, 1, 20, 3, 22, 1, 23, 3, 25, 1, 26, 3)
      LITE_K1(28, 18, 0, 19, 2, 21, 0, 22, 2, 24, 0, 25, 2, 27, 0)
      : [A0] "+w"(sum[0][0]), [B0] "+w"(sum[1][0]), [C0] "+w"(sum[2][0]), [D0] "+w"(sum[3][0]),
        [E0] "+w"(sum[4][0]), [F0] "+w"(sum[5][0]), [G0] "+w"(sum[6][0])
      : [x] "r"(x), [w] "r"(w)
      : "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
        "v30", "v31", "memory");
}
template <>
LITE_INLINE void add_row<2>(const float* x, const float* w, F (&sum)[kImagePixels][2]) {
  asm volatile(
      LITE_SEE "ldp q28, q29, [%[w], 0]\n\t"
      "ldp q30, q31, [%[w], 32]\n\t"
      LITE_K2(28, 29, 16, 0, 17, 2, 19, 0, 20, 2, 22, 0, 23, 2, 25, 0)
      "ldp q28, q29, [%[w], 64]\n\t"
      LITE_K2(30, 31, 16, 1, 17, 3, 19, 1, 20, 3, 22, 1, 23, 3, 25, 1)
      "ldp q30, q31, [%[w], 96]\n\t"
      LITE_K2(28, 29, 16, 2, 18, 0, 19, 2, 21, 0, 22, 2, 24, 0, 25, 2)
      "ldp q28, q29, [%[w], 128]\n\t"
      LITE_K2(30, 31, 16, 3, 18, 1, 19, 3, 21, 1, 22, 3, 24, 1, 25, 3)
      "ldp q30, q31, [%[w], 160]\n\t"
      LITE_K2(28, 29, 17, 0, 18, 2, 20, 0, 21, 2, 23, 0, 24, 2, 26, 0)
      "ldp q28, q29, [%[w], 192]\n\t"
      LITE_K2(30, 31, 17, 1, 18, 3, 20, 1, 21, 3, 23, 1, 24, 3, 26, 1)
      "ldp q30, q31, [%[w], 224]\n\t"
      LITE_K2(28, 29, 17, 2, 19, 0, 20, 2, 22, 0, 23, 2, 25, 0, 26, 2)
      "ldp q28, q29, [%[w], 256]\n\t"
      LITE_K2(30, 31, 17, 3, 19, 1, 20, 3, 22, 1, 23, 3, 25, 1, 26, 3)
      LITE_K2(28, 29, 18, 0, 19, 2, 21, 0, 22, 2, 24, 0, 25, 2, 27, 0)
      : [A0] "+w"(sum[0][0]), [A1] "+w"(sum[0][1]), [B0] "+w"(sum[1][0]), [B1] "+w"(sum[1][1]),
        [C0] "+w"(sum[2][0]), [C1] "+w"(sum[2][1]), [D0] "+w"(sum[3][0]), [D1] "+w"(sum[3][1]),
        [E0] "+w"(sum[4][0]), [E1] "+w"(sum[4][1]), [F0] "+w"(sum[5][0]), [F1] "+w"(sum[5][1]),
        [G0] "+w"(sum[6][0]), [G1] "+w"(sum[6][1])
      : [x] "r"(x), [w] "r"(w)
      : "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29",
        "v30", "v31", "memory");
}

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
  float lo, hi;
  bool hard_swish;
};

template <int kVectors>
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
    for (int64_t y = t.count; y > 0; y--, rows++, w += kRun * kVectors * kLanes)
      add_row<kVectors>(*rows, w, sum);
    if (t.hard_swish) {
      LITE_UNROLL for (int p = 0; p < kImagePixels; p++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++)
          sum[p][n] = activate_vector<Act::kHardSwish>(sum[p][n], lo, hi);
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

// Where the tiles of one output row find their rows of taps. Those that reach over an edge get copies
// with zeros, as does the last one: whole vectors are read. Whole rows outside are left out.
void point_tiles(const ConvShape& s, int64_t tiles, const float* image, int64_t y, int64_t ky0, int64_t ky1,
                 const float** pointers, float* copies) {
  const int64_t low = -s.in.halo[1], high = s.in.w + s.in.halo[3];
  constexpr int64_t kColumns = (kImagePixels - 1) * 2 + kImageTaps;
  for (int64_t i = 0; i < tiles; i++) {
    const int64_t x = i + 1 < tiles ? i * kImagePixels : s.out.w - kImagePixels;
    const int64_t first = x * 2 - s.pad[1];
    const bool inside = first >= low && first * kImageChannels + kSeen <= high * kImageChannels;
    for (int64_t ky = ky0; ky < ky1; ky++) {
      const float* row = image + (y * s.stride[0] - s.pad[0] + ky * s.dilation[0]) * s.in.row;
      if (inside) {
        *pointers++ = row + first * kImageChannels;
        continue;
      }
      int64_t begin, end;
      tap_window(first, 1, kColumns, low, high, &begin, &end);
      memset(copies, 0, static_cast<size_t>(kSeen) * sizeof(float));
      if (end > begin)
        memcpy(copies + begin * kImageChannels, row + (first + begin) * kImageChannels,
               static_cast<size_t>((end - begin) * kImageChannels) * sizeof(float));
      *pointers++ = copies;
      copies += kSeen;
    }
  }
}

}  // namespace

bool prepare_image_conv(const ConvShape& s, Env& env, ImageConv* g) {
  g->shape = s;
  g->tiles = (s.out.w + kImagePixels - 1) / kImagePixels;
  size_t pointers, copies;
  if (!mul_size(static_cast<size_t>(g->tiles * s.kernel[0]), sizeof(float*), &pointers) ||
      !mul_size(static_cast<size_t>(g->tiles * s.kernel[0]), kSeen * sizeof(float), &copies)) {
    return env.fail("output too large");
  }
  g->scratch_bytes = pointers + copies + 64;
  return true;
}

void run_image_conv(const ImageConv& g, const float* x, float* y, const GridPart& part, void* scratch) {
  const auto [row_begin, row_end, panel_begin, panel_end] = part;
  const ConvShape& s = g.shape;
  const Act act = s.activation.act;
  const bool apply = act != Act::kNone && act != Act::kClip && act != Act::kHardSwish;
  const float** const pointers = static_cast<const float**>(scratch);
  float* const copies = reinterpret_cast<float*>(pointers + g.tiles * s.kernel[0]);
  ImageTiles t{};
  t.tiles = g.tiles;
  t.rows = pointers;
  t.ldc = s.out.pixel;
  t.lo = act == Act::kClip ? s.activation.a : -INFINITY;
  t.hi = act == Act::kClip ? s.activation.b : INFINITY;
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
      t.w = g.weights + panel * g.panel_elems + ky0 * kRun * vectors * kLanes;
      t.bias = g.bias + channel;
      t.c = out + channel;
      t.last = t.c + (s.out.w - kImagePixels) * t.ldc;
      (vectors == 2 ? run_tiles<2> : run_tiles<1>)(t);
      if (apply) activate_rows(t.c, s.out.w, t.ldc, t.columns, s.activation);
    }
  }
}

}  // namespace lite::LITE_ISA

#endif
