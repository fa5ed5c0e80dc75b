// Conv and Gemm with constant weights, as tap GEMM.
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct State {
  TapGemm gemm;
  int32_t residual;          // input added before the activation, or -1
};

State* new_state(Step& step, Env& env) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = state;
  if (state) state->residual = -1;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return state;
}

bool prepare_conv(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s)) return false;
  State* state = new_state(step, env);
  if (!state) return env.out_of_memory();
  if (s.has_residual) state->residual = 3;
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
  const WeightView w{s.weights->as<float>(), s.group_out * s.group_in * kh * kw,
                     s.group_in * kh * kw, kh * kw, kw, 1, 1.0f};
  return prepare_tap_gemm(s, w, s.bias ? s.bias->as<float>() : nullptr, 1.0f, env, &state->gemm);
}

// Gemm: y[M,N] = activation(alpha * a[M,K] * b + beta * c), b constant: [N,K] (transB) or [K,N].
// c constant: one value per column, or one for all; a full [M,N] one (beta 1) may be computed.
bool prepare_gemm(Step& step, Env& env) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 1);
  const Tensor* c = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y) return env.fail("needs inputs a and b and an output");
  if (a->dtype != DType::kF32 || b->dtype != DType::kF32 || y->dtype != DType::kF32 ||
      (c && c->dtype != DType::kF32)) {
    return env.fail("takes f32 only");
  }
  if (!is_weight(*b)) return env.fail("b must be constant");
  if (a->rank != 2 || b->rank != 2 || y->rank != 2) return env.fail("takes matrices");
  if (attr_int(step, "transA", 0)) return env.fail("transA must be 0");
  const bool trans_b = attr_int(step, "transB", 0) != 0;
  const int64_t m = a->dims[0], k = a->dims[1];
  const int64_t n = trans_b ? b->dims[0] : b->dims[1];
  if ((trans_b ? b->dims[1] : b->dims[0]) != k || y->dims[0] != m || y->dims[1] != n) {
    return env.fail("dims of a, b and y do not agree");
  }
  const float alpha = static_cast<float>(attr_float(step, "alpha", 1.0));
  const float beta = static_cast<float>(attr_float(step, "beta", 1.0));
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
  if (c && c->size == n && is_weight(*c) && is_dense(*c) && last_dim(*c) == n) {
    bias = c->as<float>();
  } else if (c && c->size == 1 && is_weight(*c)) {
    float* filled = static_cast<float*>(env.allocate(static_cast<size_t>(n + 1) * 4));
    if (!filled) return env.out_of_memory();
    for (int64_t i = 0; i < n; ++i) filled[i] = c->as<float>()[0];
    bias = filled;
  } else if (c && same_dims(*c, *y) && beta == 1.0f) {
    s.has_residual = true;
    state->residual = 2;
    s.residual = {1, 1, m, n, m * c->pitch, m * c->pitch, c->pitch, 0, {0, 0, 0, 0}};
  } else if (c) {
    return env.fail("c must be a constant of %lld values or one, or [M,N] with beta 1",
                    static_cast<long long>(n));
  }
  const WeightView w{b->as<float>(), 0, trans_b ? k : 1, trans_b ? 1 : n, 0, 0, alpha};
  return prepare_tap_gemm(s, w, bias, beta, env, &state->gemm);
}

void run(const Step& step, int, int thread, int, void*) {
  const State& state = *static_cast<const State*>(step.state);
  run_tap_gemm(state.gemm, step.inputs[0]->as<float>(), step.outputs[0]->as<float>(),
               state.residual < 0 ? nullptr : step.inputs[state.residual]->as<float>(), thread);
}

const Kernel kConvGemm[] = {
    {"Conv", "f32_conv2d_gemm", prepare_conv, run, kAcceptsPitch | kAcceptsHalo},
    {"Conv", "f32_conv2d_grouped", prepare_conv, run, kAcceptsPitch | kAcceptsHalo},
    {"Gemm", "f32_gemm", prepare_gemm, run, kAcceptsPitch},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(conv_gemm, kConvGemm)
