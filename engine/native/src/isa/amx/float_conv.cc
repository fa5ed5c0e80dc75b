// Conv and ConvTranspose on AMX with float32 sums of bf16 products; in memory there are floats, or with
// precision bf16 each of input, residual and output may be bf16.
//
// Precision bf16 rounds inputs and weights (one part). The kernels named bf16x2 split each into a high and
// a low bf16, x = h + l + e with |e| <= 2^-16 |x|, and add h*h', h*l' and l*h' (two parts): Henry,
// Tang, Heinecke 2019, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
// Computations". A product is off by 4.6e-6 of itself (root mean square), sums at random: the largest
// error over the output's root mean square is 2e-5 to 3e-5, that of Winograd's F(4,3). An infinity
// becomes NaN, as there; denormals count as zero.
//
// The input is rounded as it is copied: by all threads in phase 0, or where the copy would not stay
// in the second-level cache some rows at a time, by each thread for itself. Channels that do not fill
// a pair or a tile are zeros. A 1x1 convolution over dense bf16 reads them where they lie.
#include "amx_gemm.h"

#include "bf16_operand.h"
#include "bf16_weights.h"
#include "float_finish.h"

namespace lite::LITE_ISA {
namespace {

// A convolution: the only one, or one remainder of a transposed one.
struct Part {
  AmxGemm gemm;
  const float* bias;         // [group][panels * kAmxColumns]
};

// Whether input, residual and output are bf16; floats otherwise.
struct InBf16 {
  bool x, residual, y;
};

struct State {
  InBf16 in_bf16;
  int32_t parts;
  Part* part;
  Finish finish;
  bool has_residual;
};

// read_conv, of tensors that may be bf16 where there is one part.
template <int kParts>
bool read(const Step& step, Env& env, bool transposed, ConvShape* s, InBf16* in_bf16) {
  const ConvOperands o{input_of(step, 0), input_of(step, 1), input_of(step, 2), input_of(step, 3),
                       output_of(step, 0)};
  const Tensor* all[] = {o.x, o.residual, o.y, o.w, o.b};
  bool is_bf16[5] = {};
  for (int i = 0; i < 5; ++i) {
    if (!all[i] || all[i]->dtype == DType::kF32) continue;
    is_bf16[i] = kParts == 1 && i < 3 && all[i]->dtype == DType::kBF16;
    if (!is_bf16[i])
      return env.fail("'%s' is %s, this kernel takes f32", all[i]->name, dtype_name(all[i]->dtype));
  }
  *in_bf16 = {is_bf16[0], is_bf16[1], is_bf16[2]};
  return read_conv_shape(step, env, o, transposed, s) &&
         parse_activation(step, env, &s->activation);
}

// Of the vectors' products, what is left to F(4,3): a quarter, and its transforms.
double vector_share(const ConvShape& s) {
  const bool winograd = s.groups == 1 && s.group_in >= 16 && s.kernel[0] == 3 &&
                        s.kernel[1] == 3 && s.stride[0] == 1 && s.stride[1] == 1 &&
                        s.dilation[0] == 1 && s.dilation[1] == 1;
  return winograd ? 0.4 : 1;
}

template <int kParts>
bool plan(const ConvShape& s, bool bf16_x, const Env& env, bool by_rows, AmxGemm* g) {
  return plan_amx(s, 2, bf16_x, env, g, kParts, kParts == 1 ? 1 : vector_share(s), by_rows);
}

template <int kParts>
bool suits(const Step& step, Env& env) {
  ConvShape s;
  InBf16 in_bf16;
  AmxGemm g;
  return read<kParts>(step, env, false, &s, &in_bf16) && plan<kParts>(s, in_bf16.x, env, false, &g);
}

// Whether every remainder pays here.
template <int kParts>
bool suits_transposed(const Step& step, Env& env) {
  ConvShape s;
  InBf16 in_bf16;
  AmxGemm g;
  DeconvPart part;
  if (!read<kParts>(step, env, true, &s, &in_bf16)) return false;
  const int64_t count = count_deconv_parts(s, env);
  for (int64_t i = 0; i < count; ++i) {
    if (deconv_part(s, i, &part) &&
        (part.shape.kernel[0] == 0 || !plan<kParts>(part.shape, in_bf16.x, env, false, &g)))
      return false;
  }
  return count > 0;
}

// Whether each thread should copy rows of its own: also where threads share rows evenly, since what
// one thread writes the others would have to fetch from its cache. Large weights are better shared by
// panels.
bool prefers_chunks(const AmxGemm& g, const ConvShape& s, const Env& env) {
  if (outgrows_cache(g, s, env)) return true;
  const int64_t rows = s.out.images * s.out.h, most = (rows + env.threads - 1) / env.threads;
  return g.copied && env.threads > 1 && most * env.threads * 7 <= rows * 8 &&
         static_cast<double>(g.groups * g.group_weight_bytes) <=
             0.6 * static_cast<double>(env.l2_bytes);
}

template <int kParts>
bool prepare_part(const ConvShape& s, const WeightView& w, bool by_rows, Step& step, Env& env,
                  Part* part) {
  AmxGemm& g = part->gemm;
  const bool bf16_x = static_cast<const State*>(step.state)->in_bf16.x;
  plan<kParts>(s, bf16_x, env, false, &g);
  if (by_rows || prefers_chunks(g, s, env)) {
    plan<kParts>(s, bf16_x, env, true, &g);
    if (g.copied) plan_chunks(rows_per_chunk(g, s, env), &g);
  }
  if (!finish_plan(s, 2, step, env, &g)) return false;
  const int64_t columns = g.groups * g.panels * kAmxColumns;
  Recipe recipe = recipe_of(LITE_ISA_NAME " bf16", s, w);
  describe_order(g, &recipe);
  bool made;
  uint8_t* packed = static_cast<uint8_t*>(
      env.allocate_packed(recipe, g.groups * g.group_weight_bytes + 64, &made));
  float* bias = static_cast<float*>(env.allocate((columns + kLanes) * 4));
  if (!packed || !bias) return env.out_of_memory();
  if (!made) pack<kParts>(s, w, g, packed);
  for (int64_t i = 0; s.bias && i < g.groups * g.out_c; ++i)
    bias[i / g.out_c * g.panels * kAmxColumns + i % g.out_c] = s.bias->as<float>()[i];
  g.weights = packed;
  part->bias = bias;
  return true;
}

State* new_state(const ConvShape& s, const InBf16& in_bf16, int64_t parts, Step& step, Env& env) {
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  Part* part = static_cast<Part*>(env.allocate(static_cast<size_t>(parts) * sizeof(Part)));
  if (!state || !part) return nullptr;
  step.state = state;
  state->part = part;
  state->in_bf16 = in_bf16;
  state->finish = finish_of(s.activation);
  state->has_residual = s.has_residual;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kAmxBlock, kAmxColumns);
  return state;
}

template <int kParts>
bool prepare(Step& step, Env& env) {
  ConvShape s;
  InBf16 in_bf16;
  if (!read<kParts>(step, env, false, &s, &in_bf16)) return false;
  State* state = new_state(s, in_bf16, 1, step, env);
  if (!state) return env.out_of_memory();
  state->parts = 1;
  const int64_t kw = s.kernel[1], taps = s.kernel[0] * kw;
  const WeightView w{s.weights->as<float>(), s.group_out * s.group_in * taps, s.group_in * taps,
                     taps, kw, 1, 1.0f};
  const bool by_rows = step.by_rows && s.out.images == 1;
  if (by_rows) step.rows = row_map(s, 1);
  return prepare_part<kParts>(s, w, by_rows, step, env, state->part);
}

template <int kParts>
bool prepare_transposed(Step& step, Env& env) {
  ConvShape s;
  InBf16 in_bf16;
  if (!read<kParts>(step, env, true, &s, &in_bf16)) return false;
  const int64_t count = count_deconv_parts(s, env);
  if (!count) return false;
  State* state = new_state(s, in_bf16, count, step, env);
  if (!state) return env.out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    DeconvPart part;
    if (!deconv_part(s, i, &part)) continue;
    if (!prepare_part<kParts>(part.shape, weights_of(s, part), false, step, env,
                              &state->part[state->parts++])) {
      return false;
    }
  }
  return true;
}

