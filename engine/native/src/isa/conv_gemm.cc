// Conv and Gemm with constant weights, as tap GEMM.
//
// The bf16 kernels keep floats in memory. Where there are products of bf16 pairs, phase 0 rounds the
// input, [image][row][pixel][group][pairs]; elsewhere they compute in float.
#include "ops/gemm_shape.h"
#include "tap_gemm.h"
#if !defined(LITE_FP16) && !defined(LITE_PAIRS)
#include "row_gemm.h"
#define LITE_BY_ROW
#endif

namespace lite::LITE_ISA {
namespace {

struct State {
  TapGemm gemm;
#if defined(LITE_BY_ROW)
  RowGemm row;               // in its place, where `row.weights` is set
#endif
  int32_t residual;          // input added before the activation, or -1
  PixelView input;           // that is rounded to bf16
  int64_t groups, group_in;
};

State* new_state(Step& step, Env& env) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = state;
  if (state) state->residual = -1;
  return state;
}

void finish_step(Step& step, const TapGemm& gemm) {
  step.scratch_bytes = gemm.scratch_bytes;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, tile_height(gemm),
              kTileColumns);
}

// Makes the shape one of bf16 pairs, where products are of those.
bool count_pairs(Step& step, Env& env, State* state, ConvShape* s) {
  state->input = s->in;
  state->groups = s->groups;
  state->group_in = s->group_in;
  if (kProducts == 1) return true;
  s->group_in = (s->group_in + 1) / 2;
  s->in.c = s->in.pixel = s->groups * s->group_in;
  s->in.row = s->in.w * s->in.pixel;
  s->in.image = s->in.h * s->in.row;
  s->in.origin = 0;
  for (int i = 0; i < 4; ++i) s->in.halo[i] = 0;
  size_t count;
  if (!mul_size(static_cast<size_t>(s->in.images), static_cast<size_t>(s->in.image), &count) ||
      !mul_size(count, 4, &step.shared_bytes)) {
    return env.fail("input too large");
  }
  step.shared_bytes += 64;
  step.phases = 2;
  return true;
}

#if defined(LITE_PAIRS)
LITE_INLINE void round_floats(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load(x + i));
    memcpy(y + i, &v, sizeof v);
  }
  if (i < n) {
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load_part(x + i, static_cast<int>(n - i)));
    memcpy(y + i, &v, static_cast<size_t>(n - i) * sizeof *y);
  }
}

// Phase 0: one thread's rows.
void round_input(const State& state, const float* x, uint16_t* y, int thread, int threads) {
  const PixelView& v = state.input;
  const int64_t padded = (state.group_in + 1) / 2 * 2, pixel = state.groups * padded;
  const bool one_run = padded == state.group_in && v.pixel == pixel;
  int64_t begin, end;
  share(v.images * v.h * v.w, 16, thread, threads, &begin, &end);
  while (begin < end) {
    const int64_t row = begin / v.w, column = begin % v.w;
    const int64_t n = v.w - column < end - begin ? v.w - column : end - begin;
    const float* from = x + v.origin + row / v.h * v.image + row % v.h * v.row + column * v.pixel;
    uint16_t* to = y + begin * pixel;
    begin += n;
    if (one_run) {
      round_floats(from, to, n * pixel);
      continue;
    }
    for (int64_t i = 0; i < n; ++i, from += v.pixel)
      for (int64_t g = 0; g < state.groups; ++g, to += padded) {
        round_floats(from + g * state.group_in, to, state.group_in);
        if (padded != state.group_in) to[state.group_in] = 0;
      }
  }
}
#endif

bool prepare_conv(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s, kReal)) return false;
  State* state = new_state(step, env);
  if (!state) return env.out_of_memory();
  if (s.has_residual) state->residual = 3;
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
  const WeightView w{s.weights->as<float>(), s.group_out * s.group_in * kh * kw,
                     s.group_in * kh * kw, kh * kw, kw, 1, 1.0f, s.group_in};
  const bool by_rows = step.by_rows && s.out.images == 1;
  if (!count_pairs(step, env, state, &s) ||
      !prepare_tap_gemm(s, w, s.bias ? s.bias->as<float>() : nullptr, 1.0f, env, &state->gemm,
                        by_rows)) {
    return false;
  }
  if (by_rows) step.rows = row_map(s, state->gemm.list.group_rows);
  finish_step(step, state->gemm);
  return true;
}

#if !defined(LITE_FP16) && !defined(LITE_PAIRS)
// What Winograd declines.
bool prepare_direct(Step& step, Env& env) {
  if (!prepare_conv(step, env)) return false;
  set_variant(step, "f32_conv2d_gemm__" LITE_ISA_NAME "_%dx%d",
              tile_height(static_cast<State*>(step.state)->gemm), kTileColumns);
  return true;
}
#endif

#if defined(LITE_BY_ROW)
bool prepare_row(Step& step, Env& env, RowGemm row, const float* bias, float beta) {
  float* b = static_cast<float*>(env.allocate(static_cast<size_t>(row.n + 1) * sizeof(float)));
  if (!b) return env.out_of_memory();
  for (int64_t i = 0; bias && i < row.n; ++i) b[i] = bias[i] * beta;
  row.bias = b;
  static_cast<State*>(step.state)->row = row;
  set_variant(step, "%s__" LITE_ISA_NAME "_row", step.kernel->name);
  return true;
}
#endif

