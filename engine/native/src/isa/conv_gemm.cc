// Conv and Gemm with constant weights, as tap GEMM.
//
// Where there are products of bf16 pairs, the bf16 kernels multiply them: input and output, and a convolution's
// residual, may be bf16 or floats. Pixels of bf16 with an even number of channels per group are read in place;
// else phase 0 makes a copy (pair_pixels.h). Elsewhere these kernels take floats and compute in them.
#include "ops/gemm_shape.h"
#include "pair_pixels.h"
#include "tap_gemm.h"
#if !defined(LITE_FP16) && !defined(LITE_PAIRS)
#include "row_gemm.h"
#define LITE_BY_ROW
#endif

namespace lite::LITE_ISA {
namespace {

struct State {
  TapGemm gemm;
#if defined(LITE_BY_ROW)
  RowGemm row;               // in its place, where `row.weights` is set
#endif
  int32_t residual;          // input added before the activation, or -1
  PairPixels input;          // that is copied as bf16 pairs
  bool copied;
  int64_t window_rows;       // of the output at once, where rows of the copy lie in scratch memory; or 0
  size_t window_at;
  int64_t out_rows;
  RowMap rows;
};

State* new_state(Step& step, Env& env) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = state;
  if (state) state->residual = -1;
  return state;
}

void finish_step(Step& step, const TapGemm& gemm) {
  step.scratch_bytes = gemm.scratch_bytes;
  set_variant(step, "%s__" LITE_ISA_NAME "%s_%dx%d", step.kernel->name, way_of(gemm),
              tile_height(gemm), tile_columns(gemm));
}

// Makes the shape one of bf16 pairs, where products are of those.
bool count_pairs(Step& step, Env& env, State* state, ConvShape* s) {
  state->input = {s->in, s->groups, s->group_in, s->in.w, 0, 0, 1, 1, 0};
  if (kProducts == 1) return true;
  PixelView& in = s->in;
  const bool in_place = step.inputs[0]->dtype == DType::kBF16 && s->group_in % 2 == 0 &&
                        (in.pixel | in.row | in.image | in.origin) % 2 == 0;
  if (!in_place && joins_taps(*s)) {
    state->input = {in, 1, s->group_in, s->out.w, 0, s->kernel[1], s->stride[1], s->dilation[1], s->pad[1]};
    s->group_in *= s->kernel[1];
    s->kernel[1] = s->stride[1] = s->dilation[1] = 1;
    s->pad[1] = 0;
    in.w = s->out.w;
  }
  s->group_in = (s->group_in + 1) / 2;
  state->input.pairs = s->groups * s->group_in;
  if (in_place) {
    in.c /= 2, in.pixel /= 2, in.row /= 2, in.image /= 2, in.origin /= 2;
    return true;
  }
  state->copied = true;
  in.c = in.pixel = s->groups * s->group_in;
  in.row = in.w * in.pixel;
  in.image = in.h * in.row;
  in.origin = 0;
  for (int i = 0; i < 4; ++i) in.halo[i] = 0;
  size_t count;
  if (!mul_size(static_cast<size_t>(in.images), static_cast<size_t>(in.image), &count) ||
      !mul_size(count, 4, &step.shared_bytes)) {
    return env.fail("input too large");
  }
  step.shared_bytes += 64;
  step.phases = 2;
  return true;
}

#if defined(LITE_PAIRS)
bool is_short(const Tensor* t) { return t && t->dtype == DType::kBF16; }
bool is_too_large(const Tensor* t) { return is_short(t) && t->bytes / 2 >= 1u << 30; }

void copy_pixels(const State& state, const Step& step, const uint8_t* x, void* to, int64_t begin,
                 int64_t end) {
  uint16_t* y = static_cast<uint16_t*>(to);
  if (is_short(step.inputs[0]))
    copy_pixels(state.input, reinterpret_cast<const uint16_t*>(x), y, begin, end);
  else copy_pixels(state.input, reinterpret_cast<const float*>(x), y, begin, end);
}

int64_t rows_read(const RowMap& map, int64_t rows) { return (rows - 1) * map.stride + map.span; }

// The copy of few rows at a time, in scratch memory, takes the place of phase 0.
void copy_by_rows(Step& step, const ConvShape& s, State* state) {
  constexpr int64_t kNearBytes = 24 << 10;  // half of a first-level cache
  const int64_t row_bytes = s.in.row * 4;
  state->rows = step.rows;
  state->out_rows = s.out.h;
  state->window_rows = step.rows.grain;
  while (state->window_rows < s.out.h &&
         rows_read(step.rows, state->window_rows + step.rows.grain) * row_bytes <= kNearBytes)
    state->window_rows += step.rows.grain;
  state->window_at = (state->gemm.scratch_bytes + 63) / 64 * 64;
  step.scratch_bytes =
      state->window_at + static_cast<size_t>(rows_read(step.rows, state->window_rows) * row_bytes) + 64;
  step.shared_bytes = 0;
  step.phases = 1;
}

// Of floats and bf16.
bool read_shape(const Step& step, Env& env, ConvShape* s) {
  const ConvOperands o{input_of(step, 0), input_of(step, 1), input_of(step, 2), input_of(step, 3),
                       output_of(step, 0)};
  const Tensor* all[] = {o.x, o.w, o.b, o.residual, o.y};
  for (const Tensor* t : all) {
    const bool may_be_short = t != o.w && t != o.b;
    if (t && t->dtype != DType::kF32 && !(may_be_short && is_short(t)))
      return env.fail("'%s' is %s, this kernel takes f32 or bf16", t->name, dtype_name(t->dtype));
    if (is_too_large(t)) return env.fail("tensors of 2 GiB and more");
  }
  return read_conv_shape(step, env, o, false, s) && parse_activation(step, env, &s->activation);
}

// Whether a 3x3 of pairs beats F(4,3) of floats, which has a quarter of the products. In cycles per pixel:
// products, two vectors each, or one; transforms per channel, which take longer where input and output
// fill the second-level cache; and weights from the next cache. Measured on Zen 5 and Zen 4.
bool beats_winograd(const Step& step, Env& env) {
  ConvShape s;
  if (!read_shape(step, env, &s)) return false;
  struct Cycles {
    double product, transform, filled, byte;
  };
  const Cycles cycles = env.cpu.halves ? Cycles{2, 0.7, 2.2, 0.15} : Cycles{1, 0.9, 0.9, 1.0 / 16};
  const double pixels = static_cast<double>(s.out.h) * s.out.w, channels = s.in.c + s.out.c;
  const double weights = static_cast<double>(s.group_in) * s.out.c;
  const double products = weights * cycles.product, reading = weights * cycles.byte / pixels;
  // A tile of one vector loads as much as one of two.
  const int64_t vectors = (s.out.c + kLanes - 1) / kLanes;
  const double loads = 1 + 0.3 * static_cast<double>(vectors % 2) / static_cast<double>(vectors);
  const double tiles = static_cast<double>((s.out.h + 3) / 4) * ((s.out.w + 3) / 4);
  const double filled = pixels * channels * 2 / static_cast<double>(env.l2_bytes);
  const double transforms = cycles.transform + cycles.filled * (filled < 1 ? filled : 1);
  return products * loads * 9 / 64 + 9 * 2 * reading <
         products * 36 / 32 * tiles / pixels + transforms * channels + 36 * 4 * reading;
}

// Small groups share vectors with zeros. From four groups to a vector on, the kernel of floats is faster: it
// multiplies none (grouped_conv.h).
bool has_few_zeros(const Step& step, Env& env) {
  ConvShape s;
  return read_shape(step, env, &s) && groups_to_join(s, kLanes) < 4;
}
constexpr DType kOther = DType::kBF16;
#else
constexpr DType kOther = kReal;
bool (*const has_few_zeros)(const Step&, Env&) = nullptr;  // takes any
bool read_shape(const Step& step, Env& env, ConvShape* s) {
  return read_conv(step, env, false, s, kReal);
}
#endif

// (O, C, KH, KW) as (O, KH, KW, C), whose rows are pixels of the copy.
bool join_rows(const ConvShape& s, const PairPixels& input, Env& env, WeightView* w) {
  const int64_t rows = s.kernel[0], taps = input.taps, channels = input.group_in, n = taps * channels;
  float* joined = static_cast<float*>(env.allocate(static_cast<size_t>(s.group_out * rows * n + 1) * 4));
  if (!joined) return env.out_of_memory();
  for (int64_t o = 0; o < s.group_out; ++o)
    for (int64_t y = 0; y < rows; ++y)
      for (int64_t i = 0; i < n; ++i)
        joined[(o * rows + y) * n + i] = w->data[o * w->out + i % channels * w->in + y * w->y + i / channels * w->x];
  *w = {joined, 0, rows * n, 1, n, 0, w->scale, n};
  return true;
}

#if defined(LITE_BY_ROW)
// One pixel, as squeeze-and-excite has it, with channels enough that the sums of a row's lanes, which
// come after its products, count for little.
bool is_one_row(const ConvShape& s) {
  const bool one = s.in.images == 1 && s.in.h == 1 && s.in.w == 1 && s.out.h == 1 && s.out.w == 1;
  const bool reads = s.pad[0] == 0 && s.pad[1] == 0;  // the pixel, and no padding instead
  return one && reads && s.kernel[0] == 1 && s.kernel[1] == 1 && s.groups == 1 && !s.has_residual &&
         s.in.origin == 0 && s.out.origin == 0 && s.in.c >= kLanes * kLanes;
}

bool prepare_row(Step& step, Env& env, RowGemm row, const float* bias, float beta) {
  float* b = static_cast<float*>(env.allocate(static_cast<size_t>(row.n + 1) * sizeof(float)));
  if (!b) return env.out_of_memory();
  for (int64_t i = 0; bias && i < row.n; ++i) b[i] = bias[i] * beta;
  row.bias = b;
  static_cast<State*>(step.state)->row = row;
  set_variant(step, "%s__" LITE_ISA_NAME "_row", step.kernel->name);
  return true;
}
#endif

bool prepare_conv(Step& step, Env& env) {
  ConvShape s;
  if (!read_shape(step, env, &s)) return false;
  State* state = new_state(step, env);
  if (!state) return env.out_of_memory();
  if (s.has_residual) state->residual = 3;
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
#if defined(LITE_BY_ROW)
  if (!step.by_rows && is_one_row(s)) {
    return prepare_row(step, env, {s.weights->as<float>(), nullptr, s.in.c, s.out.c, s.activation},
                       s.bias ? s.bias->as<float>() : nullptr, 1.0f);
  }
#endif
  WeightView w{s.weights->as<float>(), s.group_out * s.group_in * kh * kw,
               s.group_in * kh * kw, kh * kw, kw, 1, 1.0f, s.group_in};
  const bool by_rows = step.by_rows && s.out.images == 1;
  if (!count_pairs(step, env, state, &s) ||
      (state->input.taps && !join_rows(s, state->input, env, &w)) ||
      !prepare_tap_gemm(s, w, s.bias ? s.bias->as<float>() : nullptr, 1.0f, env, &state->gemm,
                        by_rows)) {
    return false;
  }
#if defined(LITE_PAIRS)
  state->gemm.short_out = is_short(step.outputs[0]);
  state->gemm.short_residual = s.has_residual && is_short(s.residual_tensor);
#endif
  if (by_rows) step.rows = row_map(s, state->gemm.list.group_rows);
  finish_step(step, state->gemm);
#if defined(LITE_PAIRS)
  if (by_rows && state->copied) copy_by_rows(step, s, state);
#endif
  return true;
}

#if !defined(LITE_FP16) && !defined(LITE_PAIRS)
constexpr double kNarrow = 1.03;    // see suits_columns; measured on Zen 4
bool conv_suits(const Step& step, Env& env) {
  ConvShape s;
  return !read_shape(step, env, &s) || suits_columns(s, env, kNarrow);
}
bool gemm_suits(const Step& step, Env& env) {
  GemmShape g;
  return !read_gemm_shape(step, env, kReal, kOther, &g) || suits_columns(g.m, g.n, env, kNarrow);
}
using Suits = bool (*)(const Step&, Env&);
constexpr Suits kConvSuits = kLanes == 16 ? conv_suits : nullptr;   // where there are narrower vectors
constexpr Suits kGemmSuits = kLanes == 16 ? gemm_suits : nullptr;

// What Winograd declines.
bool prepare_direct(Step& step, Env& env) {
  if (!prepare_conv(step, env)) return false;
  set_variant(step, "f32_conv2d_gemm__" LITE_ISA_NAME "_%dx%d",
              tile_height(static_cast<State*>(step.state)->gemm), kTileColumns);
  return true;
}
#endif

// Gemm: c may be one constant per column, or one for all, or with beta 1 a full [M,N] one, computed, if
// there is no residual, which is one too.
bool prepare_gemm(Step& step, Env& env) {
  GemmShape g;
  if (!read_gemm_shape(step, env, kReal, kOther, &g)) return false;
  const Tensor *a = g.a, *b = g.b, *c = g.c, *y = g.y;
  const int64_t m = g.m, n = g.n, k = g.k;
  const float alpha = g.alpha, beta = g.beta;
  ConvShape s{};
  s.in = {1, 1, m, k, m * a->pitch, m * a->pitch, a->pitch, 0, {0, 0, 0, 0}};
  s.out = {1, 1, m, n, m * y->pitch, m * y->pitch, y->pitch, 0, {0, 0, 0, 0}};
  s.groups = 1;
  s.group_in = k;
  s.group_out = n;
  for (int i = 0; i < 2; ++i) s.kernel[i] = s.stride[i] = s.dilation[i] = 1;
  if (!parse_activation(step, env, &s.activation)) return false;
  State* state = new_state(step, env);
  if (!state) return env.out_of_memory();
  const float* bias = nullptr;
  const auto add = [&](const Tensor& matrix, int32_t input) {
    s.has_residual = true;
    state->residual = input;
    s.residual = {1, 1, m, n, m * matrix.pitch, m * matrix.pitch, matrix.pitch, 0, {0, 0, 0, 0}};
  };
  if (g.residual) add(*g.residual, 3);
  if (c && c->size == n && is_weight(*c) && is_dense(*c) && last_dim(*c) == n) {
    bias = c->as<float>();
  } else if (c && c->size == 1 && is_weight(*c)) {
    float* filled = static_cast<float*>(env.allocate(static_cast<size_t>(n + 1) * 4));
    if (!filled) return env.out_of_memory();
    for (int64_t i = 0; i < n; ++i) filled[i] = c->as<float>()[0];
    bias = filled;
  } else if (c && (!is_weight(*c) || kReal == DType::kF32) && same_dims(*c, *y) && beta == 1.0f && !g.residual) {
    add(*c, 2);
  } else if (c) {
    return env.fail("c must be a constant of %lld values or one, or [M,N] with beta 1",
                    static_cast<long long>(n));
  }
#if defined(LITE_BY_ROW)
  if (m == 1 && g.trans_b && alpha == 1.0f && state->residual < 0)
    return prepare_row(step, env, {b->as<float>(), nullptr, k, n, s.activation}, bias, beta);
#endif
  const WeightView w{b->as<float>(), 0, g.trans_b ? k : 1, g.trans_b ? 1 : n, 0, 0, alpha, k};
  if (!count_pairs(step, env, state, &s) ||
      !prepare_tap_gemm(s, w, bias, beta, env, &state->gemm)) {
    return false;
  }
#if defined(LITE_PAIRS)
  state->gemm.short_out = is_short(y);
#endif
  finish_step(step, state->gemm);
  return true;
}

void run_rows(const Step& step, const RowRange& r, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  Real* y = reinterpret_cast<Real*>(r.output);
  const Real* residual =
      state.residual < 0 ? nullptr : step.inputs[state.residual]->as<Real>();
#if defined(LITE_PAIRS)
  const PixelView& v = state.input.view;
  const int64_t columns = state.input.columns, row_bytes = columns * state.input.pairs * 4;
  for (int64_t row = r.begin; state.window_rows && row < r.end; row += state.window_rows) {
    const int64_t stop = row + state.window_rows < r.end ? row + state.window_rows : r.end;
    int64_t first = row * state.rows.stride - state.rows.pad;
    int64_t last = first + rows_read(state.rows, stop - row);
    if (first < 0) first = 0;
    if (last > v.h) last = v.h;
    // As addresses: row 0 may lie before any memory of ours.
    const uintptr_t copy = reinterpret_cast<uintptr_t>(scratch) + state.window_at -
                           static_cast<uintptr_t>(first * row_bytes);
    if (first < last)
      copy_pixels(state, step, r.input, reinterpret_cast<void*>(copy), first * columns, last * columns);
    run_tap_gemm_rows(state.gemm, reinterpret_cast<const Real*>(copy), y, residual, row, stop, scratch);
  }
  if (state.window_rows) return;
#endif
  run_tap_gemm_rows(state.gemm, reinterpret_cast<const Real*>(r.input), y, residual, r.begin, r.end,
                    scratch);
}

void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  const Real* x = step.inputs[0]->as<Real>();
#if defined(LITE_PAIRS)
  if (state.window_rows) {
    int64_t begin, end;
    share(state.out_rows, state.rows.grain, thread, threads, &begin, &end);
    return run_rows(step, {step.inputs[0]->data, step.outputs[0]->data, begin, end}, scratch);
  }
  if (state.copied && phase == 0) {
    int64_t begin, end;
    const PixelView& v = state.input.view;
    share(v.images * v.h * state.input.columns, 16, thread, threads, &begin, &end);
    return copy_pixels(state, step, step.inputs[0]->data, step.shared, begin, end);
  }
  if (state.copied) x = static_cast<const float*>(step.shared);
#endif
#if defined(LITE_BY_ROW)
  if (state.row.weights)
    return run_row_gemm(state.row, x, step.outputs[0]->as<float>(), thread, threads);
#endif
  run_tap_gemm(state.gemm, x, step.outputs[0]->as<Real>(),
               state.residual < 0 ? nullptr : step.inputs[state.residual]->as<Real>(), thread,
               scratch);
}

