// Integer 1x1 convolutions and matrix products with few weights that are not 0, in the words that one
// instruction multiplies (four bytes, or two 16-bit numbers): words of zeros are skipped. The integers
// are those of int8_conv.cc.
#include "int8_finish.h"
#include "int8_gemm.h"
#include "sparse_words.h"

namespace lite::LITE_ISA {
namespace {

// Plain NEON multiplies 16-bit numbers, like x86 without dot products of bytes that do not saturate.
constexpr bool kOfBytes = kBytes && !kSaturates;
constexpr int kWordDepth = kOfBytes ? 4 : 2;
typedef std::conditional_t<kOfBytes, int8_t, int16_t> WordWeight;

// A word that is skipped saves its product among the dense ones, one that is not costs more than that,
// and turning rows around costs as much as kTurning words do. Measured, on AArch64 in instructions.
#if defined(__ARM_NEON)
constexpr double kEvenShare = kOfBytes ? 0.4 : 0.6, kTurning = 24;
#else
constexpr double kEvenShare = kOfBytes ? 0.5 : kSaturates ? 0.6 : 0.8, kTurning = kOfBytes ? 8 : 7;
#endif
constexpr int64_t kLeastWeights = 1024;

struct IntMath {
  typedef int32_t Word;
  typedef I Vector;
#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_DOTPROD)
  // Sums of the products of rows 0 and 1, and of rows 2 and 3.
  struct Sum {
    int32x4_t low, high;
  };
  static LITE_INLINE Sum from(int32_t v) {
    const int32x4_t once = {v, 0, v, 0};
    return {once, once};
  }
  static LITE_INLINE void add(Sum& sum, I x, I w) {
    const int16x8_t a = (int16x8_t)x, b = (int16x8_t)w;
    sum.low = vmlal_s16(sum.low, vget_low_s16(a), vget_low_s16(b));
    sum.high = vmlal_s16(sum.high, vget_high_s16(a), vget_high_s16(b));
  }
  static LITE_INLINE int32x4_t pairs(Sum s) {
    return vcombine_s32(vpadd_s32(vget_low_s32(s.low), vget_high_s32(s.low)),
                        vpadd_s32(vget_low_s32(s.high), vget_high_s32(s.high)));
  }
  static LITE_INLINE I total(Sum a, Sum b) { return (I)vaddq_s32(pairs(a), pairs(b)); }
  static LITE_INLINE I total(Sum a) { return (I)pairs(a); }
#else
  typedef I Sum;
  static LITE_INLINE I from(int32_t v) { return splat(v); }
#if defined(LITE_SATURATES)
  static LITE_INLINE void add(I& sum, I x, I w) { sum += (I)_mm256_madd_epi16((__m256i)x, (__m256i)w); }
#else
  static LITE_INLINE void add(I& sum, I x, I w) { dot(sum, x, w); }
#endif
  static LITE_INLINE I total(I a, I b) { return a + b; }
  static LITE_INLINE I total(I a) { return a; }
#endif
};

struct State {
  int64_t m, k, n, lda, ldc, ldr;
  int64_t x_origin, y_origin, r_origin;
  int32_t residual;        // input of the step, or -1
  SparseMatrix<int32_t> weights;
  const float* scale;      // [n], padded to whole vectors
  QuantParams quant;
  OperandForm form;
  ThreadGrid grid;
};

// Bytes of different signedness are flipped, or centred where 16 bits are multiplied.
OperandForm form_of(const QuantParams& q) {
  if (kOfBytes) return {static_cast<uint8_t>(q.x_signed != kDotSigned ? 0x80 : 0), 0};
  return {static_cast<uint8_t>(q.x_signed ? 0x80 : 0), q.x_signed ? q.x_zero + 128 : q.x_zero};
}

bool pack(Env& env, const IntShape& shape, State* s) {
  const IntWeightView& v = shape.w;
  const auto weight = [&](int64_t k, int64_t n) {
    return k < s->k ? centred_weight(s->quant, *v.tensor, n, v.origin + n * v.out + k * v.in) : 0;
  };
  const auto at = [&](int64_t word, int64_t n) {
    WordWeight parts[kWordDepth];
    for (int i = 0; i < kWordDepth; ++i)
      parts[i] = static_cast<WordWeight>(weight(word * kWordDepth + i, n));
    int32_t whole;
    memcpy(&whole, parts, sizeof whole);
    return whole;
  };
  const int64_t words = (s->k + kWordDepth - 1) / kWordDepth;
  if (!pack_sparse(env, words, s->n, at, [&](int64_t w, int64_t n) { return at(w, n) == 0; },
                   &s->weights)) {
    return false;
  }
  // The byte as it is multiplied stands for value + offset: the zero point moves with it.
  const int32_t offset = s->quant.x_signed == kDotSigned ? 0 : kDotSigned ? -128 : 128;
  const int32_t zero = kOfBytes ? s->quant.x_zero + offset : 0;
  int32_t* bias = const_cast<int32_t*>(s->weights.bias);
  for (int64_t n = 0; n < s->n; ++n) {
    uint32_t sum = 0;  // sums of int32 wrap, here as in the dot products
    for (int64_t k = 0; k < s->k; ++k) sum += static_cast<uint32_t>(weight(k, n));
    bias[n] = static_cast<int32_t>(static_cast<uint32_t>(shape.bias ? shape.bias[n] : 0) -
                                   static_cast<uint32_t>(zero) * sum);
  }
  return true;
}

bool takes(const ConvShape& c) {
  for (int i = 0; i < 2; ++i)
    if (c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0) return false;
  // Padding at the end alone makes the output larger than the input.
  const bool same = c.in.images == c.out.images && c.in.h == c.out.h && c.in.w == c.out.w;
  return same && c.groups == 1 && one_long_row(c.in) && one_long_row(c.out) &&
         (!c.has_residual || one_long_row(c.residual));
}

bool prepare(Step& step, Env& env) {
  IntShape shape;
  QuantParams quant;
  if (!read_int_shape(step, env, &shape) || !read_int_params(step, env, shape, &quant)) return false;
  const ConvShape& c = shape.conv;
  if (!takes(c)) return env.fail("takes 1x1 convolutions of stride 1, one group and no padding");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  step.state = s;
  if (!s) return env.out_of_memory();
  s->m = c.out.images * c.out.h * c.out.w;
  s->k = c.group_in;
  s->n = c.group_out;
  if (s->k > INT32_MAX) return env.fail("inner dim too large");
  s->lda = c.in.pixel;
  s->ldc = c.out.pixel;
  s->x_origin = c.in.origin;
  s->y_origin = c.out.origin;
  s->residual = quant.residual.input;
  if (c.has_residual) s->ldr = c.residual.pixel, s->r_origin = c.residual.origin;
  s->quant = quant;
  s->form = form_of(quant);
  if (!pack(env, shape, s)) return false;
  float* scale = static_cast<float*>(env.allocate(static_cast<size_t>(s->n + kLanes) * 4));
  if (!scale) return env.out_of_memory();
  memcpy(scale, quant.scale, static_cast<size_t>(s->n) * 4);
  s->scale = scale;
  size_t words;
  if (!mul_size(static_cast<size_t>(s->weights.words + 2 * kLanes), kBlock * 4, &words))
    return env.fail("inner dim too large");
  // A block of words, then kLanes columns of sums, or before them copies of kLanes rows.
  const size_t copies = static_cast<size_t>(s->weights.words) * kLanes * 4;
  step.scratch_bytes = words + copies;
  const int64_t blocks = (s->m + kBlock - 1) / kBlock, columns = (s->n + kLanes - 1) / kLanes;
  const double each =
      static_cast<double>(s->weights.entries + 1) / static_cast<double>(columns + 1) * kMostVectors;
  s->grid = choose_grid(env.threads, blocks, columns, each, 0,
                        static_cast<double>(s->weights.words * blocks * kMostVectors));
  const char* name = strcmp(step.op, "QLinearConv") == 0 ? "i8_conv_sparse" : "i8_gemm_sparse";
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", name, kBlock, s->weights.width);
  return true;
}

// Others, centred, may need 16 bits.
bool suits(const Step& step, Env& env) {
  IntShape s;
  return !kOfBytes || (read_int_shape(step, env, &s) && weights_are_centred(step, *s.w.tensor, s.w_name));
}

// Whether skipping is faster than multiplying (`python -m benchmarks.sparse --int8`): what each word
// that is skipped saves pays for turning its rows around.
bool pays(const Step& step, Env& env) {
  IntShape s;
  if (!read_int_shape(step, env, &s) || !takes(s.conv)) return false;
  if (!weights_are_centred(step, *s.w.tensor, s.w_name)) return false;
  const int64_t rows = s.conv.out.images * s.conv.out.h * s.conv.out.w;
  const int64_t k = s.conv.group_in, n = s.conv.group_out, words = (k + kWordDepth - 1) / kWordDepth;
  if (rows < kLanes || k * n < kLeastWeights) return false;
  const int8_t* w = reinterpret_cast<const int8_t*>(s.w.tensor->data) + s.w.origin;
  int64_t full = 0;
  for (int64_t o = 0; o < n; ++o)
    for (int64_t i = 0; i < k; i += kWordDepth) {
      bool any = false;
      for (int64_t j = i; j < i + kWordDepth && j < k; ++j) any |= w[o * s.w.out + j * s.w.in] != 0;
      full += any;
    }
  const double share = static_cast<double>(full) / static_cast<double>(words * n);
  return static_cast<double>(words) * (kEvenShare - share) > kTurning;
}

// kLanes rows of bytes from `row` on, of which the last one is repeated, to words [word][kBlock].
void turn_in(const State& s, const uint8_t* x, int64_t row, WordWeight* __restrict__ copy, float* to) {
  const int64_t words = s.weights.words, padded = words * kWordDepth, k_end = s.k;
  const OperandForm form = s.form;  // bytes that are written may alias it
  for (int i = 0; i < kLanes; ++i) {
    const uint8_t* from = x + (row + i < s.m ? row + i : s.m - 1) * s.lda;
    WordWeight* out = copy + i * padded;
    for (int64_t k = 0; k < k_end; ++k)
      out[k] = static_cast<WordWeight>((from[k] ^ form.flip) - form.shift);
    for (int64_t k = k_end; k < padded; ++k) out[k] = 0;
  }
  turn_rows(reinterpret_cast<const float*>(copy), words, kLanes, words, to);
}

// kLanes rows of at most kLanes columns, from [column][kBlock].
void turn_out(const int32_t* from, int64_t rows, IntTile& t) {
  F square[kLanes];
  LITE_UNROLL for (int i = 0; i < kLanes; ++i)
      square[i] = load(reinterpret_cast<const float*>(from) + i * kBlock);
  transpose(square);
  constexpr int kHalf = kLanes / 2;
  if (rows >= kLanes) {
    for (int first = 0; first < kLanes; first += kHalf) {
      I sums[kHalf][1];
      LITE_UNROLL for (int i = 0; i < kHalf; ++i) sums[i][0] = as_int(square[first + i]);
      finish(t, sums);
      t.c += kHalf * t.ldc;
      t.residual = t.residual ? t.residual + kHalf * t.ldr : nullptr;
    }
    return;
  }
  for (int i = 0; i < rows; ++i) {
    I sums[1][1] = {{as_int(square[i])}};
    finish(t, sums);
    t.c += t.ldc;
    t.residual = t.residual ? t.residual + t.ldr : nullptr;
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const auto [begin, end, first, last] = part_of(s.grid, (s.m + kBlock - 1) / kBlock, 1,
                                                 (s.n + kLanes - 1) / kLanes, thread);
  float* turned = static_cast<float*>(scratch);
  int32_t* made = reinterpret_cast<int32_t*>(turned + s.weights.words * kBlock);
  const uint8_t* x = step.inputs[0]->data + s.x_origin;
  uint8_t* y = step.outputs[0]->data + s.y_origin;
  const uint8_t* r = s.residual < 0 ? nullptr : step.inputs[s.residual]->data + s.r_origin;
  IntTile t;
  t.zero = s.quant.y_zero + (s.quant.y_signed ? 128 : 0);
  t.flip = s.quant.y_signed ? 0x80 : 0;
  t.low = static_cast<uint8_t>(s.quant.low + t.flip);
  t.high = static_cast<uint8_t>(s.quant.high + t.flip);
  t.addend = addend_of(s.quant.residual);
  t.ldc = s.ldc;
  t.ldr = s.ldr;
  t.half_c = kHalfRows * t.ldc;
  t.half_r = kHalfRows * t.ldr;
  for (int64_t block = begin; block < end && first < last; ++block) {
    const int64_t row = block * kBlock, rows = s.m - row < kBlock ? s.m - row : kBlock;
    const int vectors = static_cast<int>((rows + kLanes - 1) / kLanes);
    for (int v = 0; v < vectors; ++v)
      turn_in(s, x, row + v * kLanes, reinterpret_cast<WordWeight*>(made), turned + v * kLanes);
    for (int64_t part = first; part < last; ++part) {
      const int64_t n0 = part * kLanes;
      t.columns = static_cast<int32_t>(s.n - n0 < kLanes ? s.n - n0 : kLanes);
      t.scale = s.scale + n0;
      sparse_columns<IntMath>(s.weights, vectors, reinterpret_cast<const int32_t*>(turned), n0,
                              t.columns, made);
      for (int v = 0; v < vectors; ++v) {
        const int64_t at = row + v * kLanes;
        t.c = y + at * s.ldc + n0;
        t.residual = r ? r + at * s.ldr + n0 : nullptr;
        turn_out(made + v * kLanes, rows - v * kLanes, t);
      }
    }
  }
}

// By their own names for tuning and overrides, and before int8_conv.cc where they pay.
const Kernel kSparseInt8[] = {
    {"QLinearConv", "i8_conv2d_gemm", prepare, run, kAcceptsPitch | kDivisible, pays},
    {"QLinearMatMul QGemm", "i8_gemm", prepare, run, kDivisible, pays},
    {"QLinearConv", "i8_conv_sparse", prepare, run, kAcceptsPitch | kDivisible, suits},
    {"QLinearMatMul QGemm", "i8_gemm_sparse", prepare, run, kDivisible, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(sparse_int8, kSparseInt8)
