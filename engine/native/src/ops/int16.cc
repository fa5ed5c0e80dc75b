// LiteRT's operators on activations of 16 bits, whose zero points are 0 (ops/litert16.py has the
// formulas):
//
//   i16_binary   QLinearAdd, QLinearSub with 15 more bits at twice the larger scale, QLinearMul
//   i16_softmax  QLinearSoftmax: exp and 1/(1 + x) from tables of 513, interpolated with 7 bits
//   i16_pool     QLinearAveragePool: sums over their number, ties away from 0; QLinearGlobalAveragePool:
//                the number becomes part of the fraction
#include <math.h>

#include "broadcast.h"
#include "fixed_point.h"
#include "pool_shape.h"
#include "quant_scalars.h"

namespace lite {

namespace {

bool read_scale(const Step& step, Env& env, int at, float* scale) {
  QuantScalars q;
  if (!read_scalars(step, env, at, DType::kI16, &q)) return false;
  *scale = q.scale;
  return q.zero == 0 || env.fail("a zero point must be 0");
}

bool are_int16(const Tensor* a, const Tensor* b, Env& env) {
  return (a && b && a->dtype == DType::kI16 && b->dtype == DType::kI16) ||
         env.fail("needs inputs and an output of i16");
}

// ---- two operands

struct Pair {
  Broadcast plan;
  Fraction of_a, of_b, of_y;  // a product has of_y only
  bool product, minus;
};

bool prepare_pair(Step& step, Env& env) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 3), *y = output_of(step, 0);
  if (!are_int16(a, y, env) || !are_int16(b, y, env)) return false;
  Pair* s = static_cast<Pair*>(env.allocate(sizeof(Pair)));
  if (!s) return env.out_of_memory();
  step.state = s;
  float of_a, of_b, of_y;
  if (!read_scale(step, env, 1, &of_a) || !read_scale(step, env, 4, &of_b) ||
      !read_scale(step, env, 6, &of_y))
    return false;
  s->product = strcmp(step.op, "QLinearMul") == 0;
  s->minus = strcmp(step.op, "QLinearSub") == 0;
  if (s->product) {
    const float product = of_a * of_b;
    s->of_y = fraction_of(static_cast<double>(product / of_y));
  } else {
    const double common = 2.0 * static_cast<double>(of_a > of_b ? of_a : of_b);
    s->of_a = fraction_of(static_cast<double>(of_a) / common);
    s->of_b = fraction_of(static_cast<double>(of_b) / common);
    s->of_y = fraction_of(common / ((1 << 15) * static_cast<double>(of_y)));
  }
  const Tensor* inputs[] = {a, b};
  return plan_broadcast(env, *y, inputs, 2, &s->plan);
}

void run_pair(const Step& step, int, int thread, int threads, void*) {
  const Pair& s = *static_cast<const Pair*>(step.state);
  const int last = s.plan.rank - 1;
  const int64_t sa = s.plan.stride[1][last], sb = s.plan.stride[2][last];
  BroadcastWalk walk;
  for (start_walk(s.plan, thread, threads, &walk); next_piece(&walk);) {
    const int16_t* a = step.inputs[0]->as<int16_t>() + walk.at[1];
    const int16_t* b = step.inputs[3]->as<int16_t>() + walk.at[2];
    int16_t* y = step.outputs[0]->as<int16_t>() + walk.at[0];
    for (int64_t i = 0; i < walk.length; ++i) {
      const int32_t u = a[i * sa], v = b[i * sb];
      int32_t sum = u * v;
      if (!s.product) {
        const int32_t right = rescale(v * (1 << 15), s.of_b);
        sum = rescale(u * (1 << 15), s.of_a) + (s.minus ? -right : right);
      }
      y[i] = to_int16(rescale(sum, s.of_y));
    }
  }
}

// ---- softmax

constexpr int kSteps = 512;

// Values of a function from `low` on, in steps of 1/32768, bent towards the middle of each interval;
// in float32, of functions that are rounded once.
void fill_table(double (*function)(double), float low, float high, int16_t* table) {
  const float step = (high - low) / kSteps;
  const auto at = [&](float x) { return static_cast<float>(function(static_cast<double>(x))) * 32768.0f; };
  for (int i = 0; i < kSteps; ++i) {
    const volatile float here = low + static_cast<float>(i) * step;
    const volatile float next = low + static_cast<float>(i + 1) * step;
    const float first = roundf(at(here)), last = at(next);
    const float between = roundf((last + first) / 2.0f) - roundf(at(here + step / 2.0f));
    table[i] = to_int16(static_cast<int64_t>(first - roundf(between / 2.0f)));
  }
  table[kSteps] = to_int16(static_cast<int64_t>(roundf(at(high))));
}

double reciprocal(double x) { return 1.0 / (1.0 + x); }

int32_t look_up(const int16_t* table, int32_t x) {
  x = x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x;
  const int32_t index = 256 + (x >> 7), base = table[index];
  return base + (((table[index + 1] - base) * (x & 127) + 64) >> 7);
}

struct Softmax {
  int64_t outer, axis, inner;  // element (o, a, i) at (o * axis + a) * inner + i
  Fraction of_x;
  int16_t exp[kSteps + 1], inverse[kSteps + 1];
};