// Sums 0 to 3 += tiles 4 and 5 (pixels) times 6 and 7 (columns).
template <int kPixels, int kVectors>
LITE_INLINE void multiply_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  if (kVectors > 1) _tile_dpbf16ps(1, 4, 7);
  if (kPixels > 1) _tile_dpbf16ps(2, 5, 6);
  if (kPixels > 1 && kVectors > 1) _tile_dpbf16ps(3, 5, 7);
}

template <int kPixels>
LITE_INLINE void load_pixels(const uint8_t* a, int64_t lda) {
  _tile_loadd(4, a, lda);
  if (kPixels > 1) _tile_loadd(5, a + kAmxRows * lda, lda);
}

template <int kVectors>
LITE_INLINE void load_columns(const uint8_t* w) {
  _tile_loadd(6, w, 64 * kVectors);
  if (kVectors > 1) _tile_loadd(7, w + 64, 64 * kVectors);
}

template <int kParts, int kPixels, int kVectors>
void products(const AmxGemm& g, const AmxBlock& b, const uint8_t* a, const uint8_t* w,
              const float* bias) {
  const int64_t lda = g.lda, tile = int64_t{g.k_bytes} * kLanes * kVectors;
  sum_products<kPixels, kVectors>(
      g, b, a, w, bias, kParts * tile,
      [&](const uint8_t* from, const uint8_t* weights) __attribute__((always_inline)) {
        load_pixels<kPixels>(from, lda);
        if (kParts > 1) {
          load_columns<kVectors>(weights + tile);
          multiply_tiles<kPixels, kVectors>();
        }
        load_columns<kVectors>(weights);
        multiply_tiles<kPixels, kVectors>();
        if (kParts > 1) {
          load_pixels<kPixels>(from + g.part_bytes, lda);
          multiply_tiles<kPixels, kVectors>();
        }
      });
}

