// f32_softmax: Softmax and LogSoftmax along any axis. Along the last axis a row is reduced across
// its lanes; along another one each lane is a series of its own, or a part of one where few series
// lie side by side.
#include "transcendental.h"

#include "lite_kernel.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  int64_t outer, axis, inner;  // element (o, a, i) at (o * axis + a) * inner + i
  bool log;
};

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  if (!x || !y || x->dtype != DType::kF32 || y->dtype != DType::kF32 || !same_dims(*x, *y))
    return env.fail("needs one f32 input and an f32 output of its shape");
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return env.fail("axis is outside rank %d", x->rank);
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  *state = {1, x->dims[axis], 1, strcmp(step.op, "LogSoftmax") == 0};
  for (int i = 0; i < axis; ++i) state->outer *= x->dims[i];
  for (int i = static_cast<int>(axis) + 1; i < x->rank; ++i) state->inner *= x->dims[i];
  return true;
}

void softmax_row(const float* x, float* y, int64_t n, bool take_log) {
  const int rest = static_cast<int>(n % kLanes);
  const int64_t whole = n - rest;
  constexpr int kChains = 4;  // a single maximum waits for the one before
  F tops[kChains];
  for (F& top : tops) top = splat(-__builtin_inff());
  int64_t at = 0;
  for (; at + kChains * kLanes <= whole; at += kChains * kLanes)
    LITE_UNROLL for (int j = 0; j < kChains; j++) tops[j] = max(tops[j], load(x + at + j * kLanes));
  for (; at < whole; at += kLanes) tops[0] = max(tops[0], load(x + at));
  float highest_x = highest(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
  for (int64_t i = whole; i < n; ++i) highest_x = x[i] > highest_x ? x[i] : highest_x;
  // A row of -inf only: subtracting it would give NaN everywhere, as the definition says.
  const F peak = splat(highest_x);
  F total = splat(0.0f);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const F e = exp(load(x + i) - peak);
    total += e;
    if (!take_log) store(y + i, e);
  }
  float sum_e = sum(total);
  if (rest) {
    const F e = exp(load_part(x + whole, rest) - peak);
    for (int i = 0; i < rest; ++i) sum_e += e[i];
    if (!take_log) store_part(y + whole, e, rest);
  }
  if (take_log) {
    const F shift = peak + log(splat(sum_e));
    for (int64_t i = 0; i < whole; i += kLanes) store(y + i, load(x + i) - shift);
    if (rest) store_part(y + whole, load_part(x + whole, rest) - shift, rest);
    return;
  }
  const F scale = splat(1.0f) / splat(sum_e);
  for (int64_t i = 0; i < whole; i += kLanes) store(y + i, load(y + i) * scale);
  if (rest) store_part(y + whole, load_part(y + whole, rest) * scale, rest);
}

// kLanes neighbouring series of stride `inner` (the first `lanes` of them).
void softmax_columns(const float* x, float* y, int64_t n, int64_t inner, int lanes, bool take_log) {
  F peak = load_part(x, lanes);
  for (int64_t i = 1; i < n; ++i) peak = max(peak, load_part(x + i * inner, lanes));
  F total = splat(0.0f);
  for (int64_t i = 0; i < n; ++i) {
    const F e = exp(load_part(x + i * inner, lanes) - peak);
    total += e;
    if (!take_log) store_part(y + i * inner, e, lanes);
  }
  const F scale = splat(1.0f) / total, shift = peak + log(total);
  for (int64_t i = 0; i < n; ++i) {
    const F v = take_log ? load_part(x + i * inner, lanes) - shift
                         : load_part(y + i * inner, lanes) * scale;
    store_part(y + i * inner, v, lanes);
  }
}

// Lanes `inner` apart belong to one series: each gets what `combine` makes of all of them.
template <class Combine>
F of_series(F v, int64_t inner, Combine combine) {
  float lanes[kLanes];
  store(lanes, v);
  for (int64_t i = inner; i < kLanes; ++i) lanes[i % inner] = combine(lanes[i % inner], lanes[i]);
  for (int64_t i = inner; i < kLanes; ++i) lanes[i] = lanes[i - inner];
  return load(lanes);
}

// `inner` neighbouring series of n, whose number divides kLanes: n * inner numbers without a gap.
void softmax_series(const float* x, float* y, int64_t n, int64_t inner, bool take_log) {
  const int64_t whole = n * inner / kLanes * kLanes;
  const int rest = static_cast<int>(n * inner - whole);
  float last[kLanes];
  for (int i = 0; i < kLanes; ++i) last[i] = i < rest ? x[whole + i] : -__builtin_inff();
  F peak = load(last);
  for (int64_t i = 0; i < whole; i += kLanes) peak = max(peak, load(x + i));
  peak = of_series(peak, inner, [](float a, float b) { return a > b ? a : b; });
  F total = splat(0.0f);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const F e = exp(load(x + i) - peak);
    total += e;
    if (!take_log) store(y + i, e);
  }
  F of_last{};
  if (rest) {
    of_last = exp(load(last) - peak);
    for (int i = rest; i < kLanes; ++i) of_last[i] = 0;
    total += of_last;
  }
  total = of_series(total, inner, [](float a, float b) { return a + b; });
  const F scale = splat(1.0f) / total, shift = peak + log(total);
  for (int64_t i = 0; i < whole; i += kLanes)
    store(y + i, take_log ? load(x + i) - shift : load(y + i) * scale);
  if (rest) store_part(y + whole, take_log ? load(last) - shift : of_last * scale, rest);
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const float* x = step.inputs[0]->as<float>();
  float* y = step.outputs[0]->as<float>();
  int64_t begin, end;
  if (s.axis == 0) return;
  if (s.inner == 1) {
    share(s.outer, 1, thread, threads, &begin, &end);
    for (int64_t o = begin; o < end; ++o)
      softmax_row(x + o * s.axis, y + o * s.axis, s.axis, s.log);
    return;
  }
  if (s.inner < kLanes && kLanes % s.inner == 0) {
    share(s.outer, 1, thread, threads, &begin, &end);
    for (int64_t o = begin * s.axis * s.inner; o < end * s.axis * s.inner; o += s.axis * s.inner)
      softmax_series(x + o, y + o, s.axis, s.inner, s.log);
    return;
  }
  const int64_t groups = (s.inner + kLanes - 1) / kLanes;
  share(s.outer * groups, 1, thread, threads, &begin, &end);
  for (int64_t g = begin; g < end; ++g) {
    const int64_t column = g % groups * kLanes;
    const int64_t left = s.inner - column;
    const int64_t at = g / groups * s.axis * s.inner + column;
    softmax_columns(x + at, y + at, s.axis, s.inner,
                    static_cast<int>(left < kLanes ? left : kLanes), s.log);
  }
}

const Kernel kSoftmax[] = {{"Softmax LogSoftmax", "f32_softmax", prepare, run, kInPlace | kDivisible}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(softmax, kSoftmax)
