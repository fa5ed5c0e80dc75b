// The vectors of one instruction set: the only file of isa/ that knows its intrinsics for float.
//
// Every file of isa/ is compiled once per instruction set with -DLITE_ISA=<name> and its -m flags;
// everything lives in namespace lite::LITE_ISA, so that the copies never meet. The vectors are GCC
// vector extensions: + - * / and comparisons are written with operators.
//
//   F, I         kLanes floats, kLanes int32; a comparison of F gives an I of 0 and -1
//   Real         an element of F: float, but half where a file defines LITE_FP16 (I is of int16);
//                data, weights and sums of kernels written in it follow
//   load, store  need no alignment; the _part forms touch the first n lanes only (0 <= n <= kLanes)
//   min, max     return the second operand when either is NaN: keep the data there
//   permute(v, at)    lane i is lane at[i] of v; where LITE_GROUPED_CONV needs it
//   minimum, maximum  NaN of either operand wins, as in NumPy
//   round        to nearest, ties to even, as to_int does
#pragma once

#include "ops/guard.h"
#include "lite_kernel.h"

#if defined(__wasm__)
#include "isa/simd128.h"
#elif defined(__AVX512F__) || defined(__AVX2__)
#pragma GCC diagnostic push  // gcc 12's own _mm512_undefined_ps() reads itself (GCC PR 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__SSE2__)
#include <emmintrin.h>  // a tenth of the time that the header of all sets takes
#elif defined(__ARM_NEON)
#include "isa/neon32.h"
#endif

#ifndef LITE_ISA
#error "compile files of isa/ with -DLITE_ISA=<instruction set>"
#endif

#define LITE_UNROLL _Pragma("GCC unroll 64")

