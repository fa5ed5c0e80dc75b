// DynamicQuantizeConv and DynamicQuantizeGemm: float activations become bytes as they run, with a scale
// and a zero point for each image or each pixel (row of a matrix), and the sums of their products with
// constant bytes become floats.
//
// ties = "even", XNNPACK's rule: scale = 255 / (highest - lowest), quotients rounded half to even,
//   y = fma(float(sum) * x_scale, w_scale, bias)
// ties = "away", that of LiteRT's own kernels: scale = (highest - lowest) / 255, halves away from 0,
//   y = float(sum) * w_scale * x_scale + bias    of whole fours of channels,
//   y = float(sum) * x_scale * w_scale + bias    of those behind them, each operation rounded.
// symmetric: scale = the highest magnitude / 127, the zero point 0.
#include <math.h>

#include "int8_gemm.h"

namespace lite::LITE_ISA {
namespace {

constexpr int32_t kLow = -128, kHigh = 127;
// From a byte to the number that the products read; where those take 16 bits the zero point is subtracted.
constexpr int32_t kOffset = kDotSigned ? 0 : 128;

struct State {
  IntGemm gemm;
  bool away, symmetric;
  bool by_pixel;
  int64_t units;            // images or pixels
  RealSums real;            // without what lies in Step::shared
  size_t scales, zeros, ranges;  // bytes from Step::shared
};

struct Range {
  float low, high;
};

struct Rule {
  float factor;             // integers of one
  float scale;              // one over it
  int32_t zero;
};

// What lies in Step::shared behind the operands.
struct Shared {
  float* scales;
  int32_t* zeros;
  Range* ranges;            // [thread][unit], of units that threads share
};

Shared shared_of(const State& s, const Step& step) {
  uint8_t* base = static_cast<uint8_t*>(step.shared);
  return {reinterpret_cast<float*>(base + s.scales), reinterpret_cast<int32_t*>(base + s.zeros),
          reinterpret_cast<Range*>(base + s.ranges)};
}

// A matrix is a row of pixels.
bool read_matrix(const Step& step, Env& env, ConvShape* s) {
  const Tensor *a = input_of(step, 0), *w = input_of(step, 1), *y = output_of(step, 0);
  if (!a || !w || !y || a->rank < 1 || a->rank != y->rank || w->rank != 2 || !is_dense(*a) ||
      !is_dense(*y))
    return env.fail("takes dense tensors and a matrix of weights");
  const int64_t rows = row_count(*a), k = last_dim(*a), n = w->dims[0];
  if (w->dims[1] != k || last_dim(*y) != n || row_count(*y) != rows)
    return env.fail("dims of a, w and y do not agree");
  *s = ConvShape{};
  s->in = {1, 1, rows, k, rows * k, rows * k, k, 0, {0, 0, 0, 0}};
  s->out = {1, 1, rows, n, rows * n, rows * n, n, 0, {0, 0, 0, 0}};
  s->groups = 1, s->group_in = k, s->group_out = n;
  for (int i = 0; i < 2; ++i) s->kernel[i] = s->stride[i] = s->dilation[i] = 1;
  return true;
}

bool check_operands(const Step& step, Env& env, int64_t channels) {
  const Tensor *w = input_of(step, 1), *scale = input_of(step, 2), *b = input_of(step, 3);
  if (!scale || !is_weight(*w) || !is_weight(*scale) || (b && !is_weight(*b)))
    return env.fail("w, w_scale and b must be constant");
  if (input_of(step, 0)->dtype != DType::kF32 || output_of(step, 0)->dtype != DType::kF32 ||
      w->dtype != DType::kI8 || !is_dense(*w))
    return env.fail("takes f32 and weights of i8");
  if (scale->dtype != DType::kF32 || !is_dense(*scale) ||
      (scale->size != 1 && scale->size != channels))
    return env.fail("w_scale must be f32, one value or one per channel");
  if (b && (b->dtype != DType::kF32 || !is_dense(*b) || b->size != channels))
    return env.fail("b must be f32, one value per channel");
  return true;
}

bool pack_real(const Step& step, Env& env, const ConvShape& shape, State* s) {
  const IntGemm& g = s->gemm;
  const int64_t panel_columns = g.panels * kTileColumns, columns = g.groups * panel_columns;
  const Tensor* b = input_of(step, 3);
  float* bias = static_cast<float*>(env.allocate(static_cast<size_t>(columns + 1) * sizeof(float)));
  int32_t* none = static_cast<int32_t*>(env.allocate(kTileColumns * sizeof(int32_t)));
  if (!bias || !none) return env.out_of_memory();
  for (int64_t c = 0; b && c < g.groups * g.out_c; ++c)
    bias[c / g.out_c * panel_columns + c % g.out_c] = b->as<float>()[c];
  s->real.bias = bias;
  s->real.none = none;
  s->real.away = s->away;
  s->real.fours = s->away ? shape.groups * shape.group_out / 4 * 4 : 0;
  return true;
}

bool prepare(Step& step, Env& env) {
  const bool conv = strcmp(step.op, "DynamicQuantizeConv") == 0;
  const Tensor *w = input_of(step, 1), *b = input_of(step, 3);
  ConvShape shape;
  const ConvOperands operands{input_of(step, 0), w, b, nullptr, output_of(step, 0)};
  if (!(conv ? read_conv_shape(step, env, operands, false, &shape)
             : read_matrix(step, env, &shape)))
    return false;
  const int64_t channels = shape.groups * shape.group_out;
  if (!check_operands(step, env, channels)) return false;
  const char* ties = attr_string(step, "ties", "even");
  const char* rows = attr_string(step, "scale_per", conv ? "image" : "pixel");
  const bool by_pixel = strcmp(rows, "pixel") == 0;
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->away = strcmp(ties, "away") == 0;
  s->symmetric = attr_int(step, "symmetric", 0) != 0;
  if (!s->away && strcmp(ties, "even") != 0) return env.fail("ties %s is not known", ties);
  if (!by_pixel && strcmp(rows, "image") != 0) return env.fail("scale_per %s is not known", rows);
  const bool pointwise = shape.kernel[0] * shape.kernel[1] == 1 && shape.stride[0] == 1 &&
                         shape.stride[1] == 1 && shape.in.h == shape.out.h &&
                         shape.in.w == shape.out.w;
  if (by_pixel && !pointwise) return env.fail("a scale per pixel needs a 1x1 kernel");
  const int64_t taps = shape.kernel[0] * shape.kernel[1], depth = taps * shape.group_in;
  if (depth > INT32_MAX / (255 * 128)) return env.fail("sums of that many products may not fit");

  QuantParams quant{};
  quant.x_signed = kDotSigned;
  // A zero point of -1 makes sums of weights of what would be biases: the zero points of a run times
  // those are subtracted from its sums.
  quant.x_zero = -1;
  quant.residual.input = -1;
  quant.scale = static_cast<float*>(env.allocate(static_cast<size_t>(channels + 1) * sizeof(float)));
  if (!quant.scale) return env.out_of_memory();
  const Tensor* scale = input_of(step, 2);
  for (int64_t c = 0; c < channels; ++c)
    quant.scale[c] = scale->as<float>()[scale->size == 1 ? 0 : c];
  const IntWeightView weights{w, shape.group_out * depth, depth, taps, conv ? shape.kernel[1] : 0, conv ? 1 : 0};
  if (!prepare_int_gemm(shape, weights, nullptr, quant, false, false, step, env, &s->gemm, true) ||
      !pack_real(step, env, shape, s))
    return false;

  s->units = shape.in.images * (by_pixel ? shape.in.h * shape.in.w : 1);
  s->by_pixel = by_pixel;
  s->real.unit = by_pixel ? shape.out.pixel : shape.out.image;
  s->real.origin = shape.out.origin;
  if (by_pixel && shape.out.h > 1 && shape.out.row != shape.out.w * shape.out.pixel)
    return env.fail("takes a dense output");
  if (by_pixel && shape.out.images > 1 && shape.out.image != shape.out.h * shape.out.row)
    return env.fail("takes a dense output");
  const size_t units = static_cast<size_t>(s->units);
  const size_t shared = by_pixel ? 0 : units * static_cast<size_t>(env.threads);
  s->scales = (step.shared_bytes + kAlign - 1) / kAlign * kAlign;
  s->zeros = s->scales + units * sizeof(float);
  s->ranges = s->zeros + units * sizeof(int32_t);
  step.shared_bytes = s->ranges + shared * sizeof(Range) + kAlign;
  step.phases = by_pixel ? 2 : 3;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

void widen_range(const float* x, int64_t n, Range* r) {
  F low = splat(r->low), high = splat(r->high);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F v = load(x + i);
    low = min(low, v), high = max(high, v);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    r->low = low[lane] < r->low ? low[lane] : r->low;
    r->high = high[lane] > r->high ? high[lane] : r->high;
  }
  for (; i < n; ++i) {
    r->low = x[i] < r->low ? x[i] : r->low;
    r->high = x[i] > r->high ? x[i] : r->high;
  }
}

// A float that no later operation is joined with.
float alone(float v) { return rounded(splat(v))[0]; }

Rule rule_of(const State& s, Range r) {
  const bool away = s.away;
  if (s.symmetric) {
    const float widest = -r.low > r.high ? -r.low : r.high;
    return widest == 0 ? Rule{1, 1, 0} : Rule{127.0f / widest, widest / 127.0f, 0};
  }
  if (r.low == r.high) return {1, 1, away ? 0 : kHigh};
  const float width = alone(r.high - r.low);
  const float scale = width / 255.0f, factor = away ? 1.0f / scale : 255.0f / width;
  const float low = away ? r.low / scale : r.low * factor;
  const float high = away ? r.high / scale : r.high * factor;
  const float from_low = alone(kLow - alone(low)), from_high = alone(kHigh - alone(high));
  const float errors = alone(kLow + alone(low)) + alone(kHigh + alone(high));
  float zero = errors > 0 ? from_low : from_high;
  zero = zero > kLow ? (zero < kHigh ? zero : kHigh) : kLow;
  const int32_t whole = static_cast<int32_t>(away ? roundf(zero) : rintf(zero));
  return {factor, away ? scale : 1.0f / factor, whole};
}

// n numbers of one unit as operands.
void quantize(const float* x, int64_t n, const Rule& rule, bool away, Operand* to) {
  typedef Operand Operands __attribute__((vector_size(kLanes * sizeof(Operand))));
  const I low = splat(kLow - rule.zero), high = splat(kHigh - rule.zero);
  const I shift = splat(kBytes ? rule.zero + kOffset : 0);
  const F factor = splat(rule.factor);
  const auto operands = [&](F v) __attribute__((always_inline)) {
    const F q = rounded(v * factor);
    I whole = away ? __builtin_convertvector(q + (q < 0 ? splat(-0.5f) : splat(0.5f)), I) : to_int(q);
    whole = whole < low ? low : whole;
    whole = whole > high ? high : whole;
    return __builtin_convertvector(whole + shift, Operands);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Operands v = operands(load(x + i));
    memcpy(to + i, &v, sizeof v);
  }
  if (i < n) {
    const Operands v = operands(load_part(x + i, static_cast<int>(n - i)));
    memcpy(to + i, &v, static_cast<size_t>(n - i) * sizeof(Operand));
  }
}

// Each thread's ranges of the images' lines that are its own.
void find_ranges(const State& s, const Step& step, int thread, int threads) {
  const PixelView& v = s.gemm.input;
  const float* x = step.inputs[0]->as<float>() + v.origin;
  Range* mine = shared_of(s, step).ranges + thread * s.units;
  for (int64_t u = 0; u < s.units; ++u) mine[u] = {0, 0};
  int64_t begin, end;
  share(v.images * v.h, 1, thread, threads, &begin, &end);
  for (int64_t line = begin; line < end; ++line) {
    const float* from = x + line / v.h * v.image + line % v.h * v.row;
    Range* r = &mine[line / v.h];
    if (v.pixel == v.c) widen_range(from, v.w * v.c, r);
    else for (int64_t p = 0; p < v.w; ++p) widen_range(from + p * v.pixel, v.c, r);
  }
}

Rule rule_of_image(const State& s, const Shared& shared, int64_t image, int threads) {
  Range all{0, 0};
  for (int t = 0; t < threads; ++t) {
    const Range r = shared.ranges[t * s.units + image];
    all = {r.low < all.low ? r.low : all.low, r.high > all.high ? r.high : all.high};
  }
  return rule_of(s, all);
}

// The operands as IntGemm wants its copy: [image][row][pixel][group][channels, padded with zeros], with
// a border that holds the zero point.
void copy_quantized(const State& s, const Step& step, int thread, int threads) {
  const IntGemm& g = s.gemm;
  const PixelView& v = g.input;
  const Shared shared = shared_of(s, step);
  const float* x = step.inputs[0]->as<float>() + v.origin;
  const int64_t channels = v.c / g.groups, padded = g.row_channels ? g.row_channels : g.depth_groups * kDepth;
  const int64_t pixel = g.groups * padded, height = v.h + g.border[0] + g.border[2];
  const int64_t width = v.w + g.border[1] + g.border[3];
  const bool dense = channels == padded && v.pixel == v.c;
  int64_t begin, end, image = -1;
  Rule rule{};
  share(v.images * height, 1, thread, threads, &begin, &end);
  for (int64_t line = begin; line < end; ++line) {
    if (!s.by_pixel && line / height != image) {
      image = line / height;
      rule = rule_of_image(s, shared, image, threads);
      if (line % height == 0) shared.scales[image] = rule.scale, shared.zeros[image] = rule.zero + kOffset;
    }
    const Operand outside = static_cast<Operand>(kBytes ? rule.zero + kOffset : 0);
    Operand* to = static_cast<Operand*>(step.shared) + line * width * pixel;
    const auto fill = [&](int64_t pixels) {
      for (int64_t i = 0; i < pixels * g.groups; ++i, to += padded)
        for (int64_t c = 0; c < padded; ++c) to[c] = c < channels ? outside : Operand{0};
    };
    const int64_t y = line % height - g.border[0];
    if (y < 0 || y >= v.h) {
      fill(width);
      continue;
    }
    fill(g.border[1]);
    const float* from = x + line / height * v.image + y * v.row;
    if (dense && !s.by_pixel) {
      quantize(from, v.w * v.c, rule, s.away, to);
      to += v.w * v.c;
      fill(g.border[3]);
      continue;
    }
    for (int64_t p = 0; p < v.w; ++p, from += v.pixel) {
      if (s.by_pixel) {
        Range r{0, 0};
        widen_range(from, v.c, &r);
        rule = rule_of(s, r);
        const int64_t u = line * v.w + p;  // a 1x1 kernel has no border
        shared.scales[u] = rule.scale, shared.zeros[u] = rule.zero + kOffset;
      }
      for (int64_t group = 0; group < g.groups; ++group, to += padded) {
        quantize(from + group * channels, channels, rule, s.away, to);
        for (int64_t c = channels; c < padded; ++c) to[c] = 0;
      }
    }
    fill(g.border[3]);
  }
}

void run(const Step& step, int phase, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const int last = step.phases - 1;
  if (phase < last - 1) return find_ranges(s, step, thread, threads);
  if (phase < last) return copy_quantized(s, step, thread, threads);
  RealSums real = s.real;
  const Shared shared = shared_of(s, step);
  real.x_scale = shared.scales, real.x_zero = shared.zeros;
  run_int_gemm(s.gemm, step, *step.inputs[0], *step.outputs[0], thread, &real);
}

const Kernel kDynamic[] = {
    {"DynamicQuantizeConv", "f32_conv2d_dynamic", prepare, run, kAcceptsPitch | kAcceptsHalo},
    {"DynamicQuantizeGemm", "f32_gemm_dynamic", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(dynamic_quantize, kDynamic)
