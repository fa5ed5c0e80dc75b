// Conv on AMX in bf16: float32 in memory, products of bf16 pairs, float32 sums.
//
// Phase 0 rounds the input as it copies it. Channels that do not fill a pair or a tile are zeros.
#include "amx_gemm.h"

#include "convert.h"
#include "isa/activation.h"

namespace lite::LITE_ISA {
namespace {

struct State {
  AmxGemm gemm;
  const float* bias;         // [group][panels * kAmxColumns]
  Activation activation;
  float low, high;
  bool has_residual, apply;
};

bool suits(const Step& step, Env& env) {
  ConvShape s;
  AmxGemm g;
  return read_conv(step, env, false, &s) && plan_amx(s, 2, false, env, &g);
}

bool prepare(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, false, &s)) return false;
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  AmxGemm& g = state->gemm;
  plan_amx(s, 2, false, env, &g);
  if (!finish_plan(s, 2, step, env, &g)) return false;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kAmxBlock, kAmxColumns);
  state->activation = s.activation;
  const bool clip = s.activation.act == Act::kClip;
  state->low = clip ? s.activation.a : -__builtin_inff();
  state->high = clip ? s.activation.b : __builtin_inff();
  state->apply = !clip && s.activation.act != Act::kNone;
  state->has_residual = s.has_residual;

  const int64_t columns = g.groups * g.panels * kAmxColumns, join = s.groups / g.groups;
  uint8_t* packed = static_cast<uint8_t*>(env.allocate(g.groups * g.group_weight_bytes + 64));
  float* bias = static_cast<float*>(env.allocate((columns + kLanes) * 4));
  if (!packed || !bias) return env.out_of_memory();
  const int64_t kh = s.kernel[0], kw = s.kernel[1];
  const float* weights = s.weights->as<float>();
  pack_amx<uint16_t>(
      g, kw, packed,
      [&](int64_t group, int64_t o, int64_t c, int64_t ky, int64_t kx) -> uint16_t {
        const int64_t member = c / s.group_in;
        if (o / s.group_out != member) return 0;
        const int64_t output = (group * join + member) * s.group_out + o % s.group_out;
        return float_to_bfloat(
            weights[((output * s.group_in + c % s.group_in) * kh + ky) * kw + kx]);
      });
  for (int64_t i = 0; s.bias && i < g.groups * g.out_c; ++i)
    bias[i / g.out_c * g.panels * kAmxColumns + i % g.out_c] = s.bias->as<float>()[i];
  g.weights = packed;
  state->bias = bias;
  return true;
}

template <int kPixels, int kVectors>
void products(const AmxGemm& g, const AmxBlock& b, const uint8_t* a, const uint8_t* w,
              const float* bias) {
  _tile_loadd(0, bias, 0);  // a row stride of 0: the same bias in every row
  if (kVectors > 1) _tile_loadd(1, bias + kLanes, 0);
  if (kPixels > 1) _tile_loadd(2, bias, 0);
  if (kPixels > 1 && kVectors > 1) _tile_loadd(3, bias + kLanes, 0);
  const int64_t lda = g.lda, step = int64_t{g.k_bytes} * kLanes * kVectors;
  const int steps = g.taps * g.k_tiles;
  const uint8_t* ahead = b.ahead;
  for (int i = 0; i < steps; ++i, w += step) {
    const uint8_t* from = a + g.offsets[i];
    ahead = fetch_ahead(ahead, b.ahead_lines);
    _tile_loadd(6, w, 64 * kVectors);
    _tile_loadd(4, from, lda);
    _tile_dpbf16ps(0, 4, 6);
    if (kVectors > 1) {
      _tile_loadd(7, w + 64, 64 * kVectors);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (kPixels > 1) {
      _tile_loadd(5, from + kAmxRows * lda, lda);
      _tile_dpbf16ps(2, 5, 6);
      if (kVectors > 1) _tile_dpbf16ps(3, 5, 7);
    }
  }
}

void round_run(const float* from, uint8_t* to, int64_t n) {
  for (; n > 0; n -= kLanes, from += kLanes, to += 2 * kLanes) {
    const int lanes = n < kLanes ? static_cast<int>(n) : kLanes;
    const __m256bh v = _mm512_cvtneps_pbh((__m512)load_part(from, lanes));
    _mm256_mask_storeu_epi16(to, first_lanes(lanes), (__m256i)v);
  }
}

void copy_pixels(const AmxGemm& g, const float* from, uint8_t* to, int64_t pixels) {
  const int64_t pixel = g.source.pixel * g.source_column, channels = g.group_bytes / 2;
  if (g.groups * channels == pixel && g.padded == g.group_bytes) {
    round_run(from, to, pixels * pixel);
    return;
  }
  for (int64_t i = 0; i < pixels; ++i, from += pixel)
    for (int64_t group = 0; group < g.groups; ++group, to += g.padded) {
      round_run(from + group * channels, to, channels);
      memset(to + g.group_bytes, 0, g.padded - g.group_bytes);
    }
}

struct alignas(64) Sums {
  float at[kAmxBlock * kAmxColumns];
};

void run(const Step& step, int phase, int thread, int threads, void*) {
  const State& state = *static_cast<const State*>(step.state);
  const AmxGemm& g = state.gemm;
  if (phase == 0) {
    const float* x = step.inputs[0]->as<float>();
    copy_planes(
        g, static_cast<uint8_t*>(step.shared), thread, threads,
        [&](int64_t from, uint8_t* to, int64_t pixels) { copy_pixels(g, x + from, to, pixels); },
        [&](uint8_t* to, int64_t pixels) { memset(to, 0, pixels * g.pixel); });
    return;
  }
  float* y = step.outputs[0]->as<float>();
  const float* residual = state.has_residual ? step.inputs[3]->as<float>() : nullptr;
  const F low = splat(state.low), high = splat(state.high);
  Sums sums[2];
  set_tiles(g);
  for_each_block(
      g, static_cast<const uint8_t*>(step.shared), thread,
      [&](const AmxBlock& b, const uint8_t* a, const uint8_t* w, int tiles, int vectors) {
        using Fn = void (*)(const AmxGemm&, const AmxBlock&, const uint8_t*, const uint8_t*,
                            const float*);
        static const Fn kProducts[2][2] = {{products<1, 1>, products<1, 2>},
                                           {products<2, 1>, products<2, 2>}};
        kProducts[tiles - 1][vectors - 1](
            g, b, a, w, state.bias + (b.group * g.panels + b.panel) * kAmxColumns);
      },
      [&](int which, int tiles, int vectors) { store_sums(sums[which].at, tiles, vectors); },
      [&](const AmxBlock& b, int which) {
        const int vectors = tile_vectors(b.columns);
        const uint32_t valid = ~0u >> (32 - b.columns);
        for_each_output(b, [&](int32_t row, int64_t to, int64_t from) {
          for (int n = 0; n < vectors; ++n) {
            const __mmask16 lanes = static_cast<__mmask16>(valid >> (n * kLanes));
            F v = load(sums[which].at + (row * vectors + n) * kLanes);
            if (residual) v += (F)_mm512_maskz_loadu_ps(lanes, residual + from + n * kLanes);
            v = min(high, max(low, v));
            _mm512_mask_storeu_ps(y + to + n * kLanes, lanes, (__m512)v);
          }
          if (state.apply) activate(y + to, b.columns, state.activation);
        });
      });
  release_tiles();
}

const Kernel kBf16Conv[] = {
    {"Conv", "bf16_conv2d_gemm", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
    {"Conv", "bf16_conv2d_3x3", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(bf16_conv, kBf16Conv)
