// TurnPairs: y = x cos + t sin, where t has (-b, a) of each pair (a, b) of a row of x, whose numbers are neighbors
// (interleaved) or lie half a row apart. Angles repeat along whole axes of x.
#include "lite_kernel.h"

namespace lite {

namespace {

struct State {
  int64_t rows, size;
  int lead;                                  // axes of the rows
  int64_t dims[kMaxRank], steps[kMaxRank];   // of those; elements of the angles from one to the next, 0: they repeat
  bool interleaved;
};

// Angles of t over the rows of x, whose last axis they share.
bool read_steps(const Tensor& x, const Tensor& t, State* s) {
  const int missing = x.rank - t.rank;
  if (missing < 0 || t.rank < 1 || t.dims[t.rank - 1] != s->size) return false;
  int64_t step = s->size;
  for (int d = s->lead - 1; d >= 0; --d) {
    const int64_t have = d < missing ? 1 : t.dims[d - missing];
    if (have != 1 && have != x.dims[d]) return false;
    s->dims[d] = x.dims[d];
    s->steps[d] = have == 1 ? 0 : step;
    step *= have;
  }
  return true;
}

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *cos = input_of(step, 1), *sin = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!x || !cos || !sin || !y) return env.fail("needs numbers, cosines, sines and an output");
  const Tensor* const all[] = {x, cos, sin, y};
  for (const Tensor* t : all)
    if (t->dtype != DType::kF32) return env.fail("needs float32");
  if (x->rank < 1 || x->rank != y->rank || cos->rank != sin->rank)
    return env.fail("the ranks of its inputs and output do not fit each other");
  for (int d = 0; d < x->rank; ++d)
    if (x->dims[d] != y->dims[d]) return env.fail("input and output differ in shape");
  for (int d = 0; d < cos->rank; ++d)
    if (cos->dims[d] != sin->dims[d]) return env.fail("cosines and sines differ in shape");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  *s = {row_count(*x), last_dim(*x), x->rank - 1, {}, {}, attr_int(step, "interleaved", 0) != 0};
  if (s->size % 2 || !read_steps(*x, *cos, s))
    return env.fail("the angles do not repeat along whole rows of pairs");
  return true;
}

void turn(const float* x, const float* c, const float* s, float* y, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    y[i] = a * c[i] - b * s[i];
    y[half + i] = b * c[half + i] + a * s[half + i];
  }
}

void turn_neighbors(const float* x, const float* c, const float* s, float* y, int64_t size) {
  for (int64_t i = 0; i < size; i += 2) {
    const float a = x[i], b = x[i + 1];
    y[i] = a * c[i] - b * s[i];
    y[i + 1] = b * c[i + 1] + a * s[i + 1];
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  int64_t begin, end;
  share(s.rows, 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row, at = 0;
    for (int d = s.lead - 1; d >= 0; --d) {
      at += rest % s.dims[d] * s.steps[d];
      rest /= s.dims[d];
    }
    const float* x = step.inputs[0]->as<float>() + row * s.size;
    const float *cos = step.inputs[1]->as<float>() + at, *sin = step.inputs[2]->as<float>() + at;
    float* y = step.outputs[0]->as<float>() + row * s.size;
    if (s.interleaved) turn_neighbors(x, cos, sin, y, s.size);
    else turn(x, cos, sin, y, s.size / 2);
  }
}

const Kernel kRotary[] = {
    {"TurnPairs", "f32_turn_pairs", prepare, run, kDivisible},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(rotary, kRotary)
