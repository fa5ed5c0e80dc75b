// Elementwise kernels for every element type, computed in int64 or double chunk by chunk: integer
// arithmetic, logic, comparisons, Where, Cast. Networks use them on indices, masks and shapes; the
// float arithmetic that costs time has kernels of its own in isa/.
#include <math.h>

#include "broadcast.h"
#include "convert.h"

namespace lite {

namespace {

enum class Op {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFmod,
  kPow,
  kMin,
  kMax,
  kSquaredDifference,
  kPRelu,
  kAnd,
  kOr,
  kXor,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual
};

struct OpRow {
  const char* name;
  Op op;
};
const OpRow kOps[] = {
    {"Add", Op::kAdd},
    {"Sum", Op::kAdd},
    {"Sub", Op::kSub},
    {"Mul", Op::kMul},
    {"Div", Op::kDiv},
    {"Mod", Op::kMod},
    {"Pow", Op::kPow},
    {"Min", Op::kMin},
    {"Max", Op::kMax},
    {"SquaredDifference", Op::kSquaredDifference},
    {"PRelu", Op::kPRelu},
    {"And", Op::kAnd},
    {"Or", Op::kOr},
    {"Xor", Op::kXor},
    {"BitwiseAnd", Op::kBitAnd},
    {"BitwiseOr", Op::kBitOr},
    {"BitwiseXor", Op::kBitXor},
    {"BitShift", Op::kShiftLeft},
    {"Equal", Op::kEqual},
    {"NotEqual", Op::kNotEqual},
    {"Greater", Op::kGreater},
    {"GreaterOrEqual", Op::kGreaterOrEqual},
    {"Less", Op::kLess},
    {"LessOrEqual", Op::kLessOrEqual},
};

// Integer arithmetic wraps: done unsigned, overflow is defined.
int64_t wrap_add(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
int64_t wrap_sub(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) - uint64_t(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) * uint64_t(b)); }
// Division by zero and INT64_MIN / -1 trap in hardware; ONNX leaves the first undefined.
int64_t safe_div(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? wrap_sub(0, a) : a / b; }
int64_t safe_rem(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
int64_t floor_rem(int64_t a, int64_t b) {
  const int64_t r = safe_rem(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
// Towards zero, and 0 where a is 0 and b negative, as the reference has it.
int64_t power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 || a == -1 ? (b & 1 ? a : 1) : 0;
  int64_t result = 1;
  for (; b > 0; b >>= 1, a = wrap_mul(a, a))
    if (b & 1) result = wrap_mul(result, a);
  return result;
}
int64_t shift(int64_t a, int64_t b, bool left) {
  if (b < 0 || b > 63) return 0;
  return static_cast<int64_t>(left ? uint64_t(a) << b : uint64_t(a) >> b);
}

int64_t compute(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kAdd: return wrap_add(a, b);
    case Op::kSub: return wrap_sub(a, b);
    case Op::kMul: return wrap_mul(a, b);
    case Op::kDiv: return safe_div(a, b);
    case Op::kMod: return floor_rem(a, b);
    case Op::kFmod: return safe_rem(a, b);
    case Op::kPow: return power(a, b);
    case Op::kMin: return a < b ? a : b;
    case Op::kMax: return a > b ? a : b;
    case Op::kSquaredDifference: return wrap_mul(wrap_sub(a, b), wrap_sub(a, b));
    case Op::kPRelu: return a < 0 ? wrap_mul(a, b) : a;
    case Op::kAnd: return a && b;
    case Op::kOr: return a || b;
    case Op::kXor: return !a != !b;
    case Op::kBitAnd: return a & b;
    case Op::kBitOr: return a | b;
    case Op::kBitXor: return a ^ b;
    case Op::kShiftLeft: return shift(a, b, true);
    case Op::kShiftRight: return shift(a, b, false);
    case Op::kEqual: return a == b;
    case Op::kNotEqual: return a != b;
    case Op::kGreater: return a > b;
    case Op::kGreaterOrEqual: return a >= b;
    case Op::kLess: return a < b;
    case Op::kLessOrEqual: return a <= b;
  }
  return 0;
}

double compute(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kMod: {
      const double r = fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case Op::kFmod: return fmod(a, b);
    case Op::kPow: return pow(a, b);
    case Op::kMin: return isnan(a) || a < b ? a : b;
    case Op::kMax: return isnan(a) || a > b ? a : b;
    case Op::kSquaredDifference: return (a - b) * (a - b);
    case Op::kPRelu: return a < 0 ? a * b : a;
    case Op::kEqual: return a == b;
    case Op::kNotEqual: return a != b;
    case Op::kGreater: return a > b;
    case Op::kGreaterOrEqual: return a >= b;
    case Op::kLess: return a < b;
    case Op::kLessOrEqual: return a <= b;
    default: return compute(op, static_cast<int64_t>(a != 0), static_cast<int64_t>(b != 0)) != 0;
  }
}

struct BinaryState {
  Broadcast plan;
  Op op;
  bool floats;
};

bool prepare_binary(Step& step, Env& env) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 1);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y || step.num_inputs != 2) return env.fail("needs two inputs and an output");
  BinaryState* s = static_cast<BinaryState*>(env.allocate(sizeof(BinaryState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  for (const OpRow& row : kOps)
    if (strcmp(row.name, step.op) == 0) s->op = row.op;
  if (s->op == Op::kMod && attr_int(step, "fmod", 0)) s->op = Op::kFmod;
  if (s->op == Op::kShiftLeft && strcmp(attr_string(step, "direction", "LEFT"), "RIGHT") == 0)
    s->op = Op::kShiftRight;
  s->floats = is_float(a->dtype) || is_float(b->dtype);
  if (*attr_string(step, "activation", "")) return env.fail("has no fused activation");
  const bool compares =
      s->op >= Op::kEqual || s->op == Op::kAnd || s->op == Op::kOr || s->op == Op::kXor;
  if (compares ? y->dtype != DType::kBool : y->dtype != a->dtype)
    return env.fail("output has the wrong type");
  const Tensor* inputs[] = {a, b};
  return plan_broadcast(env, *y, inputs, 2, &s->plan);
}

template <class T, class Load, class Store>
void binary_chunks(const BinaryState& s, const Tensor& a, const Tensor& b, const Tensor& y,
                   const BroadcastWalk& walk, Load load, Store store) {
  const int last = s.plan.rank - 1;
  const int64_t sa = s.plan.stride[1][last], sb = s.plan.stride[2][last];
  const int ea = dtype_bytes(a.dtype), eb = dtype_bytes(b.dtype), ey = dtype_bytes(y.dtype);
  T x[kChunk], z[kChunk];
  for (int64_t i = 0; i < walk.length; i += kChunk) {
    const int n = static_cast<int>(walk.length - i < kChunk ? walk.length - i : kChunk);
    load(a.dtype, a.data + (walk.at[1] + i * sa) * ea, sa, n, x);
    load(b.dtype, b.data + (walk.at[2] + i * sb) * eb, sb, n, z);
    for (int k = 0; k < n; ++k) x[k] = compute(s.op, x[k], z[k]);
    store(y.dtype, x, n, y.data + (walk.at[0] + i) * ey);
  }
}

void run_binary(const Step& step, int, int thread, int threads, void*) {
  const BinaryState& s = *static_cast<const BinaryState*>(step.state);
  const Tensor &a = *step.inputs[0], &b = *step.inputs[1], &y = *step.outputs[0];
  BroadcastWalk walk;
  for (start_walk(s.plan, thread, threads, &walk); next_piece(&walk);) {
    if (s.floats) binary_chunks<double>(s, a, b, y, walk, load_doubles, store_doubles);
    else binary_chunks<int64_t>(s, a, b, y, walk, load_ints, store_ints);
  }
}

// ---- one input: Cast, Not and the like

enum class Unary { kCast, kNot, kBitNot, kNeg, kAbs, kSign, kSquare, kIsNaN, kIsInf };
struct UnaryRow {
  const char* name;
  Unary op;
};
const UnaryRow kUnaries[] = {
    {"Cast", Unary::kCast},         {"CastLike", Unary::kCast}, {"Not", Unary::kNot},
    {"BitwiseNot", Unary::kBitNot}, {"Neg", Unary::kNeg},       {"Abs", Unary::kAbs},
    {"Sign", Unary::kSign},         {"Square", Unary::kSquare}, {"IsNaN", Unary::kIsNaN},
    {"IsInf", Unary::kIsInf}};
constexpr double kLargestHalf = 65504;

struct UnaryState {
  Unary op;
  bool positive, negative;  // which infinities IsInf looks for
  bool finite;              // what is too large for a half becomes the largest one
};

bool prepare_unary(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  if (!x || !y || !same_dims(*x, *y)) return env.fail("needs an input and an output of its shape");
  UnaryState* s = static_cast<UnaryState*>(env.allocate(sizeof(UnaryState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  for (const UnaryRow& row : kUnaries)
    if (strcmp(row.name, step.op) == 0) s->op = row.op;
  s->positive = attr_int(step, "detect_positive", 1) != 0;
  s->negative = attr_int(step, "detect_negative", 1) != 0;
  s->finite = attr_int(step, "finite", 0) != 0;
  const bool answers = s->op == Unary::kNot || s->op == Unary::kIsNaN || s->op == Unary::kIsInf;
  if (answers ? y->dtype != DType::kBool : s->op != Unary::kCast && y->dtype != x->dtype)
    return env.fail("output has the wrong type");
  return true;
}

double negated(double v) { return -v; }
int64_t negated(int64_t v) { return wrap_sub(0, v); }
double squared(double v) { return v * v; }
int64_t squared(int64_t v) { return wrap_mul(v, v); }

template <class T>
T unary(const UnaryState& s, T v) {
  switch (s.op) {
    case Unary::kCast: return v;
    case Unary::kNot: return v == 0;
    case Unary::kBitNot: return static_cast<T>(~static_cast<int64_t>(v));
    case Unary::kNeg: return negated(v);
    case Unary::kAbs: return v < 0 ? negated(v) : v;
    case Unary::kSign: return static_cast<T>((v > 0) - (v < 0));
    case Unary::kSquare: return squared(v);
    case Unary::kIsNaN: return v != v;
    case Unary::kIsInf: return isinf(static_cast<double>(v)) && (v > 0 ? s.positive : s.negative);
  }
  return v;
}

void run_unary(const Step& step, int, int thread, int threads, void*) {
  const UnaryState& s = *static_cast<const UnaryState*>(step.state);
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  const int64_t ex = dtype_bytes(x.dtype), ey = dtype_bytes(y.dtype);
  int64_t begin, end;
  share(x.size, 64, thread, threads, &begin, &end);
  if (s.op == Unary::kCast && x.dtype == DType::kF32 && y.dtype == DType::kF16 && !s.finite)
    return floats_to_halves(x.as<float>() + begin, end - begin, y.as<uint16_t>() + begin);
  if (s.op == Unary::kCast && x.dtype == DType::kF16 && y.dtype == DType::kF32)
    return halves_to_floats(x.as<uint16_t>() + begin, end - begin, y.as<float>() + begin);
  for (int64_t i = begin; i < end; i += kChunk) {
    const int n = static_cast<int>(end - i < kChunk ? end - i : kChunk);
    if (is_float(x.dtype)) {
      double v[kChunk];
      load_doubles(x.dtype, x.data + i * ex, 1, n, v);
      for (int k = 0; k < n; ++k) v[k] = unary(s, v[k]);
      for (int k = 0; s.finite && k < n; ++k)
        if (isfinite(v[k])) v[k] = fmin(fmax(v[k], -kLargestHalf), kLargestHalf);
      store_doubles(y.dtype, v, n, y.data + i * ey);
    } else {
      int64_t v[kChunk];
      load_ints(x.dtype, x.data + i * ex, 1, n, v);
      for (int k = 0; k < n; ++k) v[k] = unary(s, v[k]);
      store_ints(y.dtype, v, n, y.data + i * ey);
    }
  }
}

// ---- Where: moves elements, whatever they are

bool prepare_where(Step& step, Env& env) {
  const Tensor* c = input_of(step, 0);
  const Tensor* a = input_of(step, 1);
  const Tensor* b = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!c || !a || !b || !y || c->dtype != DType::kBool || a->dtype != y->dtype ||
      b->dtype != y->dtype)
    return env.fail("needs a bool condition and two inputs of the output's type");
  Broadcast* plan = static_cast<Broadcast*>(env.allocate(sizeof(Broadcast)));
  if (!plan) return env.out_of_memory();
  step.state = plan;
  const Tensor* inputs[] = {c, a, b};
  return plan_broadcast(env, *y, inputs, 3, plan);
}

template <class T>
void where_pieces(const Step& step, int thread, int threads) {
  const Broadcast& plan = *static_cast<const Broadcast*>(step.state);
  const int last = plan.rank - 1;
  const int64_t sc = plan.stride[1][last], sa = plan.stride[2][last], sb = plan.stride[3][last];
  BroadcastWalk walk;
  for (start_walk(plan, thread, threads, &walk); next_piece(&walk);) {
    const uint8_t* c = step.inputs[0]->data + walk.at[1];
    const T* a = step.inputs[1]->as<T>() + walk.at[2];
    const T* b = step.inputs[2]->as<T>() + walk.at[3];
    T* y = step.outputs[0]->as<T>() + walk.at[0];
    for (int64_t i = 0; i < walk.length; ++i) y[i] = c[i * sc] ? a[i * sa] : b[i * sb];
  }
}

void run_where(const Step& step, int, int thread, int threads, void*) {
  switch (dtype_bytes(step.outputs[0]->dtype)) {
    case 1: return where_pieces<uint8_t>(step, thread, threads);
    case 2: return where_pieces<uint16_t>(step, thread, threads);
    case 4: return where_pieces<uint32_t>(step, thread, threads);
    default: return where_pieces<uint64_t>(step, thread, threads);
  }
}

const Kernel kAny[] = {
    {"Add Sum Sub Mul Div Mod Pow Min Max SquaredDifference PRelu And Or Xor BitwiseAnd BitwiseOr "
     "BitwiseXor BitShift Equal NotEqual Greater GreaterOrEqual Less LessOrEqual",
     "any_binary", prepare_binary, run_binary, kAcceptsPitch},
    {"Cast CastLike", "cast", prepare_unary, run_unary, 0},
    {"Not BitwiseNot Neg Abs Sign Square IsNaN IsInf", "any_unary", prepare_unary, run_unary, 0},
    {"Where", "any_where", prepare_where, run_where, kAcceptsPitch},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(any, kAny)
