// 1x1 convolutions and Gemm with few weights that are not 0: y[M,N] = activation(x[M,K] W + c + r).
//
// Rows of x are turned around a block at a time, so that a weight multiplies vectors of rows: each
// one that is not 0 costs its load, its index and one product for every kLanes rows. Columns are
// computed one after the other and turned back kLanes at a time.
// Source: Elsen 2020, "Fast Sparse ConvNets" (theirs keeps activations as [channel][pixel]).
#include <math.h>

#include "activation.h"
#include "ops/conv_shape.h"
#include "ops/conv_strips.h"
#include "ops/gemm_shape.h"
#include "transpose.h"

namespace lite::LITE_ISA {
namespace {

// Vectors of rows: as many sums as hide the latency of a product, in one set or in two.
#if defined(__aarch64__)
constexpr int kMostVectors = 8;
#else
constexpr int kMostVectors = 4;
#endif
constexpr int kBlock = kMostVectors * kLanes;

struct Sparse {
  int64_t m, k, n, lda, ldc, ldr;
  int64_t x_origin, y_origin, r_origin;
  int32_t residual;        // input added before the activation, or -1
  const int64_t* begin;    // [n + 1], into the two below
  const int32_t* index;    // k of each weight
  const float* value;
  const float* bias;       // [n]
  Activation activation;
  ThreadGrid grid;
};

bool even(const PixelView& v) {
  return (v.h == 1 || v.row == v.w * v.pixel) && (v.images == 1 || v.image == v.h * v.row);
}

// Weight (k, n) lies at w[k * step_k + n * step_n].
bool pack(Step& step, Env& env, Sparse* s, const float* w, int64_t step_k, int64_t step_n,
          float alpha, const float* bias, float beta) {
  size_t count = 0;
  for (int64_t n = 0; n < s->n; ++n)
    for (int64_t k = 0; k < s->k; ++k) count += w[k * step_k + n * step_n] != 0;
  int64_t* begin = static_cast<int64_t*>(env.allocate((static_cast<size_t>(s->n) + 1) * 8));
  int32_t* index = static_cast<int32_t*>(env.allocate((count + 1) * 4));
  float* value = static_cast<float*>(env.allocate((count + 1) * 4));
  float* b = static_cast<float*>(env.allocate((static_cast<size_t>(s->n) + 1) * 4));
  if (!begin || !index || !value || !b) return env.out_of_memory();
  int64_t at = 0;
  for (int64_t n = 0; n < s->n; ++n) {
    for (int64_t k = 0; k < s->k; ++k) {
      const float one = w[k * step_k + n * step_n];
      if (one == 0) continue;
      index[at] = static_cast<int32_t>(k);
      value[at++] = one * alpha;
    }
    begin[n + 1] = at;
    if (bias) b[n] = bias[n] * beta;
  }
  s->begin = begin;
  s->index = index;
  s->value = value;
  s->bias = b;
  size_t floats;
  if (s->k > INT32_MAX || !mul_size(static_cast<size_t>(s->k + 2 * kLanes), kBlock * sizeof(float), &floats))
    return env.fail("inner dim too large");
  step.scratch_bytes = floats;
  const int64_t blocks = (s->m + kBlock - 1) / kBlock, columns = (s->n + kLanes - 1) / kLanes;
  const double each = static_cast<double>(at + 1) / static_cast<double>(columns + 1) * kMostVectors;
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
  if (!even(c.in) || !even(c.out) || (c.has_residual && !even(c.residual)))
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
  if (!read_gemm_shape(step, env, DType::kF32, &g)) return false;
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
  if (!parse_activation(step, env, &s->activation)) return false;
  return pack(step, env, s, g.b->as<float>(), g.trans_b ? 1 : g.n, g.trans_b ? g.k : 1, g.alpha,
              g.c ? g.c->as<float>() : nullptr, g.beta);
}

// Rows of x, of which the last is repeated up to `vectors` * kLanes, to [k][kBlock].
void turn_in(const Sparse& s, const float* x, int64_t rows, int vectors, float* to) {
  for (int v = 0; v < vectors; ++v) {
    for (int64_t k = 0; k < s.k; k += kLanes) {
      const int some = static_cast<int>(s.k - k < kLanes ? s.k - k : kLanes);
      F square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const int64_t row = v * kLanes + i < rows ? v * kLanes + i : rows - 1;
        const float* from = x + row * s.lda + k;
        square[i] = some == kLanes ? load(from) : load_part(from, some);
      }
      transpose(square);
      for (int i = 0; i < some; ++i) store(to + (k + i) * kBlock + v * kLanes, square[i]);
    }
  }
}

template <int kVectors>
LITE_INLINE void columns(const Sparse& s, const float* x, int64_t n0, int count, float* to) {
  for (int c = 0; c < count; ++c) {
    int64_t i = s.begin[n0 + c];
    const int64_t end = s.begin[n0 + c + 1];
    F one[kVectors], two[kVectors];
    LITE_UNROLL for (int v = 0; v < kVectors; ++v) one[v] = splat(s.bias[n0 + c]), two[v] = F{};
    for (; kVectors <= 4 && i + 1 < end; i += 2) {
      const float* a = x + static_cast<int64_t>(s.index[i]) * kBlock;
      const float* b = x + static_cast<int64_t>(s.index[i + 1]) * kBlock;
      const F wa = splat(s.value[i]), wb = splat(s.value[i + 1]);
      LITE_UNROLL for (int v = 0; v < kVectors; ++v) {
        one[v] = fma(wa, load(a + v * kLanes), one[v]);
        two[v] = fma(wb, load(b + v * kLanes), two[v]);
      }
    }
    for (; i < end; ++i) {
      const float* a = x + static_cast<int64_t>(s.index[i]) * kBlock;
      const F wa = splat(s.value[i]);
      LITE_UNROLL for (int v = 0; v < kVectors; ++v) one[v] = fma(wa, load(a + v * kLanes), one[v]);
    }
    LITE_UNROLL for (int v = 0; v < kVectors; ++v)
        store(to + c * kBlock + v * kLanes, one[v] + two[v]);
  }
}

template <int kVectors>
LITE_INLINE void some_columns(const Sparse& s, int vectors, const float* x, int64_t n0, int count,
                              float* to) {
  if (vectors == kVectors) return columns<kVectors>(s, x, n0, count, to);
  if constexpr (kVectors > 1) some_columns<kVectors - 1>(s, vectors, x, n0, count, to);
}

// kLanes rows of at most kLanes columns, from [column][kBlock].
LITE_INLINE void turn_out(const Sparse& s, const float* from, int64_t rows, int count, float* y,
                          const float* residual) {
  F square[kLanes];
  LITE_UNROLL for (int i = 0; i < kLanes; ++i) square[i] = load(from + i * kBlock);
  transpose(square);
  const bool clip = s.activation.act == Act::kClip;
  const F lo = splat(clip ? s.activation.a : -INFINITY), hi = splat(clip ? s.activation.b : INFINITY);
  for (int i = 0; i < kLanes && i < rows; ++i) {
    F v = square[i];
    if (residual) v = v + (count == kLanes ? load(residual + i * s.ldr)
                                           : load_part(residual + i * s.ldr, count));
    if (clip) v = min(hi, max(lo, v));
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
  for (int64_t block = begin; block < end && first < last; ++block) {
    const int64_t row = block * kBlock, rows = s.m - row < kBlock ? s.m - row : kBlock;
    const int vectors = static_cast<int>((rows + kLanes - 1) / kLanes);
    turn_in(s, x + row * s.lda, rows, vectors, turned);
    for (int64_t part = first; part < last; ++part) {
      const int64_t n0 = part * kLanes;
      const int count = static_cast<int>(s.n - n0 < kLanes ? s.n - n0 : kLanes);
      some_columns<kMostVectors>(s, vectors, turned, n0, count, made);
      for (int v = 0; v < vectors; ++v) {
        const int64_t at = row + v * kLanes;
        turn_out(s, made + v * kLanes, rows - v * kLanes, count, y + at * s.ldc + n0,
                 r ? r + at * s.ldr + n0 : nullptr);
      }
    }
  }
}

const Kernel kSparse[] = {
    {"Conv", "f32_conv_sparse", prepare_conv, run, kAcceptsPitch},
    {"Gemm", "f32_gemm_sparse", prepare_gemm, run, kAcceptsPitch},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(sparse_gemm, kSparse)
