// f32_pool, f16_pool: MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool on channels-last tensors of rank
// 3 or 4; lanes are channels.
#include <type_traits>

#include "ops/pool_shape.h"
#include "vec.h"

namespace lite::LITE_ISA {

namespace {

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->dtype != kReal || y->dtype != kReal)
    return env.fail("needs an %s input and output", dtype_name(kReal));
  return prepare_pool(step, env);
}

// One output pixel. K x K taps, all inside the image, or with K = 0 those of the window.
template <bool Max, int K>
LITE_INLINE void pool_pixel(const PoolShape& s, const Real* x, Real* y, const PoolWindow& p,
                            int64_t c0, int64_t c1, float scale) {
  const int64_t down = s.dilation[0] * s.in_row, right = s.dilation[1] * s.in_pixel;
  using Sum = std::conditional_t<Max, F, Wide>;
  const auto start = [] {
    if constexpr (Max) return splat(-__builtin_inff());
    else return Wide{};
  };
  const auto add = [](Sum sum, F v) __attribute__((always_inline)) {
    if constexpr (Max) return maximum(sum, v);
    else return sum + widen(v);
  };
  const auto result = [&](Sum sum) __attribute__((always_inline)) {
    if constexpr (Max) return sum;
    else return narrow(sum * scale);
  };
  const auto reduce = [&](auto read) __attribute__((always_inline)) {
    Sum sum = start();
    if constexpr (K > 0) {
      LITE_UNROLL for (int ky = 0; ky < K; ++ky)
        LITE_UNROLL for (int kx = 0; kx < K; ++kx) sum = add(sum, read(x + ky * down + kx * right));
    } else {
      for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
        for (int64_t kx = p.kx0; kx < p.kx1; ++kx) sum = add(sum, read(x + ky * down + kx * right));
    }
    return result(sum);
  };
  int64_t c = c0;
  if (K == 0) {
    for (; c + 4 * kLanes <= c1; c += 4 * kLanes) {
      Sum sums[4] = {start(), start(), start(), start()};
      for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
        for (int64_t kx = p.kx0; kx < p.kx1; ++kx) {
          const Real* from = x + ky * down + kx * right + c;
          LITE_UNROLL for (int i = 0; i < 4; ++i) sums[i] = add(sums[i], load(from + i * kLanes));
        }
      LITE_UNROLL for (int i = 0; i < 4; ++i)
        store(y + c + i * kLanes, result(sums[i]));
    }
  }
  for (; c + kLanes <= c1; c += kLanes)
    store(y + c, reduce([&](const Real* q) __attribute__((always_inline)) { return load(q + c); }));
  const int rest = static_cast<int>(c1 - c);
  if (rest == 0) return;
  store_part(y + c, reduce([&](const Real* q) __attribute__((always_inline)) {
               return load_part(q + c, rest);
             }),
             rest);
}

LITE_INLINE float scale_of(const PoolWindow& p) {
  return p.cells > 0 ? 1.0f / static_cast<float>(p.cells) : 0.0f;
}

#if defined(__aarch64__)
constexpr int kLineVectors = 4;
template <int kVectors>
LITE_INLINE void load_line(const Real* p, F* to) {
  const F(&line)[kVectors] = *reinterpret_cast<const F(*)[kVectors]>(p);
  asm("ldp %q0, %q1, [%2]" : "=w"(to[0]), "=w"(to[1]) : "r"(p), "m"(line));
  if constexpr (kVectors == 4)
    asm("ldp %q0, %q1, [%2, 32]" : "=w"(to[2]), "=w"(to[3]) : "r"(p), "m"(line));
}
#else
constexpr int kLineVectors = 2;
template <int kVectors>
LITE_INLINE void load_line(const Real* p, F* to) {
  LITE_UNROLL for (int i = 0; i < kVectors; ++i) to[i] = load(p + i * kLanes);
}
#endif

// 3x3 maxima at stride 2, some vectors of channels of every pixel: a column's maximum serves two of them.
template <int kVectors>
LITE_INLINE void max_line(const PoolShape& s, const Real* x, Real* y, int64_t count) {
  const Real* below = x + s.dilation[0] * s.in_row;
  const Real* bottom = below + s.dilation[0] * s.in_row;
  const int64_t pixel = s.in_pixel;
  const auto column = [&](F* most) __attribute__((always_inline)) {
    F more[kVectors], last[kVectors];
    load_line<kVectors>(x, most);
    load_line<kVectors>(below, more);
    load_line<kVectors>(bottom, last);
    LITE_UNROLL for (int i = 0; i < kVectors; ++i)
      most[i] = maximum(maximum(most[i], more[i]), last[i]);
    x += pixel;
    below += pixel;
    bottom += pixel;
  };
  F left[kVectors], middle[kVectors], right[kVectors];
  column(left);
  for (; count > 0; --count, y += s.out_pixel) {
    column(middle);
    LITE_UNROLL for (int i = 0; i < kVectors; ++i) left[i] = maximum(left[i], middle[i]);
    column(right);
    LITE_UNROLL for (int i = 0; i < kVectors; ++i) {
      store(y + i * kLanes, maximum(left[i], right[i]));
      left[i] = right[i];
    }
  }
}