// Gemm: c may be one constant per column, or one for all, or with beta 1 a full [M,N] one, computed, if
// there is no residual, which is one too.
bool prepare_gemm(Step& step, Env& env) {
  GemmShape g;
  if (!read_gemm_shape(step, env, kReal, &g)) return false;
  const Tensor *a = g.a, *b = g.b, *c = g.c, *y = g.y;
  const int64_t m = g.m, n = g.n, k = g.k;
  const float alpha = g.alpha, beta = g.beta;
  ConvShape s{};
  s.in = {1, 1, m, k, m * a->pitch, m * a->pitch, a->pitch, 0, {0, 0, 0, 0}};
  s.out = {1, 1, m, n, m * y->pitch, m * y->pitch, y->pitch, 0, {0, 0, 0, 0}};
  s.groups = 1;
  s.group_in = k;
  s.group_out = n;
  for (int i = 0; i < 2; ++i) s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
  if (!parse_activation(step, env, &s.activation)) return false;
  State* state = new_state(step, env);
  if (!state) return env.out_of_memory();
  const float* bias = nullptr;
  const auto add = [&](const Tensor& matrix, int32_t input) {
    s.has_residual = true;
    state->residual = input;
    s.residual = {1, 1, m, n, m * matrix.pitch, m * matrix.pitch, matrix.pitch, 0, {0, 0, 0, 0}};
  };
  if (g.residual) add(*g.residual, 3);
  if (c && c->size == n && is_weight(*c) && is_dense(*c) && last_dim(*c) == n) {
    bias = c->as<float>();
  } else if (c && c->size == 1 && is_weight(*c)) {
    float* filled = static_cast<float*>(env.allocate(static_cast<size_t>(n + 1) * 4));
    if (!filled) return env.out_of_memory();
    for (int64_t i = 0; i < n; ++i) filled[i] = c->as<float>()[0];
    bias = filled;
  } else if (c && c->dtype == kReal && same_dims(*c, *y) && beta == 1.0f && !g.residual) {
    add(*c, 2);
  } else if (c) {
    return env.fail("c must be a constant of %lld values or one, or [M,N] with beta 1",
                    static_cast<long long>(n));
  }
#if defined(LITE_BY_ROW)
  if (m == 1 && g.trans_b && alpha == 1.0f && state->residual < 0)
    return prepare_row(step, env, {b->as<float>(), nullptr, k, n, s.activation}, bias, beta);
#endif
  const WeightView w{b->as<float>(), 0, g.trans_b ? k : 1, g.trans_b ? 1 : n, 0, 0, alpha, k};
  if (!count_pairs(step, env, state, &s) ||
      !prepare_tap_gemm(s, w, bias, beta, env, &state->gemm)) {
    return false;
  }
  finish_step(step, state->gemm);
  return true;
}

void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  const Real* x = step.inputs[0]->as<Real>();
#if defined(LITE_PAIRS)
  if (phase == 0)
    return round_input(state, x, static_cast<uint16_t*>(step.shared), thread, threads);
  x = static_cast<const float*>(step.shared);
#endif
#if defined(LITE_BY_ROW)
  if (state.row.weights)
    return run_row_gemm(state.row, x, step.outputs[0]->as<float>(), thread, threads);
#endif
  run_tap_gemm(state.gemm, x, step.outputs[0]->as<Real>(),
               state.residual < 0 ? nullptr : step.inputs[state.residual]->as<Real>(), thread,
               scratch);
}

#if !defined(LITE_PAIRS)
void run_rows(const Step& step, const RowRange& r, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  run_tap_gemm_rows(state.gemm, reinterpret_cast<const Real*>(r.input),
                    reinterpret_cast<Real*>(r.output),
                    state.residual < 0 ? nullptr : step.inputs[state.residual]->as<Real>(),
                    r.begin, r.end, scratch);
}
#endif

constexpr uint32_t kConvFlags = kAcceptsPitch | kAcceptsHalo | kDivisible;
const Kernel kConvGemm[] = {
#if defined(LITE_FP16)
    {"Conv", "f16_conv2d_gemm", prepare_conv, run, kConvFlags, nullptr, run_rows},
    {"Gemm", "f16_gemm", prepare_gemm, run, kAcceptsPitch},
#else
    {"Conv", "bf16_conv2d_gemm", prepare_conv, run, kConvFlags},
    {"Gemm", "bf16_gemm", prepare_gemm, run, kAcceptsPitch},
#if !defined(LITE_PAIRS)
    {"Conv", "f32_conv2d_gemm", prepare_conv, run, kConvFlags, nullptr, run_rows},
    {"Conv", "f32_conv2d_3x3", prepare_direct, run, kAcceptsPitch | kAcceptsHalo, nullptr, run_rows},
    {"Conv", "f32_conv2d_bf16x2", prepare_conv, run, kAcceptsPitch | kAcceptsHalo},  // without AMX
    {"Gemm", "f32_gemm", prepare_gemm, run, kAcceptsPitch},
#endif
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(conv_gemm, kConvGemm)
