// The tile of f32_tile.h in fp16: eight columns per register.
//
// Sums run in fp16 over at most kRun products; then they are widened and added to float sums. So the
// rounding of a sum does not grow with its depth, and only what kRun products add up to must stay
// below 65504.
#define LITE_FP16
#include "isa/activation.h"
#include "isa/f32_tile.h"

namespace lite::LITE_ISA {
namespace {

constexpr ptrdiff_t kRun = 128;  // a multiple of kLanes

template <int kLane>
LITE_INLINE void multiply_add(F& sum, F w, F x) {
  // NOTE: gcc 12 copies each lane of x out before the intrinsic; only v0 to v15 have lanes.
  asm("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(w), "x"(x), "i"(kLane));
}

template <int kRows, int kVectors>
struct Sums {
  F now[kRows][kVectors];
  Wide before[kRows][kVectors];  // of deep sums only

  // A row vector of weights at w against one lane of every row of A.
  template <int kLane>
  LITE_INLINE void rank_one(const F (&x)[kRows], const Real* w) {
    F b[kVectors];
    LITE_UNROLL for (int n = 0; n < kVectors; n++) b[n] = load(w + (kLane * kVectors + n) * kLanes);
    LITE_UNROLL for (int n = 0; n < kVectors; n++)
      LITE_UNROLL for (int m = 0; m < kRows; m++) multiply_add<kLane>(now[m][n], b[n], x[m]);
  }
  LITE_INLINE void eight(const Real* a, ptrdiff_t lda, const Real* w) {
    F x[kRows];
    LITE_UNROLL for (int m = 0; m < kRows; m++) x[m] = load(a + m * lda);
    rank_one<0>(x, w);
    rank_one<1>(x, w);
    rank_one<2>(x, w);
    rank_one<3>(x, w);
    rank_one<4>(x, w);
    rank_one<5>(x, w);
    rank_one<6>(x, w);
    rank_one<7>(x, w);
  }
  LITE_INLINE void one(const Real* a, ptrdiff_t lda, const Real* w) {
    F x[kRows];
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      x[m] = reinterpret_cast<F>(vld1q_dup_f16(a + m * lda));
    rank_one<0>(x, w);
  }
  LITE_INLINE void widen_all() {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) {
        before[m][n] = before[m][n] + widen(now[m][n]);
        now[m][n] = F{};
      }
  }
};

template <int kRows, int kVectors>
LITE_INLINE void finish(const Tile& t, bool deep, Sums<kRows, kVectors>& sums) {
  if (deep) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        sums.now[m][n] = narrow(sums.before[m][n] + widen(sums.now[m][n]));
  }
  const F lo = splat(t.lo), hi = splat(t.hi);
  const int tail = t.columns - (kVectors - 1) * kLanes;
  const auto at = [](auto* p, ptrdiff_t ld, int m, int n) { return p + m * ld + n * kLanes; };
  const auto each = [&](auto change) __attribute__((always_inline)) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) change(m, n, sums.now[m][n]);
  };
  const auto is_part = [&](int n) { return n == kVectors - 1 && tail < kLanes; };
  if (t.residual) {
    each([&](int m, int n, F& v) __attribute__((always_inline)) {
      const Real* r = at(t.residual, t.ldr, m, n);
      v += is_part(n) ? load_part(r, tail) : load(r);
    });
  }
  if (t.hard_swish) {
    each([&](int, int, F& v) __attribute__((always_inline)) {
      v = activate_vector<Act::kHardSwish>(v, lo, hi);
    });
  } else {
    each([&](int, int, F& v) __attribute__((always_inline)) { v = min(hi, max(lo, v)); });
  }
  if (tail == kLanes) {
    each([&](int m, int n, F& v) __attribute__((always_inline)) { store(at(t.c, t.ldc, m, n), v); });
  } else {
    each([&](int m, int n, F& v) __attribute__((always_inline)) {
      if (is_part(n)) store_part(at(t.c, t.ldc, m, n), v, tail);
      else store(at(t.c, t.ldc, m, n), v);
    });
  }
}

template <int kRows, int kVectors>
void one_tile(const Tile& t) {
  constexpr ptrdiff_t kStep = kVectors * kLanes;
  const bool deep = t.taps_y * t.taps_x * t.k > kRun;
  Sums<kRows, kVectors> sums;
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    const F b = load(t.bias + n * kLanes);
    LITE_UNROLL for (int m = 0; m < kRows; m++) sums.now[m][n] = b;
  }
  if (deep) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++) sums.before[m][n] = Wide{};
  }
  const ptrdiff_t lda = t.lda;
  ptrdiff_t room = kRun;
  const Real* w_row = t.w;
  const Real* a_row = t.a;
  for (int y = t.taps_y; y > 0; y--, a_row += t.tap_y, w_row += t.w_y) {
    const Real* w = w_row;
    const Real* a_tap = a_row;
    for (int x = t.taps_x; x > 0; x--, a_tap += t.tap_x) {
      const Real* a = a_tap;
      for (ptrdiff_t left = t.k; left > 0;) {
        if (room < kLanes) {
          sums.widen_all();
          room = kRun;
        }
        const ptrdiff_t now = left < room ? left : room / kLanes * kLanes;
        left -= now;
        room -= now;
        for (ptrdiff_t i = now / kLanes; i > 0; i--, a += kLanes, w += kLanes * kStep)
          sums.eight(a, lda, w);
        for (ptrdiff_t i = now % kLanes; i > 0; i--, a++, w += kStep) sums.one(a, lda, w);
      }
    }
  }
  finish(t, deep, sums);
}

__attribute__((noinline)) void run(TileFn one, int rows, const Tile& first) {
  Tile t = first;
  for (int32_t left = first.count; left > 0; left--) {
    one(t);
    t.a += rows * t.lda;
    t.c += rows * t.ldc;
    if (t.residual) t.residual += rows * t.ldr;
  }
}

template <int kRows, int kVectors>
void tiles(const Tile& t) {
  run(one_tile<kRows, kVectors>, kRows, t);
}

}  // namespace

#define LITE_TILES(rows, vectors) tiles<rows, vectors>
// The next panel is not fetched ahead.
const TileFn kTile[2][kTileRows] = {{LITE_HEIGHTS(LITE_TILES, 1)}, {LITE_HEIGHTS(LITE_TILES, 2)}};

}  // namespace lite::LITE_ISA