// 2x2 maxima, some vectors of channels of every pixel.
template <int kVectors>
LITE_INLINE void max_squares(const PoolShape& s, const Real* x, Real* y, int64_t count) {
  const int64_t right = s.dilation[1] * s.in_pixel, step = s.stride[1] * s.in_pixel;
  const Real* below = x + s.dilation[0] * s.in_row;
  for (; count > 0; --count, x += step, below += step, y += s.out_pixel) {
    F taps[4][kVectors];
    load_line<kVectors>(x, taps[0]);
    load_line<kVectors>(x + right, taps[1]);
    load_line<kVectors>(below, taps[2]);
    load_line<kVectors>(below + right, taps[3]);
    LITE_UNROLL for (int i = 0; i < kVectors; ++i)
      store(y + i * kLanes,
            maximum(maximum(maximum(taps[0][i], taps[1][i]), taps[2][i]), taps[3][i]));
  }
}

// Pixels [begin, end) of a row whose windows are those of `first`, each one stride further.
template <bool Max, int K>
void pool_inside(const PoolShape& s, const Real* x, Real* y, const PoolWindow& first,
                 int64_t count, int64_t c0, int64_t c1) {
  const float scale = scale_of(first);
  const int64_t step = s.stride[1] * s.in_pixel;
  x += first.from;
  y += first.to;
  if (Max && (K == 2 || (K == 3 && s.stride[1] == 2 && s.dilation[1] == 1))) {
    constexpr int kLine = kLineVectors * kLanes;
    for (; c0 + kLine <= c1; c0 += kLine)
      (K == 2 ? max_squares<kLineVectors> : max_line<kLineVectors>)(s, x + c0, y + c0, count);
    if (kLineVectors > 2 && c0 + 2 * kLanes <= c1) {
      (K == 2 ? max_squares<2> : max_line<2>)(s, x + c0, y + c0, count);
      c0 += 2 * kLanes;
    }
    if (c0 == c1) return;
  }
  for (int64_t i = 0; i < count; ++i, x += step, y += s.out_pixel)
    pool_pixel<Max, K>(s, x, y, first, c0, c1, scale);
}

// Pixels [begin, end) of one output row.
template <bool Max>
void pool_row(const PoolShape& s, const Real* x, Real* y, int64_t image, int64_t oy,
              int64_t begin, int64_t end, int64_t c0, int64_t c1) {
  const int64_t reach = (s.kernel[1] - 1) * s.dilation[1] + 1, last = s.w - reach + s.pad[1];
  int64_t inside = (s.pad[1] + s.stride[1] - 1) / s.stride[1];
  int64_t outside = last < 0 ? 0 : last / s.stride[1] + 1;
  if (inside < begin) inside = begin;
  if (outside > end) outside = end;
  for (int64_t ox = begin; ox < end; ++ox) {
    const PoolWindow p = pool_window(s, image, oy, ox);
    const bool whole = p.ky1 - p.ky0 == s.kernel[0] && s.kernel[0] == s.kernel[1];
    if (ox < inside || ox >= outside) {
      pool_pixel<Max, 0>(s, x + p.from, y + p.to, p, c0, c1, scale_of(p));
      continue;
    }
    (whole && s.kernel[0] == 2   ? pool_inside<Max, 2>
     : whole && s.kernel[0] == 3 ? pool_inside<Max, 3>
                                 : pool_inside<Max, 0>)(s, x, y, p, outside - ox, c0, c1);
    ox = outside - 1;
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  const Real* x = step.inputs[0]->as<Real>();
  Real* y = step.outputs[0]->as<Real>();
  for_each_row(s, kLanes, thread, threads, [&](int64_t image, int64_t oy, int64_t begin, int64_t end,
                                               int64_t c0, int64_t c1) {
    (s.max ? pool_row<true> : pool_row<false>)(s, x, y, image, oy, begin, end, c0, c1);
  });
}

void run_rows(const Step& step, const RowRange& r, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  for (int64_t oy = r.begin; oy < r.end; ++oy)
    (s.max ? pool_row<true> : pool_row<false>)(s, reinterpret_cast<const Real*>(r.input),
                                               reinterpret_cast<Real*>(r.output), 0, oy, 0,
                                               s.out_w, 0, s.c);
}

const Kernel kPool[] = {
#if defined(LITE_FP16)
    {"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "f16_pool", prepare, run,
     kAcceptsPitch | kAcceptsHalo | kDivisible, nullptr, run_rows},
#else
    {"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "f32_pool", prepare, run,
     kAcceptsPitch | kAcceptsHalo | kDivisible, nullptr, run_rows},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(pool, kPool)
