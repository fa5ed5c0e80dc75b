// 1x1 convolutions and Gemm with few weights that are not 0: y[M,N] = activation(x[M,K] W + c + r).
//
// Columns are computed as sparse_words.h says and turned back kLanes at a time.
#include <math.h>

#include "activation.h"
#include "ops/conv_shape.h"
#include "ops/conv_strips.h"
#include "ops/gemm_shape.h"
#include "sparse_words.h"

namespace lite::LITE_ISA {
namespace {

struct FloatMath {
  typedef float Word;
  typedef F Vector;
  typedef F Sum;
  static LITE_INLINE F from(float v) { return splat(v); }
  static LITE_INLINE void add(F& sum, F x, F w) { sum = fma(w, x, sum); }
  static LITE_INLINE F total(F a, F b) { return a + b; }
  static LITE_INLINE F total(F a) { return a; }
};

struct Sparse {
  int64_t m, k, n, lda, ldc, ldr;
  int64_t x_origin, y_origin, r_origin;
  int32_t residual;        // input added before the activation, or -1
  SparseMatrix<float> weights;
  Activation activation;
  ThreadGrid grid;
};

// Weight (k, n) lies at w[k * step_k + n * step_n].
bool pack(Step& step, Env& env, Sparse* s, const float* w, int64_t step_k, int64_t step_n,
          float alpha, const float* bias, float beta) {
  if (s->k > INT32_MAX) return env.fail("inner dim too large");
  if (!pack_sparse(
          env, s->k, s->n,
          [&](int64_t k, int64_t n) { return w[k * step_k + n * step_n] * alpha; },
          [&](int64_t k, int64_t n) { return w[k * step_k + n * step_n] == 0; }, &s->weights)) {
    return false;
  }
  float* b = const_cast<float*>(s->weights.bias);
  for (int64_t n = 0; bias && n < s->n; ++n) b[n] = bias[n] * beta;
  size_t floats;
  if (!mul_size(static_cast<size_t>(s->k + 2 * kLanes), kBlock * sizeof(float), &floats))
    return env.fail("inner dim too large");
  step.scratch_bytes = floats;
  const int64_t blocks = (s->m + kBlock - 1) / kBlock, columns = (s->n + kLanes - 1) / kLanes;
  const double each =
      static_cast<double>(s->weights.entries + 1) / static_cast<double>(columns + 1) * kMostVectors;
  s->grid = choose_grid(env.threads, blocks, columns, each, 0,
                        static_cast<double>(s->k * blocks * kMostVectors));
  set_variant(step, "%s__" LITE_ISA_NAME "_%d", step.kernel->name, kBlock);
  return true;
}

Sparse* new_state(Step& step, Env& env) {
  Sparse* s = static_cast<Sparse*>(env.allocate(sizeof(Sparse)));
  step.state = s;
  if (s) s->residual = -1;
  return s;
}

bool prepare_conv(Step& step, Env& env) {
  ConvShape c;
  if (!read_conv(step, env, false, &c)) return false;
  Sparse* s = new_state(step, env);
  if (!s) return env.out_of_memory();
  for (int i = 0; i < 2; ++i)
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0)
      return env.fail("takes 1x1 convolutions of stride 1");
  // Padding at the end alone makes the output larger than the input.
  if (c.in.images != c.out.images || c.in.h != c.out.h || c.in.w != c.out.w)
    return env.fail("takes no padding");
  if (c.groups != 1) return env.fail("takes one group");
  if (!one_long_row(c.in) || !one_long_row(c.out) || (c.has_residual && !one_long_row(c.residual)))
    return env.fail("pixels must lie evenly");
  s->m = c.out.images * c.out.h * c.out.w;
  s->k = c.group_in;
  s->n = c.group_out;
  s->lda = c.in.pixel;
  s->ldc = c.out.pixel;
  s->x_origin = c.in.origin;
  s->y_origin = c.out.origin;
  if (c.has_residual) {
    s->residual = 3;
    s->ldr = c.residual.pixel;
    s->r_origin = c.residual.origin;
  }
  s->activation = c.activation;
  return pack(step, env, s, c.weights->as<float>(), 1, s->k, 1.0f,
              c.bias ? c.bias->as<float>() : nullptr, 1.0f);
}

bool prepare_gemm(Step& step, Env& env) {
  GemmShape g;
  if (!read_gemm_shape(step, env, DType::kF32, DType::kF32, &g)) return false;
  if (!is_dense(*g.b)) return env.fail("b must be dense");
  if (g.c && (!is_weight(*g.c) || !is_dense(*g.c) || g.c->size != g.n))
    return env.fail("c must be a constant of one value per column");
  Sparse* s = new_state(step, env);
  if (!s) return env.out_of_memory();
  s->m = g.m;
  s->k = g.k;
  s->n = g.n;
  s->lda = g.a->pitch;
  s->ldc = g.y->pitch;
  if (g.residual) {
    s->residual = 3;
    s->ldr = g.residual->pitch;
  }
  if (!parse_activation(step, env, &s->activation)) return false;
  return pack(step, env, s, g.b->as<float>(), g.trans_b ? 1 : g.n, g.trans_b ? g.k : 1, g.alpha,
              g.c ? g.c->as<float>() : nullptr, g.beta);
}

// Whole vectors of rows of kLanes columns, from [column][kBlock], clipped.
LITE_INLINE void turn_out_whole(const float* from, int vectors, float lowest, float highest, float* y,
                                int64_t ldc) {
  const F lo = splat(lowest), hi = splat(highest);
  for (int v = 0; v < vectors; ++v, from += kLanes) {
    F square[kLanes];
    LITE_UNROLL for (int i = 0; i < kLanes; ++i) square[i] = load(from + i * kBlock);
    transpose(square);
    if (highest == INFINITY) {
      LITE_UNROLL for (int i = 0; i < kLanes; ++i, y += ldc) store(y, max(lo, square[i]));
    } else {
      LITE_UNROLL for (int i = 0; i < kLanes; ++i, y += ldc) store(y, min(hi, max(lo, square[i])));
    }
  }
}

// kLanes rows of at most kLanes columns, from [column][kBlock].
void turn_out(const Sparse& s, const float* from, int64_t rows, int count, float* y,
              const float* residual) {
  F square[kLanes];
  LITE_UNROLL for (int i = 0; i < kLanes; ++i) square[i] = load(from + i * kBlock);
  transpose(square);
  const bool clip = s.activation.act == Act::kClip;
  for (int i = 0; i < kLanes && i < rows; ++i) {
    F v = square[i];
    if (residual) v = v + (count == kLanes ? load(residual + i * s.ldr)
                                           : load_part(residual + i * s.ldr, count));
    if (clip) v = min(splat(s.activation.b), max(splat(s.activation.a), v));
    float* to = y + i * s.ldc;
    if (count == kLanes) store(to, v);
    else store_part(to, v, count);
    if (s.activation.act != Act::kNone && !clip) activate(to, count, s.activation);
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const Sparse& s = *static_cast<const Sparse*>(step.state);
  const int64_t blocks = (s.m + kBlock - 1) / kBlock;
  const auto [begin, end, first, last] =
      part_of(s.grid, blocks, 1, (s.n + kLanes - 1) / kLanes, thread);
  float* turned = static_cast<float*>(scratch);
  float* made = turned + s.k * kBlock;
  const float* x = step.inputs[0]->as<float>() + s.x_origin;
  float* y = step.outputs[0]->as<float>() + s.y_origin;
  const float* r = s.residual < 0 ? nullptr : step.inputs[s.residual]->as<float>() + s.r_origin;
  const bool clip = s.activation.act == Act::kClip;
  const bool plain = !r && (clip || s.activation.act == Act::kNone);
  const float lowest = clip ? s.activation.a : -INFINITY, highest = clip ? s.activation.b : INFINITY;
  for (int64_t block = begin; block < end && first < last; ++block) {
    const int64_t row = block * kBlock, rows = s.m - row < kBlock ? s.m - row : kBlock;
    const int vectors = static_cast<int>((rows + kLanes - 1) / kLanes);
    for (int v = 0; v < vectors; ++v)
      turn_rows(x + (row + v * kLanes) * s.lda, s.lda, rows - v * kLanes, s.k, turned + v * kLanes);
    for (int64_t part = first; part < last; ++part) {
      const int64_t n0 = part * kLanes;
      const int count = static_cast<int>(s.n - n0 < kLanes ? s.n - n0 : kLanes);
      sparse_columns<FloatMath>(s.weights, vectors, turned, n0, count, made);
      const int whole = plain && count == kLanes ? static_cast<int>(rows / kLanes) : 0;
      turn_out_whole(made, whole, lowest, highest, y + row * s.ldc + n0, s.ldc);
      for (int v = whole; v < vectors; ++v) {
        const int64_t at = row + v * kLanes;
        turn_out(s, made + v * kLanes, rows - v * kLanes, count, y + at * s.ldc + n0,
                 r ? r + at * s.ldr + n0 : nullptr);
      }
    }
  }
}

const Kernel kSparse[] = {
    {"Conv", "f32_conv_sparse", prepare_conv, run, kAcceptsPitch | kDivisible},
    {"Gemm", "f32_gemm_sparse", prepare_gemm, run, kAcceptsPitch | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(sparse_gemm, kSparse)