bool prepare_softmax(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!are_int16(x, y, env)) return false;
  if (!same_dims(*x, *y)) return env.fail("the output has another shape");
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return env.fail("axis is outside rank %d", x->rank);
  Softmax* s = static_cast<Softmax*>(env.allocate(sizeof(Softmax)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->outer = s->inner = 1;
  s->axis = x->dims[axis];
  if (s->axis > 1 << 16) return env.fail("sums of that many numbers may not fit");
  for (int i = 0; i < x->rank; ++i)
    if (i != axis) (i < axis ? s->outer : s->inner) *= x->dims[i];
  float scale;
  if (!read_scale(step, env, 1, &scale)) return false;
  s->of_x = fraction_of(static_cast<double>(scale) / (10.0 / 65535.0));
  fill_table(exp, -10.0f, 0.0f, s->exp);
  fill_table(reciprocal, 0.0f, 1.0f, s->inverse);
  return true;
}

void run_softmax(const Step& step, int, int thread, int threads, void*) {
  const Softmax& s = *static_cast<const Softmax*>(step.state);
  int64_t begin, end;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t series = begin; series < end; ++series) {
    const int64_t start = series / s.inner * s.axis * s.inner + series % s.inner;
    const int16_t* x = step.inputs[0]->as<int16_t>() + start;
    int16_t* y = step.outputs[0]->as<int16_t>() + start;
    int32_t most = INT16_MIN, total = 0;
    for (int64_t i = 0; i < s.axis; ++i) most = x[i * s.inner] > most ? x[i * s.inner] : most;
    for (int64_t i = 0; i < s.axis; ++i) {
      const int32_t e = look_up(s.exp, rescale(x[i * s.inner] - most, s.of_x) + 32767);
      y[i * s.inner] = static_cast<int16_t>(e);
      total += e;
    }
    const int headroom = __builtin_clz(static_cast<uint32_t>(total | 1)) - 1;
    const int64_t part = ((int64_t{total} << headroom) + (1 << 13)) >> 14;
    const int64_t inverse = look_up(s.inverse, static_cast<int32_t>(part - (1 << 15) - (1 << 16)));
    for (int64_t i = 0; i < s.axis; ++i) {
      const int64_t v = shifted(y[i * s.inner] * inverse, 30 - headroom);
      y[i * s.inner] = to_int16(v < 0 ? 0 : v);
    }
  }
}

// ---- averages

struct Pool {
  PoolShape shape;
  bool whole;
  Fraction ratio;
};

bool prepare_average(Step& step, Env& env) {
  if (!are_int16(input_of(step, 0), output_of(step, 0), env)) return false;
  Pool* s = static_cast<Pool*>(env.allocate(sizeof(Pool)));
  if (!s) return env.out_of_memory();
  step.state = s;
  float of_x, of_y;
  if (!read_pool(step, env, &s->shape) || !read_scale(step, env, 1, &of_x) ||
      !read_scale(step, env, 3, &of_y))
    return false;
  s->whole = strcmp(step.op, "QLinearGlobalAveragePool") == 0;
  const int64_t count = s->shape.h * s->shape.w;
  if (!s->whole && of_x != of_y) return env.fail("x and y must have one scale");
  if (s->shape.kernel[0] * s->shape.kernel[1] >= 1 << 16 || count >= 1 << 16 || count < 1)
    return env.fail("sums of that many numbers may not fit");
  const Fraction f = fraction_of(static_cast<double>(of_x) / static_cast<double>(of_y));
  int shift = 31 - __builtin_clz(static_cast<uint32_t>(count));
  if (shift > 31 + f.exponent) shift = 31 + f.exponent;
  s->ratio = {static_cast<int32_t>((int64_t{f.whole} << shift) / count), f.exponent - shift};
  if (s->ratio.exponent < -31) s->ratio = {0, 0};
  return true;
}

void run_average(const Step& step, int, int thread, int threads, void*) {
  const Pool& s = *static_cast<const Pool*>(step.state);
  const PoolShape& p = s.shape;
  const int64_t down = p.dilation[0] * p.in_row, right = p.dilation[1] * p.in_pixel;
  for_each_window(p, 1, thread, threads, [&](const PoolWindow& w, int64_t c0, int64_t c1) {
    const int16_t* x = step.inputs[0]->as<int16_t>() + w.from;
    int16_t* y = step.outputs[0]->as<int16_t>() + w.to;
    const int32_t cells = static_cast<int32_t>(w.cells > 0 ? w.cells : 1);
    for (int64_t c = c0; c < c1; ++c) {
      int32_t sum = 0;
      for (int64_t ky = w.ky0; ky < w.ky1; ++ky)
        for (int64_t kx = w.kx0; kx < w.kx1; ++kx) sum += x[ky * down + kx * right + c];
      if (s.whole) y[c] = to_int16(rescale(sum, s.ratio));
      else y[c] = static_cast<int16_t>((int64_t{sum} + (sum > 0 ? cells / 2 : -(cells / 2))) / cells);
    }
  });
}

const Kernel kInt16[] = {
    {"QLinearAdd QLinearSub QLinearMul", "i16_binary", prepare_pair, run_pair, kAcceptsPitch},
    {"QLinearSoftmax", "i16_softmax", prepare_softmax, run_softmax, 0},
    {"QLinearAveragePool QLinearGlobalAveragePool", "i16_pool", prepare_average, run_average,
     kAcceptsPitch | kAcceptsHalo},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(int16, kInt16)
