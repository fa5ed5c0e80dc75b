// Instances of the integer tile for every height.
#include "int8_bounds.h"
#include "int8_finish.h"
#include "int8_pairs.h"

namespace lite::LITE_ISA {
namespace {

#if !defined(LITE_SATURATES)
// One group of kDepth products: a vector of weights against the same group of every row of A.
template <bool kFlip, int kRows, int kVectors>
LITE_INLINE void group(I (&acc)[kRows][kVectors], const uint8_t* a, ptrdiff_t lda, ptrdiff_t half,
                       const IntWeight* w) {
#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_DOTPROD)
  int16x4_t b[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) b[n] = vld1_s16(w + n * kLanes);
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    int16_t x;
    memcpy(&x, a + m * lda, sizeof x);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n)
      acc[m][n] = (I)vmlal_n_s16((int32x4_t)acc[m][n], b[n], x);
  }
#else
  I b[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n)
    memcpy(&b[n], w + n * kLanes * kDepth, sizeof b[n]);
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    int32_t four;
    memcpy(&four, a + row_offset(m, lda, half), sizeof four);
    I x = splat(four);
    if (kFlip) x ^= static_cast<int32_t>(0x80808080);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) dot(acc[m][n], x, b[n]);
  }
#endif
}
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Two rows x two columns of sums in one register: acc[r][c] += the products of 8 bytes of two rows
// with 8 of two columns.
template <bool kUnsigned>
LITE_INLINE void multiply(I& acc, int8x16_t x, int8x16_t w) {
  // NOTE: gcc 12 copies the accumulators of vmmlaq_s32 around.
  if (kUnsigned) asm("usmmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
  else asm("smmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
}

// Products of one pair of groups, which one load of a row brings, and of the odd group at the end.
template <bool kUnsigned, int kRows, int kVectors>
struct Squares {
  static constexpr int kPairs = (kRows + 1) / 2, kColumnPairs = kVectors * kLanes / 2;
  static constexpr int second(int p) { return 2 * p + 1 < kRows ? 2 * p + 1 : 2 * p; }
  I sum[kPairs][kColumnPairs];

  LITE_INLINE void add(const int8x16_t (&x)[kPairs], const IntWeight* w) {
    LITE_UNROLL for (int n = 0; n < kColumnPairs; ++n) {
      const int8x16_t b = vld1q_s8(w + 16 * n);
      LITE_UNROLL for (int p = 0; p < kPairs; ++p) multiply<kUnsigned>(sum[p][n], x[p], b);
    }
  }
  LITE_INLINE void add_two(const uint8_t* a, ptrdiff_t lda, const IntWeight* w) {
    int8x16_t x[2][kPairs];
    LITE_UNROLL for (int p = 0; p < kPairs; ++p) {
      const int64x2_t upper = vreinterpretq_s64_u8(vld1q_u8(a + 2 * p * lda));
      const int64x2_t lower = vreinterpretq_s64_u8(vld1q_u8(a + second(p) * lda));
      x[0][p] = vreinterpretq_s8_s64(vzip1q_s64(upper, lower));
      x[1][p] = vreinterpretq_s8_s64(vzip2q_s64(upper, lower));
    }
    add(x[0], w);
    add(x[1], w + 16 * kColumnPairs);
  }
  LITE_INLINE void add_one(const uint8_t* a, ptrdiff_t lda, const IntWeight* w) {
    int8x16_t x[kPairs];
    LITE_UNROLL for (int p = 0; p < kPairs; ++p)
      x[p] = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(a + 2 * p * lda), vld1_u8(a + second(p) * lda)));
    add(x, w);
  }
  // Adds the sums to the accumulators of the rows.
  LITE_INLINE void spread(I (&acc)[kRows][kVectors]) const {
    LITE_UNROLL for (int p = 0; p < kPairs; ++p)
      LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
        const int64x2_t left = (int64x2_t)sum[p][2 * n], right = (int64x2_t)sum[p][2 * n + 1];
        acc[2 * p][n] += (I)vzip1q_s64(left, right);
        if (2 * p + 1 < kRows) acc[2 * p + 1][n] += (I)vzip2q_s64(left, right);
      }
  }
};
#elif defined(__ARM_FEATURE_DOTPROD)
// Four groups of every row lie in one register and are multiplied by lane. Every instruction stands
// where it is issued (volatile assembly keeps its order), because in-order cores wait for a load
// that is used at once: a load between dot products of which none needs its result soon.
template <bool kFlip, int kRows, int kVectors>
struct Pipeline {
  static constexpr int kVectorBytes = kLanes * kDepth, kLoads = 4 * kVectors;
  int8x16_t x[kRows], b[2][kVectors];
  using AnyBytes = uint8_t[1 << 30];  // what may be read: clang wants a size

