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
#define SOFTPLUS(x) (fmax((x), 0.0f) + log1p(exp(-fabs(x))))
#define SIGMOID(x) (1.0f / (1.0f + exp(-(x))))
