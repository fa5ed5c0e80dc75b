// f32_pool: MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool on channels-last tensors of rank
// 3 or 4; lanes are channels.
#include "../pool_shape.h"
#include "transcendental.h"

namespace lite::LITE_ISA {

namespace {

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->dtype != DType::kF32 || y->dtype != DType::kF32)
    return env.fail("needs an f32 input and output");
  PoolShape* s = static_cast<PoolShape*>(env.allocate(sizeof(PoolShape)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_pool(step, env, s)) return false;
  if (asks_for_rows(step) && s->n == 1)
    step.rows = {s->stride[0], s->pad[0], (s->kernel[0] - 1) * s->dilation[0] + 1, 1};
  return true;
}

template <bool Max>
void pool_pixel(const PoolShape& s, const float* x, float* y, const PoolWindow& p, int64_t c0,
                int64_t c1, float scale) {
  const int64_t down = s.dilation[0] * s.in_row, right = s.dilation[1] * s.in_pixel;
  auto reduce = [&](F acc, auto get) __attribute__((always_inline)) {
    for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
      for (int64_t kx = p.kx0; kx < p.kx1; ++kx) {
        const F v = get(x + ky * down + kx * right);
        acc = Max ? max(acc, v) : acc + v;
      }
    return Max ? acc : acc * splat(scale);
  };
  const F start = splat(Max ? -__builtin_inff() : 0.0f);
  int64_t c = c0;
  for (; c + 4 * kLanes <= c1; c += 4 * kLanes) {
    F acc[4] = {start, start, start, start};
    for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
      for (int64_t kx = p.kx0; kx < p.kx1; ++kx) {
        const float* from = x + ky * down + kx * right + c;
        LITE_UNROLL for (int i = 0; i < 4; ++i) {
          const F v = load(from + i * kLanes);
          acc[i] = Max ? max(acc[i], v) : acc[i] + v;
        }
      }
    LITE_UNROLL for (int i = 0; i < 4; ++i)
      store(y + c + i * kLanes, Max ? acc[i] : acc[i] * splat(scale));
  }
  for (; c + kLanes <= c1; c += kLanes)
    store(y + c, reduce(start, [&](const float* q) { return load(q + c); }));
  const int rest = static_cast<int>(c1 - c);
  if (rest)
    store_part(y + c, reduce(start, [&](const float* q) { return load_part(q + c, rest); }), rest);
}

LITE_INLINE void pool_window_of(const PoolShape& s, const float* x, float* y, const PoolWindow& p,
                                int64_t c0, int64_t c1) {
  const float scale = p.cells > 0 ? 1.0f / static_cast<float>(p.cells) : 0.0f;
  (s.max ? pool_pixel<true> : pool_pixel<false>)(s, x + p.from, y + p.to, p, c0, c1, scale);
}

void run(const Step& step, int, int thread, int threads, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  const float* x = step.inputs[0]->as<float>();
  float* y = step.outputs[0]->as<float>();
  for_each_window(s, kLanes, thread, threads, [&](const PoolWindow& p, int64_t c0, int64_t c1) {
    pool_window_of(s, x, y, p, c0, c1);
  });
}

void run_rows(const Step& step, const RowRange& r, void*) {
  const PoolShape& s = *static_cast<const PoolShape*>(step.state);
  const float* x = reinterpret_cast<const float*>(r.input);
  float* y = reinterpret_cast<float*>(r.output);
  for (int64_t oy = r.begin; oy < r.end; ++oy)
    for (int64_t ox = 0; ox < s.out_w; ++ox)
      pool_window_of(s, x, y, pool_window(s, 0, oy, ox), 0, s.c);
}

const Kernel kPool[] = {{"MaxPool AveragePool GlobalAveragePool GlobalMaxPool", "f32_pool", prepare,
                         run, kAcceptsPitch | kAcceptsHalo, nullptr, run_rows}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(pool, kPool)
