// Elementwise operators on bytes in LiteRT's fixed point (ops/fixed_point.h), two operands that broadcast:
//
//   QLinearPRelu              a, or a * b where a is below zero, each rescaled by its ratio
//   QLinearSquaredDifference  both with 7 more bits at twice the larger of their scales, subtracted, squared
//
// ops/quant_fixed.py has the same formulas.
#include "ops/broadcast.h"
#include "ops/fixed_point.h"
#include "ops/quant_scalars.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  Broadcast plan;
  int32_t a_zero, b_zero, y_zero, low, high;
  Fraction of_a, of_b, of_y;  // of_b: PRelu's a * b
  bool squares, is_signed;
};

bool prepare(Step& step, Env& env) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 3), *y = output_of(step, 0);
  if (!a || !b || !y || (y->dtype != DType::kI8 && y->dtype != DType::kU8) || a->dtype != y->dtype ||
      b->dtype != y->dtype)
    return env.fail("needs two inputs and an output of one 8-bit type");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  QuantScalars qa, qb, qy;
  if (!read_scalars(step, env, 1, y->dtype, &qa) || !read_scalars(step, env, 4, y->dtype, &qb) ||
      !read_scalars(step, env, 6, y->dtype, &qy))
    return false;
  s->a_zero = qa.zero, s->b_zero = qb.zero, s->y_zero = qy.zero;
  s->is_signed = y->dtype == DType::kI8;
  s->low = s->is_signed ? -128 : 0;
  s->high = s->low + 255;
  s->squares = strcmp(step.op, "QLinearSquaredDifference") == 0;
  if (s->squares) {
    const double common = 2.0 * (qa.scale > qb.scale ? qa.scale : qb.scale);
    s->of_a = fraction_of(qa.scale / common);
    s->of_b = fraction_of(qb.scale / common);
    s->of_y = fraction_of(common * common / (double{1 << 14} * qy.scale));
  } else {
    const float product = qa.scale * qb.scale;
    s->of_a = fraction_of(qa.scale / qy.scale);
    s->of_b = fraction_of(product / qy.scale);
  }
  const Tensor* inputs[] = {a, b};
  return plan_broadcast(env, *y, inputs, 2, &s->plan);
}

template <class Byte, bool kSquares>
void run_rows(const State& s, const Step& step, int thread, int threads) {
  const int last = s.plan.rank - 1;
  const int64_t sa = s.plan.stride[1][last], sb = s.plan.stride[2][last];
  BroadcastWalk walk;
  for (start_walk(s.plan, thread, threads, &walk); next_piece(&walk);) {
    const Byte* a = step.inputs[0]->as<Byte>() + walk.at[1];
    const Byte* b = step.inputs[3]->as<Byte>() + walk.at[2];
    Byte* y = step.outputs[0]->as<Byte>() + walk.at[0];
    for (int64_t i = 0; i < walk.length; ++i) {
      const int32_t x = a[i * sa] - s.a_zero, z = b[i * sb] - s.b_zero;
      int32_t v;
      if (kSquares) {
        const int32_t d = rescale(x * 128, s.of_a) - rescale(z * 128, s.of_b);
        v = rescale(d * d, s.of_y);
      } else {
        v = x < 0 ? rescale(x * z, s.of_b) : rescale(x, s.of_a);
      }
      const int64_t whole = int64_t{v} + s.y_zero;
      y[i] = static_cast<Byte>(whole < s.low ? s.low : whole > s.high ? s.high : whole);
    }
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  static constexpr void (*kRows[2][2])(const State&, const Step&, int, int) = {
      {run_rows<uint8_t, false>, run_rows<int8_t, false>},
      {run_rows<uint8_t, true>, run_rows<int8_t, true>}};
  kRows[s.squares][s.is_signed](s, step, thread, threads);
}

const Kernel kFixed[] = {
    {"QLinearPRelu QLinearSquaredDifference", "i8_fixed", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_fixed, kFixed)
