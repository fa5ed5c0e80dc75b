// i16_conv: QLinearConv, QLinearConvTranspose, QLinearMatMul and QGemm with activations of 16 bits and
// weights of 8, as LiteRT computes them. Products are summed in int32 as long as they surely fit, those
// sums in int64; ops/fixed_point.h brings them to the scale of the result. Zero points are 0.
#include "ops/fixed_point.h"
#include "ops/int8_shape.h"

namespace lite::LITE_ISA {

namespace {

constexpr int kBlock = 32;      // output channels of one walk over the taps
constexpr int kProducts = 511;  // of 15 and 7 bits, whose sum fits int32

// One ordinary convolution: a transposed one has one for each remainder of the stride.
struct Part {
  ConvShape shape;
  int16_t* weights;  // [group, block][ky, kx][c][kBlock]
};

struct State {
  Part* parts;
  int64_t count, out_c;
  int64_t blocks;   // of a group's output channels, or of all where each has its own input channel
  bool depthwise;
  int64_t (*rescale)(int64_t, Fraction);
  const int32_t* bias;
  Fraction* ratios;  // per output channel
};

int64_t wide(int64_t x, Fraction f) { return rescale_wide(x, f); }
int64_t once(int64_t x, Fraction f) { return rescale_once(x, f); }
int64_t up(int64_t x, Fraction f) { return rescale_up(x, f); }

bool read_ratios(const Step& step, Env& env, const IntShape& s, State* state) {
  const bool conv = s.x_name[0] == 'x';
  int counts[3];
  const double* x = attr_floats(step, conv ? "x_scale" : "a_scale", &counts[0]);
  const double* w = attr_floats(step, conv ? "w_scale" : "b_scale", &counts[1]);
  const double* y = attr_floats(step, "y_scale", &counts[2]);
  if (counts[0] != 1 || counts[2] != 1 || (counts[1] != 1 && counts[1] != state->out_c))
    return env.fail("takes one scale of x and y, and one of w or one per channel");
  state->ratios = static_cast<Fraction*>(
      env.allocate(static_cast<size_t>(state->out_c + 1) * sizeof(Fraction)));
  if (!state->ratios) return env.out_of_memory();
  state->rescale = conv ? wide : s.b ? once : up;
  for (int64_t c = 0; c < state->out_c; ++c) {
    const double own = w[counts[1] == 1 ? 0 : c];
    const bool single = !conv && !s.b && counts[1] == 1;  // in float32
    const double product = single ? static_cast<double>(static_cast<float>(*x * own)) : *x * own;
    const double ratio = product / *y;
    if (!(ratio >= 0) || !(ratio < 256)) return env.fail("the scales hold a bad number");
    state->ratios[c] = fraction_of(ratio);
  }
  return true;
}

bool pack(Env& env, const State& state, const IntWeightView& v, Part* part) {
  const ConvShape& s = part->shape;
  const int64_t taps = s.kernel[0] * s.kernel[1], depth = state.depthwise ? 1 : s.group_in;
  const int64_t groups = state.depthwise ? 1 : s.groups;
  size_t bytes;
  if (!mul_size(static_cast<size_t>(groups * state.blocks), static_cast<size_t>(taps * depth), &bytes) ||
      !mul_size(bytes, kBlock * sizeof(int16_t), &bytes))
    return env.fail("weights too large");
  part->weights = static_cast<int16_t*>(env.allocate(bytes + sizeof(int16_t)));
  if (!part->weights) return env.out_of_memory();
  const int8_t* from = v.tensor->as<int8_t>();
  int16_t* to = part->weights;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t b = 0; b < state.blocks; ++b)
      for (int64_t ky = 0; ky < s.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < s.kernel[1]; ++kx)
          for (int64_t c = 0; c < depth; ++c, to += kBlock)
            for (int64_t j = 0; j < kBlock; ++j) {
              const int64_t o = b * kBlock + j;
              if (o >= (state.depthwise ? state.out_c : s.group_out)) break;
              to[j] = from[v.origin + (state.depthwise ? o * v.group : g * v.group + o * v.out) +
                           c * v.in + ky * v.y + kx * v.x];
            }
  return true;
}

bool prepare(Step& step, Env& env) {
  IntShape s;
  if (!read_int_shape(step, env, &s)) return false;
  if (s.x->dtype != DType::kI16 || s.y->dtype != DType::kI16 || s.w.tensor->dtype != DType::kI8)
    return env.fail("takes i16 and weights of i8");
  if (s.conv.has_residual) return env.fail("takes no residual");
  if (s.b && (s.b->dtype != DType::kI32 || !is_weight(*s.b) || !is_dense(*s.b) ||
              s.b->size != s.conv.groups * s.conv.group_out))
    return env.fail("bias must be an i32 constant, one per channel");
  static constexpr const char* kZeros[] = {"x_zero_point", "a_zero_point", "y_zero_point",
                                           "w_zero_point", "b_zero_point"};
  for (const char* name : kZeros) {
    int count;
    const int64_t* zeros = attr_ints(step, name, &count);
    for (int i = 0; i < count; ++i)
      if (zeros[i]) return env.fail("%s must be 0", name);
  }
  if (s.conv.kernel[0] * s.conv.kernel[1] * s.conv.group_in > 1 << 24)
    return env.fail("sums of that many products may not fit");
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  state->out_c = s.conv.groups * s.conv.group_out;
  state->bias = s.bias;
  state->depthwise = s.conv.group_in == 1 && s.conv.group_out == 1;
  const int64_t channels = state->depthwise ? state->out_c : s.conv.group_out;
  state->blocks = (channels + kBlock - 1) / kBlock;
  if (!read_ratios(step, env, s, state)) return false;
  const int64_t most = count_int_parts(s, env);
  if (most < 1) return false;
  state->parts = static_cast<Part*>(env.allocate(static_cast<size_t>(most) * sizeof(Part)));
  if (!state->parts) return env.out_of_memory();
  for (int64_t i = 0; i < most; ++i) {
    IntWeightView w;
    Part* part = &state->parts[state->count];
    if (!int_part(s, i, &part->shape, &w)) continue;
    if (!pack(env, *state, w, part)) return false;
    ++state->count;
  }
  return true;
}

// The taps of one output pixel, from where tap (0, 0) lies or would lie.
struct Window {
  const int16_t* from;
  int64_t y0, y1, x0, x1;
};

template <bool kDepthwise>
void pixel(const State& state, const Part& part, const Window& t, int16_t* out, int64_t group,
           int64_t block) {
  const ConvShape& s = part.shape;
  const int64_t depth = kDepthwise ? 1 : s.group_in;
  const int64_t first = block * kBlock, channels = kDepthwise ? state.out_c : s.group_out;
  const int columns = static_cast<int>(channels - first < kBlock ? channels - first : kBlock);
  const int64_t taps = s.kernel[0] * s.kernel[1];
  const int16_t* weights = part.weights + (group * state.blocks + block) * taps * depth * kBlock;
  const int16_t* from = t.from + (kDepthwise ? first : group * s.group_in);
  int64_t total[kBlock] = {};
  int32_t sums[kBlock] = {};
  int pending = 0;
  const auto flush = [&] {
    for (int j = 0; j < kBlock; ++j) total[j] += sums[j], sums[j] = 0;
    pending = 0;
  };
  for (int64_t ky = t.y0; ky < t.y1; ++ky)
    for (int64_t kx = t.x0; kx < t.x1; ++kx) {
      const int16_t* x = from + ky * s.dilation[0] * s.in.row + kx * s.dilation[1] * s.in.pixel;
      const int16_t* w = weights + (ky * s.kernel[1] + kx) * depth * kBlock;
      if (kDepthwise) {
        if (pending == kProducts) flush();
        for (int j = 0; j < columns; ++j) sums[j] += x[j] * w[j];
        ++pending;
        continue;
      }
      for (int64_t c = 0; c < depth;) {
        if (pending == kProducts) flush();
        const int64_t room = kProducts - pending, count = depth - c < room ? depth - c : room;
        for (int64_t i = 0; i < count; ++i, w += kBlock) {
          const int32_t v = x[c + i];
          for (int j = 0; j < kBlock; ++j) sums[j] += v * w[j];
        }
        c += count, pending += static_cast<int>(count);
      }
    }
  flush();
  const int64_t at = group * s.group_out + first;
  for (int j = 0; j < columns; ++j) {
    const int64_t sum = total[j] + (state.bias ? state.bias[at + j] : 0);
    out[at + j] = to_int16(state.rescale(sum, state.ratios[at + j]));
  }
}

template <bool kDepthwise>
void run_part(const State& state, const Part& part, const Step& step, int thread, int threads) {
  const ConvShape& s = part.shape;
  const int64_t groups = kDepthwise ? 1 : s.groups;
  const int16_t* in = step.inputs[0]->as<int16_t>() + s.in.origin;
  int16_t* out = step.outputs[0]->as<int16_t>() + s.out.origin;
  int64_t begin, end;
  share(s.out.images * s.out.h * s.out.w, 1, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t ox = i % s.out.w, oy = i / s.out.w % s.out.h, image = i / s.out.w / s.out.h;
    const int64_t top = oy * s.stride[0] - s.pad[0], left = ox * s.stride[1] - s.pad[1];
    Window t;
    t.from = in + image * s.in.image + top * s.in.row + left * s.in.pixel;
    tap_window(top, s.dilation[0], s.kernel[0], 0, s.in.h, &t.y0, &t.y1);
    tap_window(left, s.dilation[1], s.kernel[1], 0, s.in.w, &t.x0, &t.x1);
    int16_t* to = out + image * s.out.image + oy * s.out.row + ox * s.out.pixel;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t b = 0; b < state.blocks; ++b) pixel<kDepthwise>(state, part, t, to, g, b);
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  for (int64_t i = 0; i < s.count; ++i)
    s.depthwise ? run_part<true>(s, s.parts[i], step, thread, threads)
                : run_part<false>(s, s.parts[i], step, thread, threads);
}

const Kernel kConv[] = {
    {"QLinearConv QLinearConvTranspose", "i16_conv", prepare, run, kAcceptsPitch | kAcceptsHalo},
    {"QLinearMatMul QGemm", "i16_gemm", prepare, run, 0},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int16_conv, kConv)
