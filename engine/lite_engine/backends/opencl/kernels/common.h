// Prefix of every .cl file. Values are stored as float or half (-DHALF) and computed in float.
#ifdef HALF
#define T half
#define LD(p, i) vload_half((i), (p))
#define ST(p, i, v) vstore_half((v), (i), (p))
#define LD4(p, i) vload_half4(0, (p) + (i))
#define ST4(p, i, v) vstore_half4((v), 0, (p) + (i))
#define LD8(p, i) vload_half8(0, (p) + (i))
#define ST8(p, i, v) vstore_half8((v), 0, (p) + (i))
#define LD16(p, i) vload_half16(0, (p) + (i))
#define ST16(p, i, v) vstore_half16((v), 0, (p) + (i))
#else
#define T float
#define LD(p, i) (p)[i]
#define ST(p, i, v) (p)[i] = (v)
#define LD4(p, i) vload4(0, (p) + (i))
#define ST4(p, i, v) vstore4((v), 0, (p) + (i))
#define LD8(p, i) vload8(0, (p) + (i))
#define ST8(p, i, v) vstore8((v), 0, (p) + (i))
#define LD16(p, i) vload16(0, (p) + (i))
#define ST16(p, i, v) vstore16((v), 0, (p) + (i))
#endif
// NVIDIA's driver does not list the extension and warns of this line, but refuses halves without it.
#if defined(HALF_TYPES) || defined(HALF_MATH)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

// What a layer ends with, in kernels that take ENDING: a residual, and an activation that is linear in pieces
// by its arguments (Activation.line in options.py), or ACT where that is defined. x is evaluated more than once.
#define ENDING float line_a, float line_b, float low, float high, int gated, int with_residual
#define ENDING_ARGS line_a, line_b, low, high, gated, with_residual
#ifdef ACT
#define END(x) ACT(x)
#else
#define LINEAR_END
#define LINE(x) AT_MOST(AT_LEAST(line_a * (x) + line_b, low), high)
#define END(x) (gated ? (x) * LINE(x) : LINE(x))
#endif
// The unary function of a step: FN(x, a, b) with constants -DACT_A, -DACT_B. Default: identity.
#ifndef ACT
#define ACT(x) (x)
#endif
#ifndef ACT_A
#define ACT_A 0.0f
#endif
#ifndef ACT_B
#define ACT_B 0.0f
#endif
// Where head h of sequence b starts in (batch, heads, rows, size), or (-DPACKED) in (batch, rows, heads·size), with
// `pitch` elements from row to row; and the heads that one row has.
#ifdef PACKED
#define HEAD(b, h, heads, rows, pitch, size) ((size_t)(b) * (rows) * (pitch) + (h) * (size))
#define ROW_HEADS(heads) (heads)
#else
#define HEAD(b, h, heads, rows, pitch, size) (((size_t)(b) * (heads) + (h)) * (rows) * (pitch))
#define ROW_HEADS(heads) 1
#endif
// Element i of an array of six axes, whose sizes but the first are d1 to d5: its places r, i1 … i5, and where those
// are with the strides x0 … x5.
#define SIX_PLACES(i)               \
  int r = i;                        \
  const int i5 = r % d5; r /= d5;   \
  const int i4 = r % d4; r /= d4;   \
  const int i3 = r % d3; r /= d3;   \
  const int i2 = r % d2; r /= d2;   \
  const int i1 = r % d1; r /= d1
#define AT_SIX(x) (r * x##0 + i1 * x##1 + i2 * x##2 + i3 * x##3 + i4 * x##4 + i5 * x##5)
// NaN stays NaN, which fmax, fmin and clamp do not promise; of numbers or vectors, evaluated more than once.
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x))
#define AT_MOST(x, high) ((x) > (high) ? (high) : (x))
#define CLAMP01(x) AT_MOST(AT_LEAST(x, 0.0f), 1.0f)
#define MAXIMUM(p, q) ((q) != (q) ? (q) : AT_LEAST(p, q))
#define MINIMUM(p, q) ((q) != (q) ? (q) : AT_MOST(p, q))
#define SOFTPLUS(x) (fmax((x), 0.0f) + log1p(exp(-fabs(x))))
#define SIGMOID(x) (1.0f / (1.0f + exp(-(x))))