  // NOTE: offsets in registers. llvm's cortex-a55 has a shorter latency for immediate ones, and
  // then holds the load back until the dot product before it is done.
  static LITE_INLINE int8x16_t fetch(const void* base, ptrdiff_t offset) {
    int8x16_t v;
    asm volatile("ldr %q0, [%1, %x2]"
                 : "=w"(v)
                 : "r"(base), "rZ"(offset), "m"(*static_cast<const AnyBytes*>(base)));
    return v;
  }
  static LITE_INLINE void flip(int8x16_t& v, int8x16_t signs) {
    if (kFlip) asm volatile("eor %0.16b, %0.16b, %1.16b" : "+w"(v) : "w"(signs));
  }
  template <int kLane>
  static LITE_INLINE void dot_lane(I& acc, int8x16_t w, int8x16_t x) {
    asm volatile("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(acc) : "w"(w), "w"(x), "i"(kLane));
  }

  // Lane l of every row. Meanwhile the weights of the next lane come in and, in the last lane, each
  // row's next four groups, as far as there are any.
  template <int kLane, bool kMore>
  LITE_INLINE void lane(I (&acc)[kRows][kVectors], const uint8_t* next_a,
                        const ptrdiff_t (&rows)[kRows], const IntWeight* w,
                        const ptrdiff_t (&loads)[kLoads], int8x16_t signs) {
    constexpr bool kLast = kLane == 3;
    int8x16_t(&now)[kVectors] = b[kLane % 2];
    int8x16_t(&next)[kVectors] = b[(kLane + 1) % 2];
    LITE_UNROLL for (int m = 0; m < kRows; ++m) {
      LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
        dot_lane<kLane>(acc[m][n], now[n], x[m]);
        if (m == 0 && (!kLast || kMore)) next[n] = fetch(w, loads[kLane * kVectors + n]);
      }
      if (kLast && kMore) x[m] = fetch(next_a, rows[m]);
    }
    if (kLast && kMore) LITE_UNROLL for (int m = 0; m < kRows; ++m) flip(x[m], signs);
  }
  template <bool kMore>
  LITE_INLINE void lanes(I (&acc)[kRows][kVectors], const uint8_t* next_a,
                         const ptrdiff_t (&rows)[kRows], const IntWeight* w,
                         const ptrdiff_t (&loads)[kLoads], int8x16_t signs) {
    lane<0, kMore>(acc, next_a, rows, w, loads, signs);
    lane<1, kMore>(acc, next_a, rows, w, loads, signs);
    lane<2, kMore>(acc, next_a, rows, w, loads, signs);
    lane<3, kMore>(acc, next_a, rows, w, loads, signs);
  }

  // All whole fours of `groups`; moves a and w behind them and returns how many groups are left.
  static LITE_INLINE ptrdiff_t run(I (&acc)[kRows][kVectors], const uint8_t*& a, ptrdiff_t lda,
                                   const IntWeight*& w, ptrdiff_t groups) {
    if (groups < 4) return groups;
    Pipeline p;
    const int8x16_t signs = vdupq_n_s8(-128);
    ptrdiff_t rows[kRows], loads[kLoads];
    rows[0] = 0;
    LITE_UNROLL for (int m = 1; m < kRows; ++m) {
      rows[m] = m * lda;
      asm("" : "+r"(rows[m]));
    }
    LITE_UNROLL for (int i = 0; i < kLoads; ++i) {
      loads[i] = (kVectors + i) * kVectorBytes;
      asm("" : "+r"(loads[i]));
    }
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) p.b[0][n] = fetch(w, n * kVectorBytes);
    LITE_UNROLL for (int m = 0; m < kRows; ++m) p.x[m] = fetch(a, rows[m]);
    LITE_UNROLL for (int m = 0; m < kRows; ++m) flip(p.x[m], signs);
    for (a += 16; groups >= 8; groups -= 4, a += 16, w += kLoads * kVectorBytes)
      p.template lanes<true>(acc, a, rows, w, loads, signs);
    p.template lanes<false>(acc, a, rows, w, loads, signs);
    w += kLoads * kVectorBytes;
    return groups - 4;
  }
};
#endif

