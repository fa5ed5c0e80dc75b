// f32_binary, f16_binary: arithmetic of two float tensors with NumPy broadcasting, and an optional activation.
#include "ops/broadcast.h"

#include <cmath>
#include <type_traits>

#include "activation.h"

namespace lite::LITE_ISA {

namespace {

// One row; a stride of 0 repeats its operand.
using Row = void (*)(const Real* a, int64_t sa, const Real* b, int64_t sb, Real* y, int64_t n);

struct AddOp {
  static LITE_INLINE F of(F a, F b) { return a + b; }
};
struct SubOp {
  static LITE_INLINE F of(F a, F b) { return a - b; }
};
struct MulOp {
  static LITE_INLINE F of(F a, F b) { return a * b; }
};
struct DivOp {
  static LITE_INLINE F of(F a, F b) { return a / b; }
};
struct MinOp {
  static LITE_INLINE F of(F a, F b) { return minimum(a, b); }
};
struct MaxOp {
  static LITE_INLINE F of(F a, F b) { return maximum(a, b); }
};
struct PReluOp {
  static LITE_INLINE F of(F a, F b) { return select(a < splat(0.0f), a * b, a); }
};
struct SquaredDifferenceOp {
  static LITE_INLINE F of(F a, F b) { return (a - b) * (a - b); }
};

template <class Op>
void vector_row(const Real* a, int64_t sa, const Real* b, int64_t sb, Real* y, int64_t n) {
  int64_t i = 0;
  if (sa && sb) {
#if defined(__aarch64__)  // where a load may bring two vectors; the two that networks spend time in
    constexpr bool kOften = std::is_same_v<Op, AddOp> || std::is_same_v<Op, MulOp>;
    for (; kOften && i + 4 * kLanes <= n; i += 4 * kLanes) {
      F u[4], v[4];
      LITE_UNROLL for (int j = 0; j < 4; ++j) u[j] = load(a + i + j * kLanes);
      LITE_UNROLL for (int j = 0; j < 4; ++j) v[j] = load(b + i + j * kLanes);
      LITE_UNROLL for (int j = 0; j < 4; ++j) store(y + i + j * kLanes, Op::of(u[j], v[j]));
    }
#endif
    for (; i + kLanes <= n; i += kLanes) store(y + i, Op::of(load(a + i), load(b + i)));
  } else if (sa) {
    const F vb = splat(*b);
    for (; i + kLanes <= n; i += kLanes) store(y + i, Op::of(load(a + i), vb));
  } else {
    const F va = splat(*a);
    for (; i + kLanes <= n; i += kLanes) store(y + i, Op::of(va, sb ? load(b + i) : splat(*b)));
  }
  const int rest = static_cast<int>(n - i);
  if (rest == 0) return;
  const F va = sa ? load_part(a + i, rest) : splat(*a);
  const F vb = sb ? load_part(b + i, rest) : splat(*b);
  store_part(y + i, Op::of(va, vb), rest);
}

template <float (*Function)(float, float)>
void scalar_row(const Real* a, int64_t sa, const Real* b, int64_t sb, Real* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Real>(Function(a[i * sa], b[i * sb]));
}

// The exponents that networks use are constants, and cheap.
void pow_row(const Real* a, int64_t sa, const Real* b, int64_t sb, Real* y, int64_t n) {
  if (sb == 0 && sa == 1 && *b == 2.0f) vector_row<MulOp>(a, 1, a, 1, y, n);
  else if (sb == 0 && *b == 0.5f)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Real>(sqrtf(a[i * sa]));
  else scalar_row<::powf>(a, sa, b, sb, y, n);
}

// Sign of the divisor, as Python's %.
float floor_mod(float a, float b) {
  const float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

struct Entry {
  const char* op;
  Row row;
};
const Entry kEntries[] = {
    {"Add", vector_row<AddOp>},
    {"Sum", vector_row<AddOp>},
    {"Sub", vector_row<SubOp>},
    {"Mul", vector_row<MulOp>},
    {"Div", vector_row<DivOp>},
    {"Min", vector_row<MinOp>},
    {"Max", vector_row<MaxOp>},
    {"PRelu", vector_row<PReluOp>},
    {"SquaredDifference", vector_row<SquaredDifferenceOp>},
    {"Pow", pow_row},
    {"Atan2", scalar_row<::atan2f>},
};

struct State {
  Broadcast plan;
  Row row;
  Activation activation;
};

bool prepare(Step& step, Env& env) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 1);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y || step.num_inputs != 2 || a->dtype != kReal || b->dtype != kReal ||
      y->dtype != kReal)
    return env.fail("needs two %s inputs and an output of it", dtype_name(kReal));
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  for (const Entry& entry : kEntries)
    if (strcmp(entry.op, step.op) == 0) state->row = entry.row;
  if (strcmp(step.op, "Mod") == 0)
    state->row = attr_int(step, "fmod", 0) ? scalar_row<::fmodf> : scalar_row<floor_mod>;
  if (!state->row) return env.fail("no function for %s", step.op);
  const Tensor* inputs[] = {a, b};
  return plan_broadcast(env, *y, inputs, 2, &state->plan) &&
         parse_activation(step, env, &state->activation);
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& state = *static_cast<const State*>(step.state);
  const Real* a = step.inputs[0]->as<Real>();
  const Real* b = step.inputs[1]->as<Real>();
  Real* y = step.outputs[0]->as<Real>();
  const int last = state.plan.rank - 1;
  const int64_t sa = state.plan.stride[1][last], sb = state.plan.stride[2][last];
  const auto step_of = [&](int operand) {
    return last > 0 ? state.plan.stride[operand][last - 1] : 0;
  };
  const int64_t next_y = step_of(0), next_a = step_of(1), next_b = step_of(2);
  const bool activates = state.activation.act != Act::kNone;
  BroadcastWalk walk;
  int64_t rows;
  for (start_walk(state.plan, thread, threads, &walk); next_rows(&walk, &rows);) {
    for (int64_t r = 0; r < rows; ++r) {
      Real* to = y + walk.at[0] + r * next_y;
      state.row(a + walk.at[1] + r * next_a, sa, b + walk.at[2] + r * next_b, sb, to, walk.length);
      if (activates) activate(to, walk.length, state.activation);
    }
  }
}

const Kernel kBinary[] = {
#if defined(LITE_FP16)
    {"Add Sum Sub Mul Div Min Max PRelu SquaredDifference Pow Atan2 Mod", "f16_binary", prepare,
     run, kAcceptsPitch | kInPlace | kDivisible},
#else
    {"Add Sum Sub Mul Div Min Max PRelu SquaredDifference Pow Atan2 Mod", "f32_binary", prepare,
     run, kAcceptsPitch | kInPlace | kDivisible},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(binary, kBinary)
