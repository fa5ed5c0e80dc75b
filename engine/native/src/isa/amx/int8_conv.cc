// QLinearConv, QLinearConvTranspose, QLinearMatMul and QGemm on AMX: the same integers as
// isa/int8_conv.cc.
//
// Bytes of both signednesses are multiplied as they are; only weights whose zero points are 0 come
// here. The zero point of x is part of the bias, padding is that zero point.
#include "amx_gemm.h"

#include "ops/int8_shape.h"
#include "isa/int8_finish.h"

namespace lite::LITE_ISA {
namespace {

struct Part {
  AmxGemm gemm;
  const int32_t* bias;      // [group][panels * kAmxColumns]
  const float* scale;       // the same
};

struct State {
  QuantParams quant;
  int32_t parts;
  Part* part;
};

// Whether every part pays here.
bool suits(const Step& step, Env& env) {
  IntShape s;
  if (!read_int_shape(step, env, &s) || !weights_are_centred(step, *s.w.tensor, s.w_name))
    return false;
  const int64_t count = count_int_parts(s, env);
  for (int64_t i = 0; i < count; ++i) {
    ConvShape shape;
    IntWeightView w;
    AmxGemm g;
    if (int_part(s, i, &shape, &w) && !plan_amx(shape, 1, true, env, &g)) return false;
  }
  return count > 0;
}

bool prepare_part(const ConvShape& s, const IntWeightView& view, const int32_t* bias_in,
                  const QuantParams& quant, Step& step, Env& env, Part* part) {
  AmxGemm& g = part->gemm;
  plan_amx(s, 1, true, env, &g);
  if (outgrows_cache(g, s, env)) {
    plan_amx(s, 1, true, env, &g, 1, 1, true);
    if (g.copied) plan_chunks(rows_per_chunk(g, s, env), &g);
  }
  if (!finish_plan(s, 1, step, env, &g)) return false;
  const int64_t columns = g.groups * g.panels * kAmxColumns, join = s.groups / g.groups;
  Recipe recipe = recipe_of(LITE_ISA_NAME " integers", s, view, quant);
  describe_order(g, &recipe);
  const size_t packed_bytes = g.groups * g.group_weight_bytes + 64;
  bool made = false;
  uint8_t* packed = static_cast<uint8_t*>(quant.w_zero ? env.allocate(packed_bytes)
                                                       : env.allocate_packed(recipe, packed_bytes, &made));
  int32_t* bias = static_cast<int32_t*>(env.allocate((columns + kLanes) * 4));
  float* scale = static_cast<float*>(env.allocate((columns + kLanes) * 4));
  if (!packed || !bias || !scale) return env.out_of_memory();
  const auto at = [&](int64_t group, int64_t o, int64_t c, int64_t ky, int64_t kx) -> int8_t {
    const int64_t member = join > 1 ? c / s.group_in : 0;  // divisions cost more than the rest
    if (join > 1 && o / s.group_out != member) return 0;
    const int64_t i = view.origin + (group * join + member) * view.group +
                      (o - member * s.group_out) * view.out +
                      (c - member * s.group_in) * view.in + ky * view.y + kx * view.x;
    return static_cast<int8_t>(centred_weight(quant, *view.tensor, group * g.out_c + o, i));
  };
  if (!made) pack_amx<int8_t>(g, s.kernel[1], packed, at);
  for (int64_t i = 0; i < g.groups * g.out_c; ++i) {
    const int64_t group = i / g.out_c, o = i % g.out_c;
    const int64_t column = group * g.panels * kAmxColumns + o;
    int64_t sum = 0;
    for (int64_t ky = 0; quant.x_zero && ky < s.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < s.kernel[1]; ++kx)
        for (int64_t c = 0; c < g.in_c; ++c) sum += at(group, o, c, ky, kx);
    bias[column] = static_cast<int32_t>(static_cast<uint32_t>(bias_in ? bias_in[i] : 0) -
                                        static_cast<uint32_t>(quant.x_zero * sum));
    scale[column] = quant.scale[i];
  }
  g.weights = packed;
  part->bias = bias;
  part->scale = scale;
  return true;
}

bool prepare(Step& step, Env& env) {
  IntShape s;
  State* state = static_cast<State*>(env.allocate(sizeof(State)));
  if (!state) return env.out_of_memory();
  step.state = state;
  if (!read_int_shape(step, env, &s) || !read_int_params(step, env, s, &state->quant)) return false;
  const int64_t count = count_int_parts(s, env);
  if (!count) return false;
  state->part = static_cast<Part*>(env.allocate(static_cast<size_t>(count) * sizeof(Part)));
  if (!state->part) return env.out_of_memory();
  for (int64_t i = 0; i < count; ++i) {
    ConvShape shape;
    IntWeightView w;
    if (int_part(s, i, &shape, &w) &&
        !prepare_part(shape, w, s.bias, state->quant, step, env, &state->part[state->parts++])) {
      return false;
    }
  }
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kAmxBlock, kAmxColumns);
  return true;
}

template <bool kSigned, int kPixels, int kVectors>
LITE_INLINE void products(const AmxGemm& g, const AmxBlock& b, const uint8_t* a, const uint8_t* w,
                          const int32_t* bias) {
  const int64_t lda = g.lda;
  sum_products<kPixels, kVectors>(
      g, b, a, w, bias, int64_t{g.k_bytes} * kLanes * kVectors,
      [&](const uint8_t* from, const uint8_t* weights) __attribute__((always_inline)) {
        _tile_loadd(6, weights, 64 * kVectors);
        _tile_loadd(4, from, lda);
        if (kSigned) _tile_dpbssd(0, 4, 6);
        else _tile_dpbusd(0, 4, 6);
        if (kVectors > 1) {
          _tile_loadd(7, weights + 64, 64 * kVectors);
          if (kSigned) _tile_dpbssd(1, 4, 7);
          else _tile_dpbusd(1, 4, 7);
        }
        if (kPixels > 1) {
          _tile_loadd(5, from + kAmxRows * lda, lda);
          if (kSigned) _tile_dpbssd(2, 5, 6);
          else _tile_dpbusd(2, 5, 6);
          if (kVectors > 1) {
            if (kSigned) _tile_dpbssd(3, 5, 7);
            else _tile_dpbusd(3, 5, 7);
          }
        }
      });
}

using Sums = AmxSums<int32_t>;

// Constants of the requantisation, bytes as unsigned numbers.
struct Finish {
  int32_t zero;
  uint8_t low, high, flip;
  const uint8_t* residual;            // tensor or nullptr
  Addend addend;
  uint8_t* y;
  // [vectors - 1]: sums of a block as bytes of y.
  void (*block[2])(const Finish&, const AmxBlock&, const Sums&, const float* scale);
};

template <Adding kAdding, int kVectors, bool kPlain, bool kShifted>
void finish_block(const Finish& f, const AmxBlock& b, const Sums& sums, const float* scale_at) {
  const Adder<kAdding, kShifted> add(f.addend);
  const Narrowing<kVectors, kPlain> narrowing(f);
  constexpr int kRows = 4 / kVectors, kWidth = kVectors * kLanes;
  F scale[kVectors];
  LITE_UNROLL for (int n = 0; n < kVectors; ++n) scale[n] = load(scale_at + n * kLanes);
  const uint32_t valid = ~0u >> (32 - b.columns);
  int32_t rows[kAmxBlock + kRows];
  int64_t c[kAmxBlock + kRows], r[kAmxBlock + kRows];
  int count = 0;
  for_each_output(b, [&](int32_t row, int64_t to, int64_t from) __attribute__((always_inline)) {
    rows[count] = row, c[count] = to, r[count++] = from;
  });
  for (int i = count; count && i % kRows; ++i)  // the last row again: it is written twice alike
    rows[i] = rows[count - 1], c[i] = c[count - 1], r[i] = r[count - 1];
  for (int i = 0; i < count; i += kRows) {
    __m512i v[4];
    LITE_UNROLL for (int q = 0; q < 4; ++q) {
      const int m = i + q / kVectors, n = q % kVectors;
      const F real = to_float(load(sums.at + rows[m] * kWidth + n * kLanes)) * scale[n];
      __m128i residual{};
      if (kAdding != kNothing) {
        const __mmask16 lanes = static_cast<__mmask16>(valid >> (n * kLanes));
        touches(f.residual + r[m] + n * kLanes, __builtin_popcount(lanes));
        residual = _mm_maskz_loadu_epi8(lanes, f.residual + r[m] + n * kLanes);
      }
      v[q] = (__m512i)to_int(add(real, residual));
    }
    const __m512i bytes = narrowing.bytes(v);
    for (int m = i; m < i + kRows; ++m) touches(f.y + c[m], b.columns);
    if (kVectors == 2) {
      const __m256i lower = _mm512_castsi512_si256(bytes);
      const __m256i upper = _mm512_extracti64x4_epi64(bytes, 1);
      _mm256_mask_storeu_epi8(f.y + c[i], valid, lower);
      _mm256_mask_storeu_epi8(f.y + c[i + 1], valid, upper);
    } else {
      const __mmask16 lanes = static_cast<__mmask16>(valid);
      _mm_mask_storeu_epi8(f.y + c[i], lanes, _mm512_castsi512_si128(bytes));
      _mm_mask_storeu_epi8(f.y + c[i + 1], lanes, _mm512_extracti32x4_epi32(bytes, 1));
      _mm_mask_storeu_epi8(f.y + c[i + 2], lanes, _mm512_extracti32x4_epi32(bytes, 2));
      _mm_mask_storeu_epi8(f.y + c[i + 3], lanes, _mm512_extracti32x4_epi32(bytes, 3));
    }
  }
}

template <Adding kAdding, bool kPlain, bool kShifted>
void set_blocks(Finish* f) {
  f->block[0] = finish_block<kAdding, 1, kPlain, kShifted>;
  f->block[1] = finish_block<kAdding, 2, kPlain, kShifted>;
}
template <Adding kAdding>
void set_blocks(Finish* f) {
  const bool plain = is_plain(*f);
  constexpr bool kMay = kAdding != kNothing;
  const bool shifted = kMay && is_shifted(f->addend);
  if (plain && shifted) set_blocks<kAdding, true, kMay>(f);
  else if (plain) set_blocks<kAdding, true, false>(f);
  else if (shifted) set_blocks<kAdding, false, kMay>(f);
  else set_blocks<kAdding, false, false>(f);
}

// Copies pixels of every group, padded with zeros.
LITE_INLINE void copy_pixels(const AmxGemm& g, const uint8_t* from, uint8_t* to, int64_t pixels) {
  const int64_t pixel = g.source.pixel * g.source_column;
  if (g.groups * g.group_bytes == pixel && g.padded == g.group_bytes) {
    memcpy(to, from, pixels * pixel);
    return;
  }
  int64_t i = 0;
  if (g.group_bytes == 3 && g.groups == 1 && g.padded == 4)
    // Images: four bytes at once, the fourth belongs to the next pixel (the last one has none) and
    // meets a weight of 0.
    for (; i + 1 < pixels; ++i, from += pixel, to += 4) memcpy(to, from, 4);
  for (; i < pixels; ++i, from += pixel)
    for (int64_t group = 0; group < g.groups; ++group, to += g.padded) {
      const uint8_t* source = from + group * g.group_bytes;
      int64_t c = 0;
      for (; c + 64 <= g.group_bytes; c += 64) store_bytes(to + c, load_bytes(source + c));
      const int rest = static_cast<int>(g.group_bytes - c), room = static_cast<int>(g.padded - c);
      if (room > 0)
        store_bytes(to + c, rest > 0 ? load_bytes(source + c, rest) : B{}, room);
    }
}

void copy(const AmxGemm& g, const uint8_t* x, int32_t x_zero, uint8_t* operand, int thread,
          int threads) {
  copy_planes(
      g, operand, thread, threads,
      [&](int64_t from, uint8_t* to, int64_t pixels) { copy_pixels(g, x + from, to, pixels); },
      [&](uint8_t* to, int64_t pixels) { memset(to, x_zero, pixels * g.pixel); });
}

// Of the whole part, or of a chunk of it.
void multiply(const Part& part, const AmxGemm& g, const Step& step, const QuantParams& q,
              const uint8_t* operand, int thread) {
  const int32_t residual = q.residual.input;
  const uint8_t flip = q.y_signed ? 0x80 : 0;
  Finish f;
  f.zero = q.y_zero + flip;
  f.low = static_cast<uint8_t>(q.low + flip);
  f.high = static_cast<uint8_t>(q.high + flip);
  f.flip = flip;
  f.residual = residual < 0 ? nullptr : step.inputs[residual]->data;
  f.addend = addend_of(q.residual);
  f.y = step.outputs[0]->data;
  if (!f.residual) set_blocks<kNothing>(&f);
  else if (f.addend.rounded) set_blocks<kToIntegers>(&f);
  else set_blocks<kToSums>(&f);
  Sums sums[2];
  for_each_block(
      g, operand, thread,
      [&](const AmxBlock& b, const uint8_t* a, const uint8_t* w, int tiles, int vectors)
          __attribute__((always_inline)) {
            const int32_t* bias = part.bias + (b.group * g.panels + b.panel) * kAmxColumns;
            using Fn = void (*)(const AmxGemm&, const AmxBlock&, const uint8_t*, const uint8_t*,
                                const int32_t*);
            static const Fn kProducts[2][2][2] = {
                {{products<false, 1, 1>, products<false, 1, 2>},
                 {products<false, 2, 1>, products<false, 2, 2>}},
                {{products<true, 1, 1>, products<true, 1, 2>},
                 {products<true, 2, 1>, products<true, 2, 2>}}};
            kProducts[q.x_signed][tiles - 1][vectors - 1](g, b, a, w, bias);
          },
      [&](int which, int tiles, int vectors) __attribute__((always_inline)) {
        store_sums(sums[which].at, tiles, vectors);
      },
      [&](const AmxBlock& b, int which) __attribute__((always_inline)) {
        f.block[b.columns > kLanes](f, b, sums[which],
                                    part.scale + (b.group * g.panels + b.panel) * kAmxColumns);
      });
}

void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  const State& state = *static_cast<const State*>(step.state);
  const uint8_t* x = step.inputs[0]->data;
  const bool last = phase + 1 == step.phases;
  for (int32_t i = 0; i < state.parts; ++i) {
    const Part& part = state.part[i];
    if (last) set_tiles(part.gemm);
    run_amx(
        part.gemm, step, phase, thread, threads, scratch, x + part.gemm.source.origin,
        [&](const AmxGemm& g, uint8_t* operand, int share, int shares) {
          copy(g, x, state.quant.x_zero, operand, share, shares);
        },
        [&](const AmxGemm& g, const uint8_t* operand, int share) {
          multiply(part, g, step, state.quant, operand, share);
        });
  }
  if (last) release_tiles();
}

const Kernel kInt8Conv[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, suits},
    {"QLinearConvTranspose", "i8_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo, suits},
    {"QLinearMatMul QGemm", "i8_gemm", prepare, run, kDivisible, suits},
    {"QLinearConv", "i8_conv_dense", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible, suits},
    {"QLinearMatMul QGemm", "i8_gemm_dense", prepare, run, kDivisible, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_conv, kInt8Conv)
