// bf16_pool: pools of bf16 tensors. 32 channels at a time; means as floats, those of even and those of odd
// places (depthwise.cc), maxima as integers.
#include <type_traits>

#include "ops/pool_shape.h"
#include "isa/vec.h"

namespace lite::LITE_ISA {
namespace {

bool suits(const Step& step, Env&) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  return x && y && x->dtype == DType::kBF16 && y->dtype == DType::kBF16;
}

// Visits the taps of a window: K x K, or with K = 0 those of `p`.
template <int K, class Visit>
LITE_INLINE void for_each_tap(const PoolShape& s, const uint16_t* x, const PoolWindow& p, Visit visit) {
  const int64_t down = s.dilation[0] * s.in_row, right = s.dilation[1] * s.in_pixel;
  if constexpr (K > 0) {
    LITE_UNROLL for (int ky = 0; ky < K; ++ky)
      LITE_UNROLL for (int kx = 0; kx < K; ++kx) visit(x + ky * down + kx * right);
  } else {
    for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
      for (int64_t kx = p.kx0; kx < p.kx1; ++kx) visit(x + ky * down + kx * right);
  }
}

// bf16 as integers of the same order, and back: -inf is the lowest, NaN of either sign above all others.
constexpr int kNegativeNans = 127;
LITE_INLINE __m512i flip_negative(__m512i v) {  // v ^ (sign & 0x7fff)
  return _mm512_ternarylogic_epi32(v, _mm512_srai_epi16(v, 15), _mm512_set1_epi16(0x7fff), 0x78);
}
LITE_INLINE __m512i to_ordered(__m512i shorts) {
  return _mm512_sub_epi16(flip_negative(shorts), _mm512_set1_epi16(kNegativeNans));
}
LITE_INLINE __m512i from_ordered(__m512i v) {
  return flip_negative(_mm512_add_epi16(v, _mm512_set1_epi16(kNegativeNans)));
}

LITE_INLINE __m512i load_shorts(const uint16_t* from, __mmask32 lanes) {
  touches(from, 2 * __builtin_popcount(lanes));
  return _mm512_maskz_loadu_epi16(lanes, from);
}
LITE_INLINE void store_shorts(uint16_t* to, __mmask32 lanes, __m512i v) {
  touches(to, 2 * __builtin_popcount(lanes));
  _mm512_mask_storeu_epi16(to, lanes, v);
}

// Channels [c, c + 32 * kVectors) of one output pixel, or of those the first that `lanes` has.
template <int kVectors, int K>
LITE_INLINE void max_block(const PoolShape& s, const uint16_t* x, uint16_t* y, const PoolWindow& p,
                           __mmask32 lanes) {
  __m512i most[kVectors];
  LITE_UNROLL for (__m512i& part : most) part = _mm512_set1_epi16(-0x8000);
  for_each_tap<K>(s, x, p, [&](const uint16_t* from) __attribute__((always_inline)) {
    LITE_UNROLL for (int n = 0; n < kVectors; ++n)
      most[n] = _mm512_max_epi16(most[n], to_ordered(load_shorts(from + n * 2 * kLanes, lanes)));
  });
  LITE_UNROLL for (int n = 0; n < kVectors; ++n)
    store_shorts(y + n * 2 * kLanes, lanes, from_ordered(most[n]));
}
template <int kVectors, int K>
LITE_INLINE void mean_block(const PoolShape& s, const uint16_t* x, uint16_t* y, const PoolWindow& p,
                            float scale, __mmask32 lanes) {
  const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  F sum[2 * kVectors] = {};
  for_each_tap<K>(s, x, p, [&](const uint16_t* from) __attribute__((always_inline)) {
    LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
      const __m512i pairs = load_shorts(from + n * 2 * kLanes, lanes);
      sum[2 * n] += (F)_mm512_slli_epi32(pairs, 16);
      sum[2 * n + 1] += (F)_mm512_and_si512(pairs, odd);
    }
  });
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
    const __m512 low = (__m512)(sum[2 * n] * scale), high = (__m512)(sum[2 * n + 1] * scale);
    const __m512i first = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low));
    const __m512i second = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high));
    store_shorts(y + n * 2 * kLanes, lanes, _mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
  }
}

