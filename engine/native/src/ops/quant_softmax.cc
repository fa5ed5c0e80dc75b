// i8_softmax: QLinearSoftmax. Differences to the maximum are whole numbers d of 0 ... 255, so
//
//   e[d] = round(2^30 exp(-d x_scale));   y = clamp(round((e[d] / sum of e) / y_scale) + zero_point)
//
// is exact: the sum is one of integers, the rest is done in double. A series has at most 256 different
// bytes: they are counted, and each is answered once.
#include <math.h>

#include "byte_table.h"
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

// How often each byte, flipped, occurs in n bytes that are `stride` apart.
void count_bytes(const uint8_t* x, int64_t n, int64_t stride, uint8_t flip, int64_t (&counts)[256]) {
  uint32_t parts[4][256] = {};  // equal neighbours would wait for each other's count
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) ++parts[k][x[(i + k) * stride]];
  for (; i < n; ++i) ++parts[0][x[i * stride]];
  for (int v = 0; v < 256; ++v)
    counts[v ^ flip] = int64_t{parts[0][v]} + parts[1][v] + parts[2][v] + parts[3][v];
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const DType type = step.inputs[0]->dtype;
  const uint8_t flip = type == DType::kI8 ? 0x80 : 0;
  int64_t counts[256];
  uint8_t answer[256];
  int64_t begin, end;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t series = begin; series < end; ++series) {
    const int64_t start = series / s.inner * s.axis * s.inner + series % s.inner;
    const uint8_t* x = step.inputs[0]->data + start;
    uint8_t* y = step.outputs[0]->data + start;
    count_bytes(x, s.axis, s.inner, flip, counts);
    int highest = 255;
    while (highest > 0 && counts[highest] == 0) --highest;
    int64_t total = 0;
    for (int v = 0; v <= highest; ++v) total += counts[v] * s.e[highest - v];
    const double whole = static_cast<double>(total);
    for (int v = 0; v <= highest; ++v)
      if (counts[v])
        answer[v ^ flip] = static_cast<uint8_t>(
            quantise_exactly(static_cast<double>(s.e[highest - v]) / whole, s.y, type));
    if (s.inner == 1) map_rows(answer, x, 0, y, 0, s.axis, 1);
    else
      for (int64_t i = 0; i < s.axis; ++i) y[i * s.inner] = answer[x[i * s.inner]];
  }
}

const Kernel kSoftmax[] = {{"QLinearSoftmax", "i8_softmax", prepare, run, kInPlace}};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(quant_softmax, kSoftmax)
