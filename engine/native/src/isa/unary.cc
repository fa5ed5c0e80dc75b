// f32_unary: every elementwise function of one float tensor. Rows of a channel slice are walked one
// by one, a dense tensor as one row. f16_unary: halves, computed in floats.
#include <cmath>

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
VECTOR_MAP(map_quick_gelu, x* sigmoid(a* x))
VECTOR_MAP(map_log_sigmoid, -softplus(-x))
#undef VECTOR_MAP

// Rare in networks: the C library's functions, one by one.
template <float (*Function)(float)>
void map_libm(const float* x, float* y, int64_t n, float, float) {
  for (int64_t i = 0; i < n; ++i) y[i] = Function(x[i]);
}

struct Row {
  const char* op;
  Map map;
  const char* a_name;  // attributes, nullptr when there is none
  const char* b_name;
  float a, b;  // their defaults
};
const Row kRows[] = {
    {"Log", map_log, nullptr, nullptr, 0, 0},
    {"Sqrt", map_sqrt, nullptr, nullptr, 0, 0},
    {"Rsqrt", map_rsqrt, nullptr, nullptr, 0, 0},
    {"Reciprocal", map_reciprocal, nullptr, nullptr, 0, 0},
    {"Abs", map_abs, nullptr, nullptr, 0, 0},
    {"Neg", map_neg, nullptr, nullptr, 0, 0},
    {"Floor", map_floor, nullptr, nullptr, 0, 0},
    {"Ceil", map_ceil, nullptr, nullptr, 0, 0},
    {"Round", map_round, nullptr, nullptr, 0, 0},
    {"Sign", map_sign, nullptr, nullptr, 0, 0},
    {"Square", map_square, nullptr, nullptr, 0, 0},
    {"Celu", map_celu, "alpha", nullptr, 1, 0},
    {"ThresholdedRelu", map_thresholded_relu, "alpha", nullptr, 1, 0},
    {"Shrink", map_shrink, "lambd", "bias", 0.5f, 0},
    {"QuickGelu", map_quick_gelu, "alpha", nullptr, 1.702f, 0},
    {"LogSigmoid", map_log_sigmoid, nullptr, nullptr, 0, 0},
    {"Sin", map_libm<::sinf>, nullptr, nullptr, 0, 0},
    {"Cos", map_libm<::cosf>, nullptr, nullptr, 0, 0},
    {"Tan", map_libm<::tanf>, nullptr, nullptr, 0, 0},
    {"Asin", map_libm<::asinf>, nullptr, nullptr, 0, 0},
    {"Acos", map_libm<::acosf>, nullptr, nullptr, 0, 0},
    {"Atan", map_libm<::atanf>, nullptr, nullptr, 0, 0},
    {"Sinh", map_libm<::sinhf>, nullptr, nullptr, 0, 0},
    {"Cosh", map_libm<::coshf>, nullptr, nullptr, 0, 0},
    {"Asinh", map_libm<::asinhf>, nullptr, nullptr, 0, 0},
    {"Acosh", map_libm<::acoshf>, nullptr, nullptr, 0, 0},
    {"Atanh", map_libm<::atanhf>, nullptr, nullptr, 0, 0},
    {"Expm1", map_libm<::expm1f>, nullptr, nullptr, 0, 0},
    {"Log1p", map_libm<::log1pf>, nullptr, nullptr, 0, 0},
    {"Log2", map_libm<::log2f>, nullptr, nullptr, 0, 0},
    {"Log10", map_libm<::log10f>, nullptr, nullptr, 0, 0},
    {"Trunc", map_libm<::truncf>, nullptr, nullptr, 0, 0},
};
// Operators whose function is also a fusable activation; their attributes have these names.
struct ActRow {
  const char* op;
  Act act;
  const char* a_name;
  const char* b_name;
  float a, b;
};
const ActRow kActRows[] = {
    {"Identity", Act::kNone, nullptr, nullptr, 0, 0},
    {"Relu", Act::kClip, nullptr, nullptr, 0, INFINITY},
    {"Relu6", Act::kClip, nullptr, nullptr, 0, 6},
    {"Clip", Act::kClip, "min", "max", -INFINITY, INFINITY},
    {"LeakyRelu", Act::kLeakyRelu, "alpha", nullptr, 0.01f, 0},
    {"HardSigmoid", Act::kHardSigmoid, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", Act::kHardSwish, nullptr, nullptr, 0, 0},
    {"Sigmoid", Act::kSigmoid, nullptr, nullptr, 0, 0},
    {"Silu", Act::kSilu, nullptr, nullptr, 0, 0},
    {"Swish", Act::kSilu, nullptr, nullptr, 0, 0},
    {"Tanh", Act::kTanh, nullptr, nullptr, 0, 0},
    {"Gelu", Act::kGelu, nullptr, nullptr, 0, 0},
    {"FastGelu", Act::kGeluTanh, nullptr, nullptr, 0, 0},
    {"Elu", Act::kElu, "alpha", nullptr, 1, 0},
    {"Selu", Act::kSelu, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    {"Softplus", Act::kSoftplus, nullptr, nullptr, 0, 0},
    {"Softsign", Act::kSoftsign, nullptr, nullptr, 0, 0},
    {"Mish", Act::kMish, nullptr, nullptr, 0, 0},
    {"Exp", Act::kExp, nullptr, nullptr, 0, 0},
    {"Erf", Act::kErf, nullptr, nullptr, 0, 0},
};

struct State {
  Map map;  // nullptr: `activation` says what
  float a, b;
  Activation activation;
};

float attribute(const Step& step, const char* name, float otherwise) {
  return name ? static_cast<float>(attr_float(step, name, otherwise)) : otherwise;
}

bool find_function(const Step& step, State* state) {
  for (const ActRow& row : kActRows) {
    if (strcmp(row.op, step.op) != 0) continue;
    state->activation = {row.act, attribute(step, row.a_name, row.a),
                         attribute(step, row.b_name, row.b)};
    if (row.act == Act::kGelu && strcmp(attr_string(step, "approximate", "none"), "tanh") == 0)
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

const char kOps[] =
    "Identity Relu Relu6 Clip LeakyRelu HardSigmoid HardSwish Sigmoid Silu Swish Tanh Gelu "
    "FastGelu "
    "Elu Selu Softplus Softsign Mish Exp Erf Log Sqrt Rsqrt Reciprocal Abs Neg Floor Ceil Round "
    "Sign Square Celu ThresholdedRelu Shrink QuickGelu LogSigmoid Sin Cos Tan Asin Acos Atan Sinh "
    "Cosh Asinh Acosh Atanh Expm1 Log1p Log2 Log10 Trunc";
const Kernel kUnary[] = {
    {kOps, "f32_unary", prepare, run<float>, kAcceptsPitch | kInPlace},
#if defined(__aarch64__)
    {kOps, "f16_unary", prepare, run<uint16_t>, kAcceptsPitch | kInPlace},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(unary, kUnary)
