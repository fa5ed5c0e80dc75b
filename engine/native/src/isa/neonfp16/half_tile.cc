// The float tile with fp16 products: A and W hold pairs of halves, C and the bias floats.
//
// Sums run in fp16, eight columns per register, over at most kRun pairs; then they are widened and
// added to float sums. So the rounding of a sum does not grow with its depth, and only what
// kRun pairs add up to must stay below 65504.
#define LITE_HALF_PRODUCTS
#include "../activation.h"
#include "../f32_tile.h"

namespace lite::LITE_ISA {
namespace {

typedef float16x8_t H;
constexpr ptrdiff_t kRun = 64;

LITE_INLINE H load_halves(const float* p) {
  H v;
  memcpy(&v, p, sizeof v);
  return v;
}

template <int kLane>
LITE_INLINE void multiply_add(H& sum, H w, H x) {
  // NOTE: gcc 12 copies each lane of x out before the intrinsic; only v0 to v15 have lanes.
  asm("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(w), "x"(x), "i"(kLane));
}

template <int kRows, int kVectors>
struct Sums {
  H now[kRows][kVectors];
  float before[kRows][kVectors * 8];

  // Row `lane` of the weights at w against that lane of every row of A.
  template <int kLane>
  LITE_INLINE void rank_one(const H (&x)[kRows], const float* w) {
    H b[kVectors];
    LITE_UNROLL for (int n = 0; n < kVectors; n++)
      b[n] = load_halves(w + (kLane * kVectors + n) * kLanes);
    LITE_UNROLL for (int n = 0; n < kVectors; n++)
      LITE_UNROLL for (int m = 0; m < kRows; m++) multiply_add<kLane>(now[m][n], b[n], x[m]);
  }
  LITE_INLINE void four_pairs(const float* a, ptrdiff_t lda, const float* w) {
    H x[kRows];
    LITE_UNROLL for (int m = 0; m < kRows; m++) x[m] = load_halves(a + m * lda);
    rank_one<0>(x, w);
    rank_one<1>(x, w);
    rank_one<2>(x, w);
    rank_one<3>(x, w);
    rank_one<4>(x, w);
    rank_one<5>(x, w);
    rank_one<6>(x, w);
    rank_one<7>(x, w);
  }
  LITE_INLINE void one_pair(const float* a, ptrdiff_t lda, const float* w) {
    H x[kRows];
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      x[m] = vreinterpretq_f16_f32(vld1q_dup_f32(a + m * lda));
    rank_one<0>(x, w);
    rank_one<1>(x, w);
  }
  LITE_INLINE void widen() {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) {
        float* s = before[m] + n * 8;
        store(s, load(s) + (F)vcvt_f32_f16(vget_low_f16(now[m][n])));
        store(s + 4, load(s + 4) + (F)vcvt_high_f32_f16(now[m][n]));
        now[m][n] = H{};
      }
  }
};

template <int kRows, int kVectors>
void tile(const Tile& t) {
  constexpr int kStep = kVectors * 2 * kLanes;  // floats of one pair of every column
  Sums<kRows, kVectors> sums;
  LITE_UNROLL for (int m = 0; m < kRows; m++) {
    LITE_UNROLL for (int n = 0; n < kVectors; n++) sums.now[m][n] = H{};
    LITE_UNROLL for (int n = 0; n < 2 * kVectors; n++)
      store(sums.before[m] + n * kLanes, load(t.bias + n * kLanes));
  }
  const ptrdiff_t lda = t.lda;
  ptrdiff_t room = kRun;
  const float* w_row = t.w;
  const float* a_row = t.a;
  for (int y = t.taps_y; y > 0; y--, a_row += t.tap_y, w_row += t.w_y) {
    const float* w = w_row;
    const float* a_tap = a_row;
    for (int x = t.taps_x; x > 0; x--, a_tap += t.tap_x) {
      const float* a = a_tap;
      ptrdiff_t left = t.k;
      while (left >= 4) {
        ptrdiff_t fours = (left < room ? left : room) / 4;
        left -= fours * 4;
        room -= fours * 4;
        for (; fours > 0; fours--, a += 4, w += 4 * kStep) sums.four_pairs(a, lda, w);
        if (room < 4) {
          sums.widen();
          room = kRun;
        }
      }
      for (; left > 0; left--, a++, w += kStep) {
        sums.one_pair(a, lda, w);
        if (--room < 4) {
          sums.widen();
          room = kRun;
        }
      }
    }
  }
  sums.widen();
  const F lo = splat(t.lo), hi = splat(t.hi);
  const auto out = [&](F v) __attribute__((always_inline)) {
    return t.hard_swish ? activate_vector<Act::kHardSwish>(v, lo, hi) : min(hi, max(lo, v));
  };
  for (int m = 0; m < kRows; m++) {
    int left = t.columns;
    for (int n = 0; left > 0; n += kLanes, left -= kLanes) {
      F v = load(sums.before[m] + n);
      float* c = t.c + m * t.ldc + n;
      const float* r = t.residual ? t.residual + m * t.ldr + n : nullptr;
      if (left >= kLanes) {
        if (r) v += load(r);
        store(c, out(v));
      } else {
        if (r) v += load_part(r, left);
        store_part(c, out(v), left);
      }
    }
  }
}

}  // namespace

#define LITE_TILES(v) \
  {tile<1, v>, tile<2, v>, tile<3, v>, tile<4, v>, tile<5, v>, tile<6, v>, tile<7, v>, tile<8, v>}

// The next panel is not fetched ahead.
const TileFn kTile[2][2][kTileRows] = {{LITE_TILES(1), LITE_TILES(2)},
                                       {LITE_TILES(1), LITE_TILES(2)}};

}  // namespace lite::LITE_ISA
