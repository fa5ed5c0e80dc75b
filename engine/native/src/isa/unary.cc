// f32_unary: every elementwise function of one float tensor. Rows of a channel slice are walked one
// by one, a dense tensor as one row. f16_unary: halves, computed in floats.
#include <cmath>

#include "ops/activation_table.h"
#include "ops/convert.h"
#include "activation.h"

namespace lite::LITE_ISA {

namespace {

using Map = void (*)(const float* x, float* y, int64_t n, float a, float b);

#define VECTOR_MAP(name, expression)                                           \
  void name(const float* from, float* to, int64_t n, float p, float q) {       \
    const F a = splat(p), b = splat(q), zero = splat(0.0f), one = splat(1.0f); \
    (void)a, (void)b, (void)zero, (void)one;                                   \
    auto f = [&](F x) __attribute__((always_inline)) { return expression; };   \
    int64_t i = 0;                                                             \
    for (; i + kLanes <= n; i += kLanes) store(to + i, f(load(from + i)));     \
    const int rest = static_cast<int>(n - i);                                  \
    if (rest) store_part(to + i, f(load_part(from + i, rest)), rest);          \
  }
VECTOR_MAP(map_log, log(x))
VECTOR_MAP(map_sqrt, sqrt(x))
VECTOR_MAP(map_rsqrt, one / sqrt(x))
VECTOR_MAP(map_reciprocal, one / x)
VECTOR_MAP(map_abs, abs(x))
VECTOR_MAP(map_neg, -x)
VECTOR_MAP(map_floor, floor(x))
VECTOR_MAP(map_ceil, -floor(-x))
VECTOR_MAP(map_round, round(x))
VECTOR_MAP(map_sign, select(x > zero, one, select(x < zero, -one, x)))
VECTOR_MAP(map_square, x* x)
VECTOR_MAP(map_celu, select(x < zero, a* expm1_negative(x / a), x))
VECTOR_MAP(map_thresholded_relu, select(x > a, x, zero))
VECTOR_MAP(map_shrink, select(x < -a, x + b, select(x > a, x - b, zero)))
VECTOR_MAP(map_log_sigmoid, -softplus(-x))
#undef VECTOR_MAP

// Rare in networks: the C library's functions, one by one.
template <float (*Function)(float)>
void map_libm(const float* x, float* y, int64_t n, float, float) {
  for (int64_t i = 0; i < n; ++i) y[i] = Function(x[i]);
}

// x - tanh x; near 0 its series, where the difference has no digits.
float tanh_shrink(float v) {
  const double x = v, s = x * x;
  if (!(s < 0.01)) return static_cast<float>(x - ::tanh(x));
  return static_cast<float>(x * s * (1. / 3 - s * (2. / 15 - s * (17. / 315 - s * 62. / 2835))));
}

struct Row {
  const char* op;
  Map map;
  const char* a_name;  // attributes, nullptr when there is none
  const char* b_name;
  float a, b;  // their defaults
};
// Those of activation_table.h come on top. To add one: its expression above and its row here.
#define UNARY_FUNCTIONS(ROW)                                           \
  ROW("Log", map_log, nullptr, nullptr, 0, 0)                          \
  ROW("Sqrt", map_sqrt, nullptr, nullptr, 0, 0)                        \
  ROW("Rsqrt", map_rsqrt, nullptr, nullptr, 0, 0)                      \
  ROW("Reciprocal", map_reciprocal, nullptr, nullptr, 0, 0)            \
  ROW("Abs", map_abs, nullptr, nullptr, 0, 0)                          \
  ROW("Neg", map_neg, nullptr, nullptr, 0, 0)                          \
  ROW("Floor", map_floor, nullptr, nullptr, 0, 0)                      \
  ROW("Ceil", map_ceil, nullptr, nullptr, 0, 0)                        \
  ROW("Round", map_round, nullptr, nullptr, 0, 0)                      \
  ROW("Sign", map_sign, nullptr, nullptr, 0, 0)                        \
  ROW("Square", map_square, nullptr, nullptr, 0, 0)                    \
  ROW("Celu", map_celu, "alpha", nullptr, 1, 0)                        \
  ROW("ThresholdedRelu", map_thresholded_relu, "alpha", nullptr, 1, 0) \
  ROW("Shrink", map_shrink, "lambd", "bias", 0.5f, 0)                  \
  ROW("LogSigmoid", map_log_sigmoid, nullptr, nullptr, 0, 0)           \
  ROW("Sin", map_libm<::sinf>, nullptr, nullptr, 0, 0)                 \
  ROW("Cos", map_libm<::cosf>, nullptr, nullptr, 0, 0)                 \
  ROW("Tan", map_libm<::tanf>, nullptr, nullptr, 0, 0)                 \
  ROW("Asin", map_libm<::asinf>, nullptr, nullptr, 0, 0)               \
  ROW("Acos", map_libm<::acosf>, nullptr, nullptr, 0, 0)               \
  ROW("Atan", map_libm<::atanf>, nullptr, nullptr, 0, 0)               \
  ROW("Sinh", map_libm<::sinhf>, nullptr, nullptr, 0, 0)               \
  ROW("Cosh", map_libm<::coshf>, nullptr, nullptr, 0, 0)               \
  ROW("Asinh", map_libm<::asinhf>, nullptr, nullptr, 0, 0)             \
  ROW("Acosh", map_libm<::acoshf>, nullptr, nullptr, 0, 0)             \
  ROW("Atanh", map_libm<::atanhf>, nullptr, nullptr, 0, 0)             \
  ROW("Expm1", map_libm<::expm1f>, nullptr, nullptr, 0, 0)             \
  ROW("Log1p", map_libm<::log1pf>, nullptr, nullptr, 0, 0)             \
  ROW("Log2", map_libm<::log2f>, nullptr, nullptr, 0, 0)               \
  ROW("TanhShrink", map_libm<tanh_shrink>, nullptr, nullptr, 0, 0)     \
  ROW("Log10", map_libm<::log10f>, nullptr, nullptr, 0, 0)             \
  ROW("Trunc", map_libm<::truncf>, nullptr, nullptr, 0, 0)
#define ROW(op, map, a_name, b_name, a, b) {op, map, a_name, b_name, a, b},
const Row kRows[] = {UNARY_FUNCTIONS(ROW)};
#undef ROW
#define NAME(op, function, a_name, b_name, a, b) op " "
const char kOps[] = LITE_ACTIVATIONS(NAME) UNARY_FUNCTIONS(NAME);
#undef NAME

struct State {
  Map map;  // nullptr: `activation` says what
  float a, b;
  Activation activation;
};

float attribute(const Step& step, const char* name, float otherwise) {
  return name ? static_cast<float>(attr_float(step, name, otherwise)) : otherwise;
}

bool find_function(const Step& step, State* state) {
  if (const ActivationRow* row = find_activation(step.op)) {
    state->activation = {row->act, attribute(step, row->a_name, row->a),
                         attribute(step, row->b_name, row->b)};
    if (row->act == Act::kGelu && strcmp(attr_string(step, "approximate", "none"), "tanh") == 0)
      state->activation.act = Act::kGeluTanh;
    return true;
  }
  for (const Row& row : kRows) {
    if (strcmp(row.op, step.op) != 0) continue;
    state->map = row.map;
    state->a = attribute(step, row.a_name, row.a);
    state->b = attribute(step, row.b_name, row.b);
    return true;
  }
  return false;
}

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  const DType real = strcmp(step.kernel->name, "f16_unary") == 0 ? DType::kF16 : DType::kF32;
  if (!x || !y || x->dtype != real || y->dtype != real || !same_dims(*x, *y))
    return env.fail("needs one %s input and an output of its type and shape", dtype_name(real));
  // Clip's bounds are attributes: the lowering puts constant inputs there.
  if (step.num_inputs > 1 && (input_of(step, 1) || input_of(step, 2)))
    return env.fail("bounds of Clip must be constant");
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  return find_function(step, state) || env.fail("no function for %s", step.op);
}

void run_row(const State& state, const float* x, float* y, int64_t n) {
  if (state.map) state.map(x, y, n, state.a, state.b);
  else activate(x, y, n, state.activation);
}

#if defined(__aarch64__)
void run_row(const State& state, const uint16_t* x, uint16_t* y, int64_t n) {
  float floats[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    halves_to_floats(x + i, count, floats);
    run_row(state, floats, floats, count);
    floats_to_halves(floats, count, y + i);
  }
}
#endif

template <class Element>
void run(const Step& step, int, int thread, int threads, void*) {
  const State& state = *static_cast<const State*>(step.state);
  const Tensor& x = *step.inputs[0];
  const Tensor& y = *step.outputs[0];
  int64_t begin, end;
  if (is_dense(x) && is_dense(y)) {
    share(x.size, 64, thread, threads, &begin, &end);
    run_row(state, x.as<Element>() + begin, y.as<Element>() + begin, end - begin);
    return;
  }
  share(row_count(x), 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row)
    run_row(state, x.as<Element>() + row * x.pitch, y.as<Element>() + row * y.pitch, last_dim(x));
}

const Kernel kUnary[] = {
    {kOps, "f32_unary", prepare, run<float>, kAcceptsPitch | kInPlace | kDivisible},
#if defined(__aarch64__)
    {kOps, "f16_unary", prepare, run<uint16_t>, kAcceptsPitch | kInPlace | kDivisible},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(unary, kUnary)
