// After common.h in every i8_*.cl. Kernels of integers compute with all bytes as u8: those of i8 have their highest
// bit flipped and 128 more as zero point.
#pragma OPENCL FP_CONTRACT OFF
// A vector of this type to any address. PoCL's vstore of bytes stores one after the other.
#ifdef CPU
#define STORE_AT(type, p, v)                                                  \
  do {                                                                        \
    typedef type anywhere_ __attribute__((aligned(1)));                       \
    *(global anywhere_ *)(p) = (v);                                           \
  } while (0)
#else
#define STORE_AT(type, p, v) PASTE(vstore, V)((v), 0, (p))
#endif
#if V == 1
#define IV int
#define UV uchar
#define TO_INT(v) ((int)(v))
#define TO_FLOAT(v) ((float)(v))
#define TO_BYTE(v) ((uchar)(v))
#define BITS(v) as_int(v)
#define LDB(p, i) (p)[i]
#define STB(p, i, v) (p)[i] = (v)
#define LDIV(p, i) (p)[i]
#define LDSV(p, i) (p)[i]
#else
#define IV PASTE(int, V)
#define UV PASTE(uchar, V)
#define TO_INT(v) PASTE(convert_int, V)(v)
#define TO_FLOAT(v) PASTE(convert_float, V)(v)
#define TO_BYTE(v) PASTE(convert_uchar, V)(PASTE(convert_int, V)(v))
#define BITS(v) PASTE(as_int, V)(v)
#ifdef ALIGNED
#define LDB(p, i) (*(global const UV *)((p) + (i)))
#define STB(p, i, v) *(global UV *)((p) + (i)) = (v)
#else
#define LDB(p, i) PASTE(vload, V)(0, (p) + (i))
#define STB(p, i, v) STORE_AT(UV, (p) + (i), v)
#endif
#define LDIV(p, i) PASTE(vload, V)(0, (p) + (i))
#define LDSV(p, i) PASTE(vload, V)(0, (p) + (i))
#endif
#define FLIP(v, bits) ((v) ^ (uchar)(bits))
// A product with which no later sum is fused: `nothing` is 0, which compilers do not know.
#define ROUNDED(x) TO_ROUNDED(x)
#if V == 1
#define TO_ROUNDED(x) as_float(as_int(x) ^ nothing)
#else
#define TO_ROUNDED(x) PASTE(as_float, V)(PASTE(as_int, V)(x) ^ nothing)
#endif
// x / s as IEEE 754 rounds it, of `inverse`, which is 1 / s rounded (Markstein 1990). |x| is below 2^20·s.
#ifdef CPU
#define QUOTIENT(x, s, inverse) ((void)(inverse), (x) / (s))
#else
#define QUOTIENT(x, s, inverse) quotient(x, s, inverse)
static inline FV quotient(FV x, float s, float inverse) {
  const FV first = x * inverse;
  const FV near = fma(fma(-first, (FV)(s), x), (FV)(inverse), first);
  return fma(fma(-near, (FV)(s), x), (FV)(inverse), near);
}
#endif
// s + the dot product of the four signed bytes of two words; with -DDOT_QCOM those of x are unsigned.
#if defined(DOT_KHR)
#define DOT(w, x, s) ((s) + dot_4x8packed_ss_int(w, x))
#elif defined(DOT_ARM)
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_int8 : enable
#define DOT(w, x, s) ((s) + arm_dot(as_char4(w), as_char4(x)))
#elif defined(DOT_ARM_ADD)
#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable
#define DOT(w, x, s) arm_dot_acc(as_char4(w), as_char4(x), s)
#elif defined(DOT_QCOM)
#pragma OPENCL EXTENSION cl_qcom_dot_product8 : enable
#define DOT(w, x, s) qcom_dot8_acc(w, x, s)
#elif defined(DOT_PTX)
#define DOT(w, x, s) dot_of(w, x, s)
static inline int dot_of(uint w, uint x, int s) {
  int sum;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(w), "r"(x), "r"(s));
  return sum;
}
#else
#define DOT(w, x, s) dot_of(as_char4(w), as_char4(x), s)
static inline int dot_of(char4 w, char4 x, int s) {
  return s + (int)w.x * (int)x.x + (int)w.y * (int)x.y + (int)w.z * (int)x.z + (int)w.w * (int)x.w;
}
#endif
// What a layer ends with. y = clamp(rint(acc·scale) + y_zero), or with a residual r (adding 1)
// y = clamp(rint(acc·scale + (r - r_zero)·r_ratio) + y_zero), acc·scale itself becoming a byte of scale s and
// zero point s_zero before (adding 2).
#define REQUANTIZE int y_flip, float y_zero, int adding, int r_flip, int r_zero, float r_ratio, float s_zero, float s_ratio, int nothing
// The same of a layer without a residual, for kernels that ask once: a branch for each number costs more than the rest.
#define PLAIN_ARGS y_flip, y_zero, 0, 0, 0, 0.0f, 0.0f, 0.0f, nothing
#define REQUANTIZE_ARGS y_flip, y_zero, adding, r_flip, r_zero, r_ratio, s_zero, s_ratio, nothing
// Next to 1.5·2^23 floats are whole numbers, and the last bits are those of the number: a sum rounds as rint does, at
// a fraction of what conversions cost on GPUs. NaN becomes `low`.
#define WHOLE 12582912.0f
#ifdef CPU
#define BETWEEN(v, low, high) AT_MOST((v) > (low) ? (v) : (FV)(low), (FV)(high))
#else
#define BETWEEN(v, low, high) fmin(fmax(v, (FV)(low)), (FV)(high))
#endif
// clamp(rint(v) + zero), from 0 to 255, flipped by `flip`, 128 or 0: in a byte to add 128 is to flip the highest bit.
static inline UV nearest_byte(FV v, float zero, int flip) {
  const FV whole = BETWEEN(v, -zero, 255.0f - zero) + WHOLE;
  return TO_BYTE(BITS(whole) + ((int)zero + flip));
}
static inline UV requantized(IV acc, FV scale, UV r, REQUANTIZE) {
  FV v = TO_FLOAT(acc) * scale;
  if (adding == 2) v = (BETWEEN(v, -s_zero, 255.0f - s_zero) + WHOLE - WHOLE) * s_ratio;
  if (adding) {
    const FV more = TO_FLOAT(TO_INT(FLIP(r, r_flip)) - r_zero) * r_ratio;
    v = ROUNDED(v) + ROUNDED(more);
  }
  return nearest_byte(v, y_zero, y_flip);
}
// What kernels of two tensors are told (i8_binary.cl); ways that have no use for a number get 0.
#define OPERANDS int flip, int a_zero, int b_zero, int y_zero, int a_whole, int a_exponent, int b_whole, int b_exponent, int y_whole, int y_exponent, float a_scale, float b_scale, float y_scale, float inverse, int nothing
#define OPERANDS_ARGS flip, a_zero, b_zero, y_zero, a_whole, a_exponent, b_whole, b_exponent, y_whole, y_exponent, a_scale, b_scale, y_scale, inverse, nothing
