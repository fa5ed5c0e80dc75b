// Sums of a block of floats to the output: residual, activation, floats or bf16.
#pragma once

#include "amx_gemm.h"
#include "isa/activation.h"

namespace lite::LITE_ISA {
namespace {

using Sums = AmxSums<float>;

// 16 values of a tensor of floats or bf16.
template <class Element>
LITE_INLINE F load_lanes(const Element* from, __mmask16 lanes) {
  touches(from, sizeof(Element) * __builtin_popcount(lanes));
  if constexpr (sizeof(Element) == 4) return (F)_mm512_maskz_loadu_ps(lanes, from);
  else return as_float((I)_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from)), 16));
}
LITE_INLINE void store_lanes(float* to, F v, __mmask16 lanes) {
  touches(to, 4 * __builtin_popcount(lanes));
  _mm512_mask_storeu_ps(to, lanes, (__m512)v);
}
LITE_INLINE void store_lanes(uint16_t* to, F v, __mmask16 lanes) {
  touches(to, 2 * __builtin_popcount(lanes));
  _mm256_mask_storeu_epi16(to, lanes, (__m256i)_mm512_cvtneps_pbh((__m512)v));
}

// What follows a sum: `low` and `high` of a clamp, or with `apply` a function that is applied to all
// sums of a block at once.
struct Finish {
  Activation activation;
  float low, high;
  bool apply;
};

Finish finish_of(const Activation& activation) {
  const Act act = activation.act;
  const bool clip = act == Act::kClip;
  return {activation, clip ? activation.a : -__builtin_inff(), clip ? activation.b : __builtin_inff(),
          !clip && act != Act::kNone && act != Act::kHardSwish && act != Act::kLeakyRelu};
}

// The sums of a block to y. kAct: kClip, kHardSwish or kLeakyRelu; others follow with `apply`.
template <Act kAct, class Y, class R>
void finish_block(const Finish& f, const AmxBlock& b, Sums& sums, void* output, const void* addend) {
  Y* y = static_cast<Y*>(output);
  const R* residual = static_cast<const R*>(addend);
  const int vectors = tile_vectors(b.columns);
  const uint32_t valid = ~0u >> (32 - b.columns);
  const F low = splat(kAct == Act::kClip ? f.low : f.activation.a);
  const F high = splat(kAct == Act::kClip ? f.high : f.activation.b);
  const auto for_each_vector = [&](auto visit) __attribute__((always_inline)) {
    for_each_output(b, [&](int32_t row, int64_t to, int64_t from) __attribute__((always_inline)) {
      for (int n = 0; n < vectors; ++n)
        visit(sums.at + (row * vectors + n) * kLanes, to + n * kLanes, from + n * kLanes,
              static_cast<__mmask16>(valid >> (n * kLanes)));
    });
  };
  if (f.apply) {
    if (residual) {
      for_each_vector([&](float* sum, int64_t, int64_t from, __mmask16 lanes) {
        store(sum, load(sum) + load_lanes(residual + from, lanes));
      });
    }
    activate(sums.at, int64_t{b.rows} * vectors * kLanes, f.activation);
    for_each_vector([&](float* sum, int64_t to, int64_t, __mmask16 lanes) {
      store_lanes(y + to, load(sum), lanes);
    });
    return;
  }
  for_each_vector([&](float* sum, int64_t to, int64_t from, __mmask16 lanes)
                      __attribute__((always_inline)) {
    F v = load(sum);
    if (residual) v += load_lanes(residual + from, lanes);
    store_lanes(y + to, activate_vector<kAct>(v, low, high), lanes);
  });
}

using FinishFn = void (*)(const Finish&, const AmxBlock&, Sums&, void*, const void*);
template <class Y, class R>
FinishFn finish_for(Act act) {
  if (act == Act::kHardSwish) return finish_block<Act::kHardSwish, Y, R>;
  if (act == Act::kLeakyRelu) return finish_block<Act::kLeakyRelu, Y, R>;
  return finish_block<Act::kClip, Y, R>;
}

}  // namespace
}  // namespace lite::LITE_ISA