namespace lite::LITE_ISA {

#if defined(LITE_FP16)
typedef __fp16 Real;
typedef int16_t RealInt;
constexpr DType kReal = DType::kF16;
#define LITE_REAL "f16"
constexpr int kLanes = 8, kVectorRegisters = 32;
#else
typedef float Real;
typedef int32_t RealInt;
constexpr DType kReal = DType::kF32;
#define LITE_REAL "f32"
#if defined(__AVX512F__)
constexpr int kLanes = 16, kVectorRegisters = 32;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kVectorRegisters = 16;
#elif defined(__SSE2__)
constexpr int kLanes = 4, kVectorRegisters = 16;
#elif defined(__arm__)
constexpr int kLanes = 4, kVectorRegisters = 16;
#else
constexpr int kLanes = 4, kVectorRegisters = 32;
#endif
#endif

typedef Real F __attribute__((vector_size(sizeof(Real) * kLanes)));
typedef RealInt I __attribute__((vector_size(sizeof(Real) * kLanes)));
// The unaligned views may alias anything, as the intrinsics' own types do.
typedef Real Fu __attribute__((vector_size(sizeof(Real) * kLanes), aligned(sizeof(Real)), may_alias));
typedef RealInt Iu
    __attribute__((vector_size(sizeof(Real) * kLanes), aligned(sizeof(Real)), may_alias));

LITE_INLINE F load(const Real* p) { return *reinterpret_cast<const Fu*>(p); }
LITE_INLINE I load(const RealInt* p) { return *reinterpret_cast<const Iu*>(p); }
LITE_INLINE void store(Real* p, F v) { *reinterpret_cast<Fu*>(p) = v; }
LITE_INLINE void store(RealInt* p, I v) { *reinterpret_cast<Iu*>(p) = v; }
LITE_INLINE I splat(RealInt s) { return s - I{}; }
LITE_INLINE I as_int(F v) { return reinterpret_cast<I>(v); }
LITE_INLINE F as_float(I v) { return reinterpret_cast<F>(v); }
LITE_INLINE F select(I mask, F yes, F no) { return mask ? yes : no; }

#if defined(LITE_FP16)

LITE_INLINE F splat(float s) { return reinterpret_cast<F>(vdupq_n_f16(static_cast<Real>(s))); }
LITE_INLINE F abs(F v) { return reinterpret_cast<F>(vabsq_f16(reinterpret_cast<float16x8_t>(v))); }
LITE_INLINE F load_part(const Real* p, int n) {
  if (n >= kLanes) return load(p);
  F v{};
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
}
LITE_INLINE void store_part(Real* p, F v, int n) {
  if (n >= kLanes) return store(p, v);
  for (int i = 0; i < n; i++) p[i] = v[i];
}
LITE_INLINE F fma(F a, F b, F c) {
  return reinterpret_cast<F>(vfmaq_f16(reinterpret_cast<float16x8_t>(c),
                                       reinterpret_cast<float16x8_t>(a),
                                       reinterpret_cast<float16x8_t>(b)));
}
LITE_INLINE F min(F a, F b) {
  return reinterpret_cast<F>(
      vminq_f16(reinterpret_cast<float16x8_t>(a), reinterpret_cast<float16x8_t>(b)));
}
LITE_INLINE F max(F a, F b) {
  return reinterpret_cast<F>(
      vmaxq_f16(reinterpret_cast<float16x8_t>(a), reinterpret_cast<float16x8_t>(b)));
}

#else

LITE_INLINE F splat(float s) { return s - F{}; }  // s + 0 would turn -0 into 0
LITE_INLINE F abs(F v) { return as_float(as_int(v) & 0x7fffffff); }
LITE_INLINE F to_float(I v) { return __builtin_convertvector(v, F); }

#if defined(__AVX512F__)

LITE_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }
LITE_INLINE F load_part(const float* p, int n) {
  touches(p, 4 * n);
  return reinterpret_cast<F>(_mm512_maskz_loadu_ps(first_lanes(n), p));
}
LITE_INLINE void store_part(float* p, F v, int n) {
  touches(p, 4 * n);
  _mm512_mask_storeu_ps(p, first_lanes(n), reinterpret_cast<__m512>(v));
}
LITE_INLINE F fma(F a, F b, F c) {
  return reinterpret_cast<F>(_mm512_fmadd_ps(reinterpret_cast<__m512>(a),
                                             reinterpret_cast<__m512>(b),
                                             reinterpret_cast<__m512>(c)));
}
LITE_INLINE F min(F a, F b) {
  return reinterpret_cast<F>(
      _mm512_min_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
LITE_INLINE F max(F a, F b) {
  return reinterpret_cast<F>(
      _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
}
LITE_INLINE F sqrt(F v) {
  return reinterpret_cast<F>(_mm512_sqrt_ps(reinterpret_cast<__m512>(v)));
}
LITE_INLINE F round(F v) {
  return reinterpret_cast<F>(_mm512_roundscale_ps(
      reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LITE_INLINE F floor(F v) {
  return reinterpret_cast<F>(_mm512_roundscale_ps(reinterpret_cast<__m512>(v),
                                                  _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
LITE_INLINE I to_int(F v) {
  return reinterpret_cast<I>(_mm512_cvtps_epi32(reinterpret_cast<__m512>(v)));
}

LITE_INLINE F permute(F v, I at) {
  return reinterpret_cast<F>(
      _mm512_permutexvar_ps(reinterpret_cast<__m512i>(at), reinterpret_cast<__m512>(v)));
}

#elif defined(__AVX2__)

LITE_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LITE_INLINE F load_part(const float* p, int n) {
  if (n >= kLanes) return load(p);
  touches(p, 4 * n);
  return reinterpret_cast<F>(_mm256_maskload_ps(p, first_lanes(n)));
}
// In parts: AMD's processors before Zen 4 take tens of cycles for a masked store.
LITE_INLINE void store_part(float* p, F v, int n) {
  if (n >= kLanes) return store(p, v);
  __m128 rest = _mm256_castps256_ps128(reinterpret_cast<__m256>(v));
  if (n & 4) {
    _mm_storeu_ps(p, rest);
    p += 4;
    rest = _mm256_extractf128_ps(reinterpret_cast<__m256>(v), 1);
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
    p += 2;
    rest = _mm_movehl_ps(rest, rest);
  }
  if (n & 1) _mm_store_ss(p, rest);
}
LITE_INLINE F fma(F a, F b, F c) {
  return reinterpret_cast<F>(_mm256_fmadd_ps(reinterpret_cast<__m256>(a),
                                             reinterpret_cast<__m256>(b),
                                             reinterpret_cast<__m256>(c)));
}
LITE_INLINE F min(F a, F b) {
  return reinterpret_cast<F>(
      _mm256_min_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
}
LITE_INLINE F max(F a, F b) {
  return reinterpret_cast<F>(
      _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
}
LITE_INLINE F sqrt(F v) {
  return reinterpret_cast<F>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
}
LITE_INLINE F round(F v) {
  return reinterpret_cast<F>(_mm256_round_ps(reinterpret_cast<__m256>(v),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LITE_INLINE F floor(F v) {
  return reinterpret_cast<F>(_mm256_floor_ps(reinterpret_cast<__m256>(v)));
}
LITE_INLINE I to_int(F v) {
  return reinterpret_cast<I>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(v)));
}

LITE_INLINE F permute(F v, I at) {
  return reinterpret_cast<F>(
      _mm256_permutevar8x32_ps(reinterpret_cast<__m256>(v), reinterpret_cast<__m256i>(at)));
}

#else  // four lanes: SSE2 and NEON

#if defined(__aarch64__)
LITE_INLINE F permute(F v, I at) {
  const I bytes = at * 0x04040404 + 0x03020100;
  return reinterpret_cast<F>(
      vqtbl1q_u8(reinterpret_cast<uint8x16_t>(v), reinterpret_cast<uint8x16_t>(bytes)));
}
// sum += a * v[lane]. As the instruction: gcc copies sums that an intrinsic returns.
template <int lane>
LITE_INLINE void add_product(F& sum, F a, F v) {
  asm("fmla %0.4s, %1.4s, %2.s[%c3]" : "+w"(sum) : "w"(a), "w"(v), "i"(lane));
}
// Two vectors a load or store; p moves on, or stays.
LITE_INLINE void load_pair(F& first, F& second, const float*& p) {
  asm volatile("ldp %q0, %q1, [%2], 32" : "=w"(first), "=w"(second), "+r"(p));
}
// Into the registers that hold both now: what a loop keeps in them stays where it is.
LITE_INLINE void reload_pair(F& first, F& second, const float*& p) {
  asm volatile("ldp %q0, %q1, [%2], 32" : "+w"(first), "+w"(second), "+r"(p));
}
template <int kBytes = 0>
LITE_INLINE void load_pair_at(F& first, F& second, const float* p) {
  asm volatile("ldp %q0, %q1, [%2, %3]" : "=w"(first), "=w"(second) : "r"(p), "i"(kBytes));
}
template <int kBytes = 0>
LITE_INLINE void store_pair(float* p, F first, F second) {
  asm volatile("stp %q0, %q1, [%2, %3]" ::"w"(first), "w"(second), "r"(p), "i"(kBytes) : "memory");
}
// How many of eight rows, so many bytes apart, the offset of these two reaches.
template <int kBytes>
constexpr int kRowsInReach = 7 * kBytes <= 1008 ? 8 : 1008 / kBytes + 1;
// f of each number from 0 up, as a constant, as such an offset is.
template <int kValue>
struct Number {
  constexpr operator int() const { return kValue; }
};
template <int kCount, int kFrom = 0, class Use>
LITE_INLINE void unroll(const Use& use) {
  if constexpr (kFrom < kCount) {
    use(Number<kFrom>{});
    unroll<kCount, kFrom + 1>(use);
  }
}
LITE_INLINE void store_next_pair(float*& p, F first, F second) {
  asm volatile("stp %q1, %q2, [%0], 32" : "+r"(p) : "w"(first), "w"(second) : "memory");
}
LITE_INLINE F load_part(const float* p, int n) {
  if (n >= 4) return load(p);
  const F last = reinterpret_cast<F>(vsetq_lane_f32(n & 1 ? p[n - 1] : 0, vdupq_n_f32(0), 0));
  if (n < 2) return last;
  return reinterpret_cast<F>(
      vcombine_f32(vld1_f32(p), vget_low_f32(reinterpret_cast<float32x4_t>(last))));
}
LITE_INLINE void store_part(float* p, F v, int n) {
  if (n >= 4) return store(p, v);
  if (n >= 2) vst1_f32(p, vget_low_f32(reinterpret_cast<float32x4_t>(v)));
  if (n == 1) *p = v[0];
  if (n == 3) p[2] = v[2];
}
#else
LITE_INLINE F load_part(const float* p, int n) {
  if (n >= kLanes) return load(p);
  F v{};
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
}
LITE_INLINE void store_part(float* p, F v, int n) {
  if (n >= kLanes) return store(p, v);
  for (int i = 0; i < n; i++) p[i] = v[i];
}
#endif

#if defined(__SSE2__)
LITE_INLINE F fma(F a, F b, F c) { return a * b + c; }
LITE_INLINE F min(F a, F b) {
  return reinterpret_cast<F>(_mm_min_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
}
LITE_INLINE F max(F a, F b) {
  return reinterpret_cast<F>(_mm_max_ps(reinterpret_cast<__m128>(a), reinterpret_cast<__m128>(b)));
}
LITE_INLINE F sqrt(F v) { return reinterpret_cast<F>(_mm_sqrt_ps(reinterpret_cast<__m128>(v))); }
LITE_INLINE I to_int(F v) {
  return reinterpret_cast<I>(_mm_cvtps_epi32(reinterpret_cast<__m128>(v)));
}
#if defined(__wasm__)
LITE_INLINE F round(F v) { return reinterpret_cast<F>(wasm_f32x4_nearest(reinterpret_cast<v128_t>(v))); }
LITE_INLINE F floor(F v) { return reinterpret_cast<F>(wasm_f32x4_floor(reinterpret_cast<v128_t>(v))); }
#else
LITE_INLINE F round(F v) {
  // From 2^23 on (infinities and NaN too) every float is whole: keep it, and keep the sign of 0.
  const I sign = as_int(v) & static_cast<int32_t>(0x80000000);
  const F whole = as_float(as_int(to_float(to_int(v))) | sign);
  return select(abs(v) < splat(8388608.0f), whole, v);
}
LITE_INLINE F floor(F v) {
  const F whole = round(v);
  return select(whole > v, whole - splat(1.0f), whole);
}
#endif
#else
LITE_INLINE F fma(F a, F b, F c) {
  return reinterpret_cast<F>(vfmaq_f32_or_two(reinterpret_cast<float32x4_t>(c),
                                              reinterpret_cast<float32x4_t>(a),
                                              reinterpret_cast<float32x4_t>(b)));
}
LITE_INLINE F min(F a, F b) {
  return reinterpret_cast<F>(
      vminq_f32(reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
}
LITE_INLINE F max(F a, F b) {
  return reinterpret_cast<F>(
      vmaxq_f32(reinterpret_cast<float32x4_t>(a), reinterpret_cast<float32x4_t>(b)));
}
LITE_INLINE F sqrt(F v) {
  return reinterpret_cast<F>(vsqrtq_f32(reinterpret_cast<float32x4_t>(v)));
}
LITE_INLINE F round(F v) {
  return reinterpret_cast<F>(vrndnq_f32(reinterpret_cast<float32x4_t>(v)));
}
LITE_INLINE F floor(F v) {
  return reinterpret_cast<F>(vrndmq_f32(reinterpret_cast<float32x4_t>(v)));
}
LITE_INLINE I to_int(F v) {
  return reinterpret_cast<I>(vcvtnq_s32_f32(reinterpret_cast<float32x4_t>(v)));
}
#endif
#endif
#endif

#if defined(__ARM_NEON)
LITE_INLINE F minimum(F a, F b) { return min(a, b); }
LITE_INLINE F maximum(F a, F b) { return max(a, b); }
#else
LITE_INLINE F minimum(F a, F b) { return select(b == b, min(b, a), b); }
LITE_INLINE F maximum(F a, F b) { return select(b == b, max(b, a), b); }
#endif

LITE_INLINE float sum(F v) {
  float s = 0;
  LITE_UNROLL for (int i = 0; i < kLanes; i++) s += v[i];
  return s;
}
LITE_INLINE float highest(F v) {
  float s = v[0];
  LITE_UNROLL for (int i = 1; i < kLanes; i++) s = v[i] > s ? v[i] : s;
  return s;
}

// Sums of more numbers than a half can count: two vectors of floats for one of halves.
#if defined(LITE_FP16)
struct Wide {
  float32x4_t low, high;
};
LITE_INLINE Wide widen(F v) {
  const float16x8_t h = reinterpret_cast<float16x8_t>(v);
  return {vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
}
LITE_INLINE F narrow(Wide v) {
  return reinterpret_cast<F>(vcvt_high_f16_f32(vcvt_f16_f32(v.low), v.high));
}
LITE_INLINE Wide operator+(Wide a, Wide b) { return {a.low + b.low, a.high + b.high}; }
LITE_INLINE Wide operator*(Wide a, float s) { return {a.low * s, a.high * s}; }
#else
typedef F Wide;
LITE_INLINE Wide widen(F v) { return v; }
LITE_INLINE F narrow(Wide v) { return v; }
#endif

LITE_INLINE void prefetch_l1(const void* p) { __builtin_prefetch(p, 0, 3); }
LITE_INLINE void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }
LITE_INLINE void prefetch_l2(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace lite::LITE_ISA
