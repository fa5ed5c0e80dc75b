// bf16_pool: pools of bf16 tensors. 32 channels at a time, as floats those of even and those of odd
// places (depthwise.cc).
#include "ops/pool_shape.h"
#include "isa/vec.h"

namespace lite::LITE_ISA {
namespace {

bool suits(const Step& step, Env&) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  return x && y && x->dtype == DType::kBF16 && y->dtype == DType::kBF16;
}

// Channels [c, c + 32 * kVectors) of one output pixel, or of those the first that `lanes` has.
template <bool kMax, int kVectors>
LITE_INLINE void pool_block(const PoolShape& s, const uint16_t* x, uint16_t* y, const PoolWindow& p,
                            float scale, __mmask32 lanes) {
  const int64_t down = s.dilation[0] * s.in_row, right = s.dilation[1] * s.in_pixel;
  const __m512i odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  F sum[2 * kVectors];
  LITE_UNROLL for (F& part : sum) part = splat(kMax ? -__builtin_inff() : 0.0f);
  for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
    for (int64_t kx = p.kx0; kx < p.kx1; ++kx)
      LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
        const uint16_t* from = x + ky * down + kx * right + n * 2 * kLanes;
        touches(from, 2 * __builtin_popcount(lanes));
        const __m512i pairs = _mm512_maskz_loadu_epi16(lanes, from);
        const F even = (F)_mm512_slli_epi32(pairs, 16), rest = (F)_mm512_and_si512(pairs, odd);
        sum[2 * n] = kMax ? maximum(sum[2 * n], even) : sum[2 * n] + even;
        sum[2 * n + 1] = kMax ? maximum(sum[2 * n + 1], rest) : sum[2 * n + 1] + rest;
      }
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) {
    __m512 low = (__m512)sum[2 * n], high = (__m512)sum[2 * n + 1];
    if (!kMax) low *= scale, high *= scale;
    // A maximum is bf16 already: rounding keeps it.
    const __m512i first = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(low));
    const __m512i second = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(high));
    touches(y + n * 2 * kLanes, 2 * __builtin_popcount(lanes));
    _mm512_mask_storeu_epi16(y + n * 2 * kLanes, lanes,
                             _mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
  }
}

// `count` pixels from that of `p` on, whose windows are the same, each a stride further.
template <bool kMax>
void pool_pixels(const PoolShape& s, const uint16_t* x, uint16_t* y, const PoolWindow& p,
                 int64_t count, int64_t c0, int64_t c1) {
  const float scale = p.cells > 0 ? 1.0f / static_cast<float>(p.cells) : 0.0f;
  x += p.from;
  y += p.to;
  for (int64_t i = 0; i < count; ++i, x += s.stride[1] * s.in_pixel, y += s.out_pixel) {
    int64_t c = c0;
    for (; c + 4 * kLanes <= c1; c += 4 * kLanes)
      pool_block<kMax, 2>(s, x + c, y + c, p, scale, ~__mmask32{0});
    for (; c < c1; c += 2 * kLanes) {
      const int64_t left = c1 - c;
      const __mmask32 lanes = left >= 2 * kLanes ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
      pool_block<kMax, 1>(s, x + c, y + c, p, scale, lanes);
    }
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
    pool_pixels<kMax>(s, x, y, p, count, c0, c1);
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