constexpr uint32_t kConvFlags = kAcceptsPitch | kAcceptsHalo | kDivisible;
const Kernel kConvGemm[] = {
#if defined(LITE_FP16)
    {"Conv", "f16_conv2d_gemm", prepare_conv, run, kConvFlags, nullptr, run_rows},
    {"Gemm", "f16_gemm", prepare_gemm, run, kAcceptsPitch | kDivisible},
#else
    {"Conv", "bf16_conv2d_gemm", prepare_conv, run, kConvFlags, has_few_zeros, run_rows},
    {"Gemm", "bf16_gemm", prepare_gemm, run, kAcceptsPitch | kDivisible},
#if defined(LITE_PAIRS)
    {"Conv", "bf16_conv2d_3x3", prepare_conv, run, kConvFlags, beats_winograd, run_rows},
#else
    {"Conv", "f32_conv2d_gemm", prepare_conv, run, kConvFlags, kConvSuits, run_rows},
    {"Conv", "f32_conv2d_3x3", prepare_direct, run, kAcceptsPitch | kAcceptsHalo, kConvSuits, run_rows},
    {"Conv", "f32_conv2d_5x5", prepare_direct, run, kAcceptsPitch | kAcceptsHalo, kConvSuits, run_rows},
    {"Conv", "f32_conv2d_bf16x2", prepare_conv, run, kAcceptsPitch | kAcceptsHalo},  // without AMX
    {"Gemm", "f32_gemm", prepare_gemm, run, kAcceptsPitch | kDivisible, kGemmSuits},
#endif
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(conv_gemm, kConvGemm)