// `count` pixels from that of `p` on, whose windows are the same, each a stride further.
template <bool kMax, int K>
void pool_pixels(const PoolShape& s, const uint16_t* x, uint16_t* y, const PoolWindow& p,
                 int64_t count, int64_t c0, int64_t c1) {
  const float scale = p.cells > 0 ? 1.0f / static_cast<float>(p.cells) : 0.0f;
  x += p.from;
  y += p.to;
  const auto block = [&](auto vectors, int64_t c, __mmask32 lanes) __attribute__((always_inline)) {
    if constexpr (kMax) max_block<vectors, K>(s, x + c, y + c, p, lanes);
    else mean_block<vectors, K>(s, x + c, y + c, p, scale, lanes);
  };
  constexpr std::integral_constant<int, 1> kOne{};
  constexpr std::integral_constant<int, 2> kTwo{};
  for (int64_t i = 0; i < count; ++i, x += s.stride[1] * s.in_pixel, y += s.out_pixel) {
    int64_t c = c0;
    for (; c + 4 * kLanes <= c1; c += 4 * kLanes) block(kTwo, c, ~__mmask32{0});
    for (; c + 2 * kLanes <= c1; c += 2 * kLanes) block(kOne, c, ~__mmask32{0});
    if (c < c1) block(kOne, c, (__mmask32{1} << (c1 - c)) - 1);
  }
}

// Pixels [begin, end) of one output row, channels [c0, c1).
template <bool kMax>
void pool_row(const PoolShape& s, const uint16_t* x, uint16_t* y, int64_t image, int64_t oy,
              int64_t begin, int64_t end, int64_t c0, int64_t c1) {
  const int64_t reach = (s.kernel[1] - 1) * s.dilation[1] + 1, last = s.w - reach + s.pad[1];
  const int64_t inside = (s.pad[1] + s.stride[1] - 1) / s.stride[1];
  const int64_t outside = last < 0 ? 0 : last / s.stride[1] + 1;
  for (int64_t ox = begin; ox < end;) {
    const PoolWindow p = pool_window(s, image, oy, ox);
    const int64_t alike = outside < end ? outside : end;
    const int64_t count = ox >= inside && ox < alike ? alike - ox : 1;
    const bool whole = p.ky1 - p.ky0 == s.kernel[0] && p.kx1 - p.kx0 == s.kernel[1];
    const int64_t square = whole && s.kernel[0] == s.kernel[1] ? s.kernel[0] : 0;
    (square == 2   ? pool_pixels<kMax, 2>
     : square == 3 ? pool_pixels<kMax, 3>
                   : pool_pixels<kMax, 0>)(s, x, y, p, count, c0, c1);
    ox += count;
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  const uint16_t* x = step.inputs[0]->as<uint16_t>();
  uint16_t* y = step.outputs[0]->as<uint16_t>();
  for_each_row(s, 2 * kLanes, thread, threads, [&](int64_t image, int64_t oy, int64_t begin,
                                                   int64_t end, int64_t c0, int64_t c1) {
    (s.max ? pool_row<true> : pool_row<false>)(s, x, y, image, oy, begin, end, c0, c1);
  });
}

void run_rows(const Step& step, const RowRange& r, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  for (int64_t oy = r.begin; oy < r.end; ++oy)
    (s.max ? pool_row<true> : pool_row<false>)(s, reinterpret_cast<const uint16_t*>(r.input),
                                               reinterpret_cast<uint16_t*>(r.output), 0, oy, 0,
                                               s.out_w, 0, s.c);
}

const Kernel kPool[] = {{"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "bf16_pool",
                         prepare_pool, run, kAcceptsPitch | kAcceptsHalo, suits, run_rows}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(pool, kPool)