// `x` points at floats, or bf16 where the step's input is.
template <int kParts>
void copy(const State& state, const AmxGemm& g, const uint8_t* x, uint8_t* operand, int thread,
          int threads) {
  const auto fill = [&](uint8_t* to, int64_t pixels) {
    for (int part = 0; part < kParts; ++part) memset(to + part * g.part_bytes, 0, pixels * g.pixel);
  };
  const auto round = [&](int64_t from, uint8_t* to, int64_t pixels) {
    copy_pixels<kParts>(g, reinterpret_cast<const float*>(x) + from, to, pixels);
  };
  const auto keep = [&](int64_t from, uint8_t* to, int64_t pixels) {
    copy_shorts(g, reinterpret_cast<const uint16_t*>(x) + from, to, pixels);
  };
  if (state.in_bf16.x) copy_planes(g, operand, thread, threads, keep, fill);
  else copy_planes(g, operand, thread, threads, round, fill);
}

// Where a step's values lie: floats, or bf16 as State::in_bf16 says.
struct Places {
  const uint8_t* x;
  uint8_t* y;
  const uint8_t* residual;
};

template <int kParts>
void multiply(const State& state, const AmxGemm& g, const float* bias, const uint8_t* operand,
              const Places& at, int thread) {
  const Act act = state.finish.activation.act;
  const InBf16& in_bf16 = state.in_bf16;
  FinishFn finish = finish_for<float, float>(act);
  if constexpr (kParts == 1) {
    if (in_bf16.y && in_bf16.residual) finish = finish_for<uint16_t, uint16_t>(act);
    else if (in_bf16.y) finish = finish_for<uint16_t, float>(act);
    else if (in_bf16.residual) finish = finish_for<float, uint16_t>(act);
  }
  Sums sums[2];
  for_each_block(
      g, operand, thread,
      [&](const AmxBlock& b, const uint8_t* a, const uint8_t* w, int tiles, int vectors) {
        using Fn = void (*)(const AmxGemm&, const AmxBlock&, const uint8_t*, const uint8_t*,
                            const float*);
        static const Fn kProducts[2][2] = {{products<kParts, 1, 1>, products<kParts, 1, 2>},
                                           {products<kParts, 2, 1>, products<kParts, 2, 2>}};
        kProducts[tiles - 1][vectors - 1](
            g, b, a, w, bias + (b.group * g.panels + b.panel) * kAmxColumns);
      },
      [&](int which, int tiles, int vectors) { store_sums(sums[which].at, tiles, vectors); },
      [&](const AmxBlock& b, int which) {
        finish(state.finish, b, sums[which], at.y, at.residual);
      });
}

