// Instances of the float tile for every height. Why the loop looks as it does: docs/kernels.md.
#include "f32_tile.h"

#include <math.h>

#include <type_traits>

#include "activation.h"
#include "pairs.h"

namespace lite::LITE_ISA {
namespace {

#if defined(LITE_PAIRS)
// The first n numbers of a row of bf16 as vectors of floats.
template <int kVectors>
LITE_INLINE void add_shorts(F (&sums)[kVectors], const uint16_t* r, int n) {
  touches(r, 2 * n);
  LITE_UNROLL for (int v = 0; v < kVectors; v++) {
    const int here = n - v * kLanes < kLanes ? n - v * kLanes : kLanes;
    const __m256i shorts = _mm256_maskz_loadu_epi16(first_lanes(here), r + v * kLanes);
    sums[v] += as_float((I)_mm512_slli_epi32(_mm512_cvtepu16_epi32(shorts), 16));
  }
}

// The first n numbers of a row, rounded to bf16.
template <int kVectors>
LITE_INLINE void store_shorts(uint16_t* c, const F (&sums)[kVectors], int n) {
  touches(c, 2 * n);
  if constexpr (kVectors == 2) {
    const __m512bh both = _mm512_cvtne2ps_pbh((__m512)sums[1], (__m512)sums[0]);
    _mm512_mask_storeu_epi16(c, ~0u >> (32 - n), (__m512i)both);
  } else {
    const __m256bh one = _mm512_cvtneps_pbh((__m512)sums[0]);
    _mm256_mask_storeu_epi16(c, first_lanes(n), (__m256i)one);
  }
}
#endif

// Where one of the tiles of a count lies.
struct Place {
  const Real* a;
  Real* c;
  const Real* residual;
};

template <int kRows, int kVectors>
LITE_INLINE void finish(const Tile& t, const Place& at, F (&acc)[kRows][kVectors]) {
  constexpr int kFull = kVectors - 1;  // where columns are missing, the last vector lacks them
  const bool full = t.columns == kVectors * kLanes;
  const int tail = t.columns - kFull * kLanes;
  const F lo = splat(t.lo), hi = splat(t.hi);
#if defined(LITE_PAIRS)
  if (at.residual && t.short_residual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      add_shorts(acc[m], reinterpret_cast<const uint16_t*>(at.residual) + m * t.ldr, t.columns);
  } else
#endif
  if (at.residual && full) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] += load(at.residual + m * t.ldr + n * kLanes);
  } else if (at.residual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++) {
      const float* r = at.residual + m * t.ldr;
      if (kFull) acc[m][0] += load(r);
      acc[m][kFull] += load_part(r + kFull * kLanes, tail);
    }
  }
  if (t.hard_swish) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        acc[m][n] = activate_vector<Act::kHardSwish>(acc[m][n], lo, hi);
  } else {
    // What clamps nothing would still cost a tenth of a shallow tile.
    if (t.lo > -INFINITY) {
      LITE_UNROLL for (int m = 0; m < kRows; m++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = max(lo, acc[m][n]);
    }
    if (t.hi < INFINITY) {
      LITE_UNROLL for (int m = 0; m < kRows; m++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = min(hi, acc[m][n]);
    }
  }
#if defined(LITE_PAIRS)
  if (t.short_c) {
    uint16_t* c = reinterpret_cast<uint16_t*>(at.c);
    LITE_UNROLL for (int m = 0; m < kRows; m++) store_shorts(c + m * t.ldc, acc[m], t.columns);
    return;
  }
#endif
  if (full) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors; n++)
        store(at.c + m * t.ldc + n * kLanes, acc[m][n]);
    return;
  }
  LITE_UNROLL for (int m = 0; m < kRows; m++) {
    float* c = at.c + m * t.ldc;
    if (kFull) store(c, acc[m][0]);
    store_part(c + kFull * kLanes, acc[m][kFull], tail);
  }
}

// One k: a row vector of weights against one float of every row of A.
template <int kRows, int kVectors>
LITE_INLINE void rank_one(F (&acc)[kRows][kVectors], const float* a, ptrdiff_t lda,
                          const float* w) {
  F b[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; n++) b[n] = load(w + n * kLanes);
  LITE_UNROLL for (int m = 0; m < kRows; m++) {
    const F s = splat(a[m * lda]);
    LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] = multiply_add(s, b[n], acc[m][n]);
  }
}

// Where four k are multiplied at a time, little would be fetched.
#if defined(__aarch64__)
constexpr bool kPrefetches = false;
#else
constexpr bool kPrefetches = true;
#endif

// Two chains of them stay in registers.
#if defined(__AVX2__)
constexpr int kFewSums = 6;
#else
constexpr int kFewSums = 4;
#endif

