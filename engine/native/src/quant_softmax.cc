// i8_softmax: QLinearSoftmax. Differences to the maximum are whole numbers d of 0 ... 255, so
//
//   e[d] = round(2^30 exp(-d x_scale));   y = clamp(round((e[d] / sum of e) / y_scale) + zero_point)
//
// is exact: the sum is one of integers, the rest is done in double.
#include <math.h>

#include "quant_scalars.h"

namespace lite {

namespace {

struct State {
  int64_t outer, axis, inner;  // element (o, a, i) at (o * axis + a) * inner + i
  QuantScalars y;
  int64_t e[256];
};

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || (x->dtype != DType::kI8 && x->dtype != DType::kU8) || y->dtype != x->dtype ||
      !same_dims(*x, *y))
    return env.fail("needs an 8-bit input and an output of its type and shape");
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return env.fail("axis is outside rank %d", x->rank);
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->outer = s->inner = 1;
  s->axis = x->dims[axis];
  for (int i = 0; i < x->rank; ++i)
    if (i != axis) (i < axis ? s->outer : s->inner) *= x->dims[i];
  QuantScalars in;
  if (!read_scalars(step, env, 1, x->dtype, &in) || !read_scalars(step, env, 3, x->dtype, &s->y))
    return false;
  for (int d = 0; d < 256; ++d)
    s->e[d] = static_cast<int64_t>(rint(exp(-d * static_cast<double>(in.scale)) * (1 << 30)));
  return true;
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const DType type = step.inputs[0]->dtype;
  const uint8_t flip = type == DType::kI8 ? 0x80 : 0;
  int64_t begin, end;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t series = begin; series < end; ++series) {
    const int64_t start = series / s.inner * s.axis * s.inner + series % s.inner;
    const uint8_t* x = step.inputs[0]->data + start;
    uint8_t* y = step.outputs[0]->data + start;
    int highest = 0;
    for (int64_t i = 0; i < s.axis; ++i) {
      const int v = x[i * s.inner] ^ flip;
      highest = v > highest ? v : highest;
    }
    int64_t total = 0;
    for (int64_t i = 0; i < s.axis; ++i) total += s.e[highest - (x[i * s.inner] ^ flip)];
    const double whole = static_cast<double>(total);
    for (int64_t i = 0; i < s.axis; ++i) {
      const double e = static_cast<double>(s.e[highest - (x[i * s.inner] ^ flip)]);
      y[i * s.inner] = static_cast<uint8_t>(quantise_exactly(e / whole, s.y, type));
    }
  }
}

const Kernel kSoftmax[] = {{"QLinearSoftmax", "i8_softmax", prepare, run, kInPlace}};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(quant_softmax, kSoftmax)
