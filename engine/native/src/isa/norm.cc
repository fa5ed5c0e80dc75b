// Normalisations of float tensors; those of instances and groups are in group_norm.cc.
//   f32_batch_norm   channels-last, constant statistics: y = factor x + shift per channel
//   f32_layer_norm   LayerNormalization, RMSNormalization over the last axes of a row-major tensor;
//   bf16_layer_norm  the same, with an output of floats or bf16
//   f32_lp_norm      LpNormalization (p 1 or 2) along any axis
//   f32_lrn          channels-last, over neighbouring channels
#include <cmath>

#include "norm_operands.h"
#include "shorts.h"
#include "transcendental.h"

namespace lite::LITE_ISA {

namespace {

// y = a x + b over n channels
void affine_row(const float* x, const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, fma(load(x + i), load(a + i), load(b + i)));
  const int rest = static_cast<int>(n - i);
  if (rest)
    store_part(y + i, fma(load_part(x + i, rest), load_part(a + i, rest), load_part(b + i, rest)),
               rest);
}

// ---- batch

struct BatchState {
  float *factor, *shift;
};

bool prepare_batch(Step& step, Env& env) {
  if (!float_in_out(step, env)) return false;
  const int64_t c = last_dim(*step.inputs[0]);
  const Tensor* parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i] = input_of(step, i + 1);
    if (!is_vector(parts[i], c) || !is_weight(*parts[i]))
      return env.fail("scale, bias, mean and variance must be constants of %lld values",
                      static_cast<long long>(c));
  }
  if (attr_int(step, "training_mode", 0)) return env.fail("training mode is not supported");
  BatchState* s = static_cast<BatchState*>(env.allocate(sizeof(BatchState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->factor = static_cast<float*>(env.allocate(c * sizeof(float)));
  s->shift = static_cast<float*>(env.allocate(c * sizeof(float)));
  if (!s->factor || !s->shift) return env.out_of_memory();
  const double epsilon = attr_float(step, "epsilon", 1e-5);
  for (int64_t i = 0; i < c; ++i) {
    const double factor = parts[0]->as<float>()[i] / ::sqrt(parts[3]->as<float>()[i] + epsilon);
    s->factor[i] = static_cast<float>(factor);
    s->shift[i] = static_cast<float>(parts[1]->as<float>()[i] - parts[2]->as<float>()[i] * factor);
  }
  return true;
}

void run_batch(const Step& step, int, int thread, int threads, void*) {
  const BatchState& s = *static_cast<const BatchState*>(step.state);
  const Tensor& x = *step.inputs[0];
  const Tensor& y = *step.outputs[0];
  int64_t begin, end;
  share(row_count(x), 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row)
    affine_row(x.as<float>() + row * x.pitch, s.factor, s.shift, y.as<float>() + row * y.pitch,
               last_dim(x));
}

// ---- layer and RMS

// Of the distances from `origin` or, `squared`, of their squares.
template <bool squared>
float sum_row(const float* x, int64_t n, float origin) {
  constexpr int kChains = 4;
  const F from = splat(origin);
  F sums[kChains];
  LITE_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = splat(0.0f);
  const auto add = [&](int i, F v) __attribute__((always_inline)) {
    const F d = v - from;
    sums[i] = squared ? fma(d, d, sums[i]) : sums[i] + d;
  };
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes)
    LITE_UNROLL for (int j = 0; j < kChains; ++j) add(j, load(x + i + j * kLanes));
  for (; i + kLanes <= n; i += kLanes) add(0, load(x + i));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    float last[kLanes];
    store(last, from);
    store_part(last, load_part(x + i, rest), rest);
    add(1, load(last));
  }
  return sum(sums[0] + sums[1] + (sums[2] + sums[3]));
}

struct LayerState {
  int64_t rows, n;
  float epsilon;
  bool centred;  // LayerNormalization
};