// `ahead` moves behind what is fetched.
template <bool kPrefetch, int kRows, int kVectors>
LITE_INLINE void one_tile(const Tile& t, const Place& at, const Real*& ahead) {
  // Few sums cannot hide the latency of a chained FMA: small tiles run several chains over k.
  constexpr int kSums = kRows * kVectors, kChains = kSums <= 2 ? 4 : kSums <= kFewSums ? 2 : 1;
  F acc[kRows][kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; n++) {
    const F b = load(t.bias + n * kLanes);
    LITE_UNROLL for (int m = 0; m < kRows; m++) acc[m][n] = b;
  }
  if (at.residual) {
    LITE_UNROLL for (int m = 0; m < kRows; m++)
      LITE_UNROLL for (int n = 0; n < kVectors * kLanes; n += 16)  // cache lines
        prefetch_l1(element(at.residual, m * t.ldr + n, t.short_residual));
  }
  F more[kChains][kRows][kVectors];
  if (kChains > 1) {
    LITE_UNROLL for (int i = 1; i < kChains; i++)
      LITE_UNROLL for (int m = 0; m < kRows; m++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) more[i][m][n] = F{};
  }
  const ptrdiff_t lda = t.lda, ldw = t.ldw, end = t.k;
  const float* w_row = t.w;
  const float* a_row = at.a;
  for (int y = t.taps_y; y > 0; y--, a_row += t.tap_y, w_row += t.w_y) {
    const float* w = w_row;
    const float* a = a_row;
    for (int x = t.taps_x; x > 0; x--, a += t.tap_x) {
      ptrdiff_t k = 0;
      if (kChains > 1) {
        for (; k + kChains <= end; k += kChains, w += kChains * ldw) {
          rank_one(acc, a + k, lda, w);
          LITE_UNROLL for (int i = 1; i < kChains; i++)
            rank_one(more[i], a + k + i, lda, w + i * ldw);
        }
      }
#if defined(__aarch64__)
      // Four k of a row in one register, multiplied by lane.
      if (kChains == 1) {
        for (; k + 4 <= end; k += 4) {
          F x4[kRows];
          LITE_UNROLL for (int m = 0; m < kRows; m++) x4[m] = load(a + m * lda + k);
          LITE_UNROLL for (int l = 0; l < 4; l++, w += ldw) {
            F b[kVectors];
            LITE_UNROLL for (int n = 0; n < kVectors; n++) b[n] = load(w + n * kLanes);
            LITE_UNROLL for (int m = 0; m < kRows; m++)
              LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] += b[n] * x4[m][l];
          }
        }
      }
#endif
      // NOTE: rows are addressed from one pointer and k is not unrolled: compilers otherwise keep a
      // pointer per row and spill.
      for (; k < end; k++, w += ldw) {
        if (kPrefetch) {
          prefetch_l2(ahead);
          ahead += kLanes;
        }
        rank_one(acc, a + k, lda, w);
      }
    }
  }
  if (kChains > 1) {
    LITE_UNROLL for (int i = 1; i < kChains; i++)
      LITE_UNROLL for (int m = 0; m < kRows; m++)
        LITE_UNROLL for (int n = 0; n < kVectors; n++) acc[m][n] += more[i][m][n];
  }
  finish(t, at, acc);
}

// What does not change from tile to tile stays in registers for few rows. For many rows, compilers would compute more
// offsets before the first tile than there are registers: those read the tile anew.
template <int kRows>
using Held = std::conditional_t<(kRows > 8), const Tile&, const Tile>;

template <int kRows, int kVectors>
void tiles(const Tile& given) {
  Held<kRows> t = given;
  Place at{t.a, t.c, t.residual};
  const Real* ahead = t.prefetch;
  for (int32_t i = 0; i < t.count; i++) {
    if (kPrefetches && i < t.prefetches) one_tile<kPrefetches, kRows, kVectors>(t, at, ahead);
    else one_tile<false, kRows, kVectors>(t, at, ahead);
    asm volatile("" : : : "memory");
    at.a += kRows * t.lda;
    at.c = element(at.c, kRows * t.ldc, t.short_c);
    if (at.residual) at.residual = element(at.residual, kRows * t.ldr, t.short_residual);
  }
}

// Parts of nearly equal length, at most `most` each.
ptrdiff_t part_length(ptrdiff_t all, ptrdiff_t most) {
  const ptrdiff_t parts = most > 0 ? (all + most - 1) / most : all;
  return (all + parts - 1) / parts;
}
template <class T>
T at_most(T a, T b) { return a < b ? a : b; }

}  // namespace

void multiply_in_parts(TileFn fn, const Tile& whole) {
  const ptrdiff_t k = part_length(whole.k, kLongestSum);
  const ptrdiff_t taps_x = k < whole.k ? 1 : part_length(whole.taps_x, kLongestSum / k);
  const ptrdiff_t taps_y = taps_x < whole.taps_x || k < whole.k
                               ? 1 : part_length(whole.taps_y, kLongestSum / (taps_x * k));
  Tile t = whole;
  t.lo = -INFINITY;
  t.hi = INFINITY;
  t.hard_swish = false;
  for (ptrdiff_t y = 0; y < whole.taps_y; y += taps_y) {
    t.taps_y = static_cast<int32_t>(at_most(taps_y, whole.taps_y - y));
    for (ptrdiff_t x = 0; x < whole.taps_x; x += taps_x) {
      t.taps_x = static_cast<int32_t>(at_most(taps_x, whole.taps_x - x));
      for (ptrdiff_t first = 0; first < whole.k; first += k) {
        t.k = at_most(k, whole.k - first);
        t.a = whole.a + y * whole.tap_y + x * whole.tap_x + first;
        t.w = whole.w + y * whole.w_y + (x * whole.k + first) * whole.ldw;
        if (y + taps_y >= whole.taps_y && x + taps_x >= whole.taps_x && first + k >= whole.k) {
          t.lo = whole.lo;
          t.hi = whole.hi;
          t.hard_swish = whole.hard_swish;
        }
        fn(t);
        t.bias = kNoBias;
        t.residual = whole.c;
        t.ldr = whole.ldc;
        t.prefetch += at_most(t.prefetches, t.count) * t.taps_y * t.taps_x * t.k * kLanes;
      }
    }
  }
}

#define LITE_TILES(rows, vectors) tiles<rows, vectors>
const TileFn kTile[2][kTileRows] = {{LITE_HEIGHTS(LITE_TILES, 1)}, {LITE_HEIGHTS(LITE_TILES, 2)}};

}  // namespace lite::LITE_ISA