// The end of a tile whose results are floats.
template <int kVectors>
__attribute__((noinline)) void finish_real(const IntTile& t, const I* sums, int rows) {
  float scales[kVectors * kLanes] = {}, biases[kVectors * kLanes] = {};
  memcpy(scales, t.scale, static_cast<size_t>(t.columns) * sizeof(float));
  memcpy(biases, t.real_bias, static_cast<size_t>(t.columns) * sizeof(float));
  for (int m = 0; m < rows; ++m) {
    float* to = t.real + row_offset(m, t.ldc, t.half_c);
    const F x = splat(t.row_scale[m]);
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
      const F w = load(scales + n * kLanes), bias = load(biases + n * kLanes);
      const F sum = to_float(sums[m * kVectors + n]);
      F y;
      if (t.fours < 0) {
        y = fma(rounded(sum * x), w, bias);
      } else {
        const F fours = rounded(rounded(sum * w) * x), rest = rounded(rounded(sum * x) * w);
        I mask;
        LITE_UNROLL for (int i = 0; i < kLanes; ++i) mask[i] = n * kLanes + i < t.fours ? -1 : 0;
        y = select(mask, fours, rest) + bias;
      }
      const int left = t.columns - n * kLanes;
      if (left >= kLanes) store(to + n * kLanes, y);
      else if (left > 0) store_part(to + n * kLanes, y, left);
    }
  }
}

// kTested: by pairs where those fit, else by 16-bit products.
template <bool kFlip, int kRows, int kVectors, bool kTested = false>
LITE_INLINE void one_tile(const IntTile& t) {
  I acc[kRows][kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
    const I b = load(t.bias + n * kLanes);
    LITE_UNROLL for (int m = 0; m < kRows; ++m) acc[m][n] = b;
    if (kBytes && t.w_zero) {
      const I zero = load(t.w_zero + n * kLanes);
      LITE_UNROLL for (int m = 0; m < kRows; ++m) acc[m][n] -= zero * splat(t.row_sums[m]);
    }
  }
  constexpr int kStep = kVectors * kLanes * kDepth;
  constexpr int kGroupBytes = kDepth * kOperandBytes;
  const ptrdiff_t lda = t.lda;
  [[maybe_unused]] const ptrdiff_t half = t.half_a;
  const uint8_t* a_row = t.a;
  const IntWeight* w_row = t.w;
#if defined(__ARM_FEATURE_MATMUL_INT8)
  Squares<kFlip, kRows, kVectors> squares{};
#else
  const uint8_t* ahead = static_cast<const uint8_t*>(t.prefetch);
#endif
  for (int y = t.taps_y; y > 0; --y, a_row += t.tap_y, w_row += t.w_y) {
    const IntWeight* w = w_row;
    [[maybe_unused]] const uint8_t* bounds = t.bounds + (t.taps_y - y) * t.bounds_y;
    const uint8_t* a_tap = a_row;
    for (int x = t.taps_x; x > 0; --x, a_tap += t.tap_x) {
      const uint8_t* a = a_tap;
      ptrdiff_t k = t.groups;
#if defined(__ARM_FEATURE_MATMUL_INT8)
      for (; k >= 2; k -= 2, a += 2 * kGroupBytes, w += 2 * kStep) squares.add_two(a, lda, w);
      if (k > 0) {
        squares.add_one(a, lda, w);
        w += kStep;
      }
#else
#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_DOTPROD)
      for (; k >= kFour; k -= kFour, a += kFour * kGroupBytes, w += kFour * kStep)
        multiply_four(acc, a, lda, w);
#elif defined(__ARM_FEATURE_DOTPROD)
      k = Pipeline<kFlip, kRows, kVectors>::run(acc, a, lda, w, k);
#elif defined(LITE_SATURATES)
      if constexpr (kTested) {
        tested_groups<kFlip>(acc, a, lda, w, bounds, k);
        continue;
      }
#endif
      for (; k > 0; --k, a += kGroupBytes, w += kStep) {
        if (ahead) {
          prefetch_l2(ahead);
          ahead += kStep * sizeof(IntWeight) / kAheadTiles;
        }
#if defined(LITE_SATURATES)
        pair_group<kFlip>(acc, a, lda, w);
#else
        group<kFlip>(acc, a, lda, half, w);
#endif
      }
#endif
    }
  }
#if defined(__ARM_FEATURE_MATMUL_INT8)
  squares.spread(acc);
#endif
  if (t.sums) {
    LITE_UNROLL for (int m = 0; m < kRows; ++m)
      LITE_UNROLL for (int n = 0; n < kVectors; ++n)
        store(t.sums + m * t.ld_sums + n * kLanes, acc[m][n]);
    return;
  }
  if (!t.real) return finish(t, acc);
  I sums[kRows * kVectors];  // a copy: what another function is given the address of leaves registers
  LITE_UNROLL for (int m = 0; m < kRows; ++m)
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) sums[m * kVectors + n] = acc[m][n];
  finish_real<kVectors>(t, sums, kRows);
}

