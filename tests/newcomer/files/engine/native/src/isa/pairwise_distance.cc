// PairwiseDistance: y = sqrt(sum((a - b + eps)^2)) over the innermost axis.
#include "vec.h"

#include "lite_kernel.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  float eps;
};

bool prepare(Step& step, Env& env) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 1);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !y || a->dtype != DType::kF32 || b->dtype != DType::kF32 ||
      y->dtype != DType::kF32 || a->rank < 1 || !same_dims(*a, *b) || y->size != row_count(*a))
    return env.fail("needs two f32 inputs of one shape and an f32 output with one value per row");
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  state->eps = static_cast<float>(attr_float(step, "eps", 1e-6));
  step.state = state;
  return true;
}

float distance(const float* a, const float* b, int64_t n, float eps) {
  F total = splat(0.0f);
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) {
    const F d = load(a + i) - load(b + i) + splat(eps);
    total = fma(d, d, total);
  }
  float s = sum(total);
  for (int64_t i = n - n % kLanes; i < n; ++i) s += (a[i] - b[i] + eps) * (a[i] - b[i] + eps);
  return __builtin_sqrtf(s);
}

void run(const Step& step, int, int thread, int threads, void*) {
  const Tensor &a = *step.inputs[0], &b = *step.inputs[1], &y = *step.outputs[0];
  const float eps = static_cast<const State*>(step.state)->eps;
  int64_t begin, end;
  share(row_count(a), 1, thread, threads, &begin, &end);
  const int64_t n = last_dim(a);
  for (int64_t row = begin; row < end; ++row)
    y.as<float>()[row] = distance(a.as<float>() + row * n, b.as<float>() + row * n, n, eps);
}

const Kernel kPairwiseDistance[] = {{"PairwiseDistance", "f32_pairwise_distance", prepare, run, 0}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(pairwise_distance, kPairwiseDistance)