// `copy` and `multiply` of a step, for run_amx and run_chunks.
template <int kParts>
LITE_INLINE auto copies(const State& state, const Places& at) {
  return [&](const AmxGemm& g, uint8_t* operand, int thread, int threads) {
    copy<kParts>(state, g, at.x, operand, thread, threads);
  };
}
template <int kParts>
LITE_INLINE auto multiplies(const State& state, const Part& part, const Places& at) {
  return [&](const AmxGemm& g, const uint8_t* operand, int thread) {
    multiply<kParts>(state, g, part.bias, operand, at, thread);
  };
}

template <int kParts>
void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  const Places at{step.inputs[0]->data, step.outputs[0]->data,
                  state.has_residual ? step.inputs[3]->data : nullptr};
  const bool last = phase + 1 == step.phases;
  for (int32_t i = 0; i < state.parts; ++i) {
    const Part& part = state.part[i];
    if (last) set_tiles(part.gemm);
    run_amx(part.gemm, step, phase, thread, threads, scratch, at.x + 2 * part.gemm.source.origin,
            copies<kParts>(state, at), multiplies<kParts>(state, part, at));
  }
  if (last) release_tiles();
}

template <int kParts>
void run_rows(const Step& step, const RowRange& r, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  const Part& part = *state.part;
  const Places at{r.input, r.output, state.has_residual ? step.inputs[3]->data : nullptr};
  set_tiles(part.gemm);
  if (part.gemm.copied) {
    run_chunks(part.gemm, 0, r.begin, r.end, static_cast<uint8_t*>(scratch),
               copies<kParts>(state, at), multiplies<kParts>(state, part, at));
  } else {
    const AmxGemm rows = rows_of(part.gemm, r.begin, r.end - r.begin);
    multiply<kParts>(state, rows, part.bias, at.x + 2 * rows.source.origin, at, 0);
  }
  release_tiles();
}

constexpr uint32_t kFlags = kAcceptsPitch | kAcceptsHalo;
const Kernel kFloatConv[] = {
    {"Conv", "bf16_conv2d_gemm", prepare<1>, run<1>, kFlags, suits<1>, run_rows<1>},
    {"Conv", "bf16_conv2d_3x3", prepare<1>, run<1>, kFlags, suits<1>, run_rows<1>},
    {"Conv", "f32_conv2d_bf16x2", prepare<2>, run<2>, kFlags, suits<2>, run_rows<2>},
    {"ConvTranspose", "bf16_deconv2d", prepare_transposed<1>, run<1>, kFlags, suits_transposed<1>},
    {"ConvTranspose", "f32_deconv2d_bf16x2", prepare_transposed<2>, run<2>, kFlags,
     suits_transposed<2>},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(float_conv, kFloatConv)