// To the tile below, of as many rows; `columns` are those of its panel.
__attribute__((noinline)) void move_down(IntTile& t, int rows, int columns) {
  t.a += rows * t.lda;
  t.c += rows * t.ldc;
  if (t.residual) t.residual += rows * t.ldr;
  if (t.w_zero) t.row_sums += rows;
  if (--t.prefetches <= 0) t.prefetch = nullptr;
  if (t.prefetch)
    t.prefetch = static_cast<const IntWeight*>(t.prefetch) +
                 t.taps_y * t.taps_x * t.groups * (columns * kDepth / kAheadTiles);
}

template <bool kFlip, int kRows, int kVectors>
void tiles(IntTile& t) {
  for (int32_t left = t.count;;) {
#if defined(LITE_SATURATES)
    if (t.bounds && !tile_fits<kFlip, kRows>(t)) one_tile<kFlip, kRows, kVectors, true>(t);
    else
#endif
    one_tile<kFlip, kRows, kVectors>(t);
    if (--left <= 0) return;
    move_down(t, kRows, kVectors * kLanes);
  }
}

template <bool kFlip>
void row_sums(const IntTile& t, int rows, int32_t* sums) {
#if defined(LITE_VNNI) || defined(LITE_SATURATES) || defined(__ARM_FEATURE_DOTPROD)
  const I ones = splat(0x01010101);
  const B flip = splat_byte(kFlip ? 0x80 : 0);
  const int64_t bytes = t.groups * kDepth, rest = bytes % (4 * kLanes);
  // A flipped byte past the end counts as 128 of its own sign.
  const int64_t past = kFlip && rest ? (4 * kLanes - rest) * (kDotSigned ? -128 : 128) : 0;
  for (int m = 0; m < rows; ++m) {
    I acc{};
    for (int y = 0; y < t.taps_y; ++y)
      for (int x = 0; x < t.taps_x; ++x) {
        const uint8_t* a = t.a + row_offset(m, t.lda, t.half_a) + y * t.tap_y + x * t.tap_x;
        for (int64_t i = 0; i + 4 * kLanes <= bytes; i += 4 * kLanes)
          dot(acc, (I)(load_bytes(a + i) ^ flip), ones);
        if (rest) dot(acc, (I)(load_bytes(a + bytes - rest, static_cast<int>(rest)) ^ flip), ones);
      }
    // Flipped here only, unsigned in the products.
    const int64_t shift = kFlip && kEitherSign ? 128 * bytes : 0;
    int64_t sum = (shift - past) * t.taps_y * t.taps_x;
    LITE_UNROLL for (int i = 0; i < kLanes; ++i) sum += acc[i];
    sums[m] = static_cast<int32_t>(sum);
  }
#endif
}

}  // namespace

#if !defined(LITE_SATURATES)
void find_bounds(const IntWeight*, int64_t, int, uint8_t*) {}
#endif

const RowSumsFn kRowSums[2] = {row_sums<false>, row_sums<true>};

#define LITE_TILES(rows, flip, vectors) tiles<flip, rows, vectors>
// int16 operands are never flipped.
const IntTileFn kIntTile[2][2][kTileRows] = {
    {{LITE_HEIGHTS(LITE_TILES, false, 1)}, {LITE_HEIGHTS(LITE_TILES, false, 2)}},
    {{LITE_HEIGHTS(LITE_TILES, kBytes, 1)}, {LITE_HEIGHTS(LITE_TILES, kBytes, 2)}},
};

}  // namespace lite::LITE_ISA