template <bool kShort>
bool prepare_layer(Step& step, Env& env) {
  if (!float_in_out(step, env, kShort)) return false;
  const Tensor& x = *step.inputs[0];
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) return env.fail("axis is outside rank %d", x.rank);
  LayerState* s = static_cast<LayerState*>(env.allocate(sizeof(LayerState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  *s = {1, 1, static_cast<float>(attr_float(step, "epsilon", 1e-5)),
        strcmp(step.op, "LayerNormalization") == 0};
  for (int i = 0; i < x.rank; ++i) (i < axis ? s->rows : s->n) *= x.dims[i];
  if (!is_vector(input_of(step, 1), s->n) ||
      (input_of(step, 2) && !is_vector(input_of(step, 2), s->n)))
    return env.fail("scale and bias must have %lld values", static_cast<long long>(s->n));
  return true;
}

LITE_INLINE void store_some(float* y, F v, int n) { store_part(y, v, n); }
LITE_INLINE void store_some(uint16_t* y, F v, int n) {
  const Short near = rounded(v);
  touches(y, 2 * n);
  if (n == kLanes) *reinterpret_cast<ShortU*>(y) = near;
  else memcpy(y, &near, static_cast<size_t>(n) * sizeof *y);
}

template <class Out>
void normalise(const Step& step, int thread, int threads) {
  const LayerState& s = *static_cast<const LayerState*>(step.state);
  const float* scale = step.inputs[1]->as<float>();
  const Tensor* bias = input_of(step, 2);
  const float inverse = 1.0f / static_cast<float>(s.n);
  int64_t begin, end;
  share(s.rows, 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = step.inputs[0]->as<float>() + row * s.n;
    Out* y = step.outputs[0]->as<Out>() + row * s.n;
    const float mean = s.centred ? sum_row<false>(x, s.n, 0.0f) * inverse : 0.0f;
    const float variance = sum_row<true>(x, s.n, mean) * inverse;
    const F factor = splat(1.0f / sqrtf(variance + s.epsilon));
    for (int64_t i = 0; i < s.n; i += kLanes) {
      const int n = static_cast<int>(s.n - i < kLanes ? s.n - i : kLanes);
      F v = (load_part(x + i, n) - splat(mean)) * factor * load_part(scale + i, n);
      if (bias) v += load_part(bias->as<float>() + i, n);
      store_some(y + i, v, n);
    }
  }
}

void run_layer(const Step& step, int, int thread, int threads, void*) {
  const bool floats = step.outputs[0]->dtype == DType::kF32;
  (floats ? normalise<float> : normalise<uint16_t>)(step, thread, threads);
}

// ---- Lp along an axis, and LRN

struct AxisState {
  int64_t outer, axis, inner;
  int64_t p;
};

bool prepare_lp(Step& step, Env& env) {
  if (!float_in_out(step, env)) return false;
  const Tensor& x = *step.inputs[0];
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x.rank;
  AxisState* s = static_cast<AxisState*>(env.allocate(sizeof(AxisState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  *s = {1, 1, 1, attr_int(step, "p", 2)};
  if (axis < 0 || axis >= x.rank || s->p < 1 || s->p > 2)
    return env.fail("needs an axis inside rank %d and p 1 or 2", x.rank);
  for (int i = 0; i < x.rank; ++i)
    (i < axis ? s->outer : i > axis ? s->inner : s->axis) *= x.dims[i];
  return true;
}

void run_lp(const Step& step, int, int thread, int threads, void*) {
  const AxisState& s = *static_cast<const AxisState*>(step.state);
  int64_t begin, end;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = i / s.inner * s.axis * s.inner + i % s.inner;
    const float* x = step.inputs[0]->as<float>() + at;
    float* y = step.outputs[0]->as<float>() + at;
    double total = 0;
    for (int64_t k = 0; k < s.axis; ++k) {
      const double v = x[k * s.inner];
      total += s.p == 1 ? fabs(v) : v * v;
    }
    const float norm = static_cast<float>(s.p == 1 ? total : ::sqrt(total));
    const float factor = norm == 0 ? 0.0f : 1.0f / norm;
    for (int64_t k = 0; k < s.axis; ++k) y[k * s.inner] = x[k * s.inner] * factor;
  }
}

struct LrnState {
  int64_t before, after;
  float scale, bias;
  double beta;
};

bool prepare_lrn(Step& step, Env& env) {
  if (!float_in_out(step, env)) return false;
  const int64_t size = attr_int(step, "size", 1);
  if (size < 1 || size > 1 << 20) return env.fail("size is out of range");
  LrnState* s = static_cast<LrnState*>(env.allocate(sizeof(LrnState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  *s = {(size - 1) / 2, size - 1 - (size - 1) / 2,
        static_cast<float>(attr_float(step, "alpha", 1e-4) / static_cast<double>(size)),
        static_cast<float>(attr_float(step, "bias", 1)), attr_float(step, "beta", 0.75)};
  return true;
}

void run_lrn(const Step& step, int, int thread, int threads, void*) {
  const LrnState& s = *static_cast<const LrnState*>(step.state);
  const Tensor& t = *step.inputs[0];
  const int64_t c = last_dim(t);
  int64_t begin, end;
  share(row_count(t), 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = t.as<float>() + row * c;
    float* y = step.outputs[0]->as<float>() + row * c;
    for (int64_t i = 0; i < c; ++i) {
      const int64_t low = i > s.before ? i - s.before : 0;
      const int64_t high = i + s.after < c ? i + s.after + 1 : c;
      float total = 0;
      for (int64_t k = low; k < high; ++k) total += x[k] * x[k];
      y[i] = x[i] / powf(s.bias + s.scale * total, static_cast<float>(s.beta));
    }
  }
}

const Kernel kNorm[] = {
    {"BatchNormalization", "f32_batch_norm", prepare_batch, run_batch, kAcceptsPitch | kInPlace | kDivisible},
    {"LayerNormalization RMSNormalization", "f32_layer_norm", prepare_layer<false>, run_layer, kInPlace | kDivisible},
    {"LayerNormalization RMSNormalization", "bf16_layer_norm", prepare_layer<true>, run_layer, 0},
    {"LpNormalization", "f32_lp_norm", prepare_lp, run_lp, kInPlace},
    {"LRN", "f32_lrn", prepare_lrn, run_lrn, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(norm, kNorm)