// Vectors of V numbers, 1 where a kernel's options leave it open.
#ifndef V
#define V 1
#endif
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if V == 1
#define FV float
#define LDV(p, i) LD(p, i)
#define STV(p, i, v) ST(p, i, v)
#define LDFV(p, i) (p)[i]
#define STFV(p, i, v) (p)[i] = (v)
#else
#define FV PASTE(float, V)
#if defined(HALF) && defined(ALIGNED) && defined(HALF_TYPES)
// NVIDIA's driver has the types and casts of single numbers, but no conversions of vectors.
#define FV_OF(i) (float)h.s##i
#define HALF_OF(i) h.s##i = (half)v.s##i;
#if V == 4
static inline float4 widened(half4 h) { return (float4)(FV_OF(0), FV_OF(1), FV_OF(2), FV_OF(3)); }
#else
static inline float8 widened(half8 h) {
  return (float8)(FV_OF(0), FV_OF(1), FV_OF(2), FV_OF(3), FV_OF(4), FV_OF(5), FV_OF(6), FV_OF(7));
}
#endif
static inline PASTE(half, V) narrowed(FV v) {
  PASTE(half, V) h;
  HALF_OF(0) HALF_OF(1) HALF_OF(2) HALF_OF(3)
#if V == 8
  HALF_OF(4) HALF_OF(5) HALF_OF(6) HALF_OF(7)
#endif
  return h;
}
#define LDV(p, i) widened(*(global const PASTE(half, V) *)((p) + (i)))
#define STV(p, i, v) *(global PASTE(half, V) *)((p) + (i)) = narrowed(v)
#elif defined(HALF) && defined(ALIGNED)  // every place is a multiple of V: one wide access
#define LDV(p, i) PASTE(vloada_half, V)(0, (p) + (i))
#define STV(p, i, v) PASTE(vstorea_half, V)((v), 0, (p) + (i))
#elif defined(ALIGNED)
#define LDV(p, i) (*(global const FV *)((p) + (i)))
#define STV(p, i, v) *(global FV *)((p) + (i)) = (v)
#elif defined(HALF) && defined(CPU)
// PoCL 3.1 without AVX-512 reads eight halves of vload_half8 by an instruction that faults unless
// they lie at a multiple of 16 bytes.
static inline FV widened(global const half *p) {
  const PASTE(ushort, V) bits = PASTE(vload, V)(0, (global const ushort *)p);
  return PASTE(vloada_half, V)(0, (const half *)&bits);
}
#define LDV(p, i) widened((p) + (i))
#define STV(p, i, v) PASTE(ST, V)(p, i, v)
#else
#define LDV(p, i) PASTE(LD, V)(p, i)
#define STV(p, i, v) PASTE(ST, V)(p, i, v)
#endif
#ifdef ALIGNED
#define LDFV(p, i) (*(global const FV *)((p) + (i)))
#else
#define LDFV(p, i) PASTE(vload, V)(0, (p) + (i))
#endif
#define STFV(p, i, v) PASTE(vstore, V)((v), 0, (p) + (i))
#endif
#ifdef FAST_FMA
#define FMA(a, b, c) fma((FV)(a), (FV)(b), (c))
#else
#define FMA(a, b, c) mad((FV)(a), (FV)(b), (c))
#endif
#define UNROLL _Pragma("unroll")

// F(0) F(1) … F(n−1): values that must stay in registers have names, not indices.
#define EACH(n, F) PASTE(EACH_, n)(F)
#define EACH_1(F) F(0)
#define EACH_2(F) EACH_1(F) F(1)
#define EACH_3(F) EACH_2(F) F(2)
#define EACH_4(F) EACH_3(F) F(3)
#define EACH_5(F) EACH_4(F) F(4)
#define EACH_6(F) EACH_5(F) F(5)
#define EACH_7(F) EACH_6(F) F(6)
#define EACH_8(F) EACH_7(F) F(7)
#define EACH_9(F) EACH_8(F) F(8)
#define EACH_10(F) EACH_9(F) F(9)
#define EACH_11(F) EACH_10(F) F(10)
#define EACH_12(F) EACH_11(F) F(11)
#define EACH_13(F) EACH_12(F) F(12)
#define EACH_14(F) EACH_13(F) F(13)

// s = OP(s, every number of the vector v)
#if V == 1
#define FOLD(v, s, OP) s = OP(s, v)
#else
#define FOLD(v, s, OP)                                       \
  do {                                                       \
    float all_[V];                                           \
    STFV(all_, 0, v);                                        \
    UNROLL for (int f_ = 0; f_ < V; ++f_) s = OP(s, all_[f_]); \
  } while (0)
#endif
// s of all ITEMS (a power of two, at most 64) work-items of a group joined, in eights and then those; every
// one of them gets the result. `part` has PARTS places.
#define PARTS (ITEMS + 8)
#define TOGETHER(part, id, s, OP)                                                  \
  do {                                                                             \
    int from_ = 0, count_ = ITEMS;                                                 \
    part[id] = s;                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                  \
    if (ITEMS > 8) {                                                               \
      if (id < ITEMS / 8) {                                                        \
        s = part[id * 8];                                                          \
        for (int e_ = 1; e_ < 8; ++e_) s = OP(s, part[id * 8 + e_]);               \
        part[ITEMS + id] = s;                                                      \
      }                                                                            \
      from_ = ITEMS, count_ = ITEMS / 8;                                           \
      barrier(CLK_LOCAL_MEM_FENCE);                                                \
    }                                                                              \
    s = part[from_];                                                               \
    for (int e_ = 1; e_ < count_; ++e_) s = OP(s, part[from_ + e_]);               \
    if (ITEMS <= 8) barrier(CLK_LOCAL_MEM_FENCE);                                  \
  } while (0)
// A row of x in whole vectors, each item's in its registers where HOLD of them are enough; HOLD 0 reads
// them every time. EACH_HELD does something with each `held` vector, k its place.
#ifdef ITEMS
#if HOLD
#define HELD(x)                                                                          \
  FV row_[HOLD];                                                                         \
  UNROLL for (int h_ = 0, k = id * V; h_ < HOLD; ++h_, k += ITEMS * V)                   \
    if (k < whole) row_[h_] = LDV(x, k)
#define EACH_HELD(...)                                                                   \
  do {                                                                                   \
    UNROLL for (int h_ = 0; h_ < HOLD; ++h_) {                                           \
      const int k = (h_ * ITEMS + id) * V;                                               \
      if (k < whole) {                                                                   \
        const FV held = row_[h_];                                                        \
        __VA_ARGS__;                                                                     \
      }                                                                                  \
    }                                                                                    \
  } while (0)
#else
#define HELD(x)
#define EACH_HELD(...)                                                                   \
  do {                                                                                   \
    for (int k = id * V; k < whole; k += ITEMS * V) {                                    \
      const FV held = LDV(x, k);                                                         \
      __VA_ARGS__;                                                                       \
    }                                                                                    \
  } while (0)
#endif
#endif
