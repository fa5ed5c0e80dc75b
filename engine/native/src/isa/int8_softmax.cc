// i8_softmax: QLinearSoftmax along any axis. Differences to the maximum are whole numbers d of 0 ... 255, so
//
//   e[d] = round(2^30 exp(-d x_scale));   y = clamp(round((e[d] / sum of e) / y_scale) + zero_point)
//
// is exact: the sum is one of integers, the rest is done in double. All answers of a series are products in
// float first; those that lie so close to the middle of two bytes that a product may round otherwise, are
// divided. Where a series ends before the numbers do, the largest d need no answers: they are all zero_point.
#include <math.h>

#include "int8_tile.h"
#include "ops/byte_table.h"
#include "ops/quant_scalars.h"

namespace lite::LITE_ISA {

namespace {

constexpr int kStep = 4 * kLanes;  // bytes of a vector
// Three roundings of products below 256, 2^-24 each.
constexpr float kSure = 0.5f - 0x1p-14f;

struct State {
  int64_t outer, axis, inner;  // element (o, a, i) at (o * axis + a) * inner + i
  QuantScalars y;
  uint8_t flip;
  WideTable e;
  float falling[256];  // e[255 - i]
};

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || (x->dtype != DType::kI8 && x->dtype != DType::kU8) || y->dtype != x->dtype ||
      !same_dims(*x, *y))
    return env.fail("needs an 8-bit input and an output of its type and shape");
  int64_t axis = attr_int(step, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return env.fail("axis is outside rank %d", x->rank);
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->outer = s->inner = 1;
  s->axis = x->dims[axis];
  for (int i = 0; i < x->rank; ++i)
    if (i != axis) (i < axis ? s->outer : s->inner) *= x->dims[i];
  s->flip = x->dtype == DType::kI8 ? 0x80 : 0;
  QuantScalars in;
  if (!read_scalars(step, env, 1, x->dtype, &in) || !read_scalars(step, env, 3, x->dtype, &s->y))
    return false;
  uint32_t e[256];
  for (int d = 0; d < 256; ++d) {
    e[d] = static_cast<uint32_t>(rint(::exp(-d * static_cast<double>(in.scale)) * (1 << 30)));
    s->falling[255 - d] = static_cast<float>(e[d]);
  }
  make_wide_table(e, &s->e);
  return true;
}

LITE_INLINE uint8_t highest(B v) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
  const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256((__m512i)v),
                                       _mm512_extracti64x4_epi64((__m512i)v, 1));
#else
  const __m256i half = (__m256i)v;
#endif
  // The complement of the lowest complement, which one instruction finds among words.
  const __m128i low = _mm_xor_si128(
      _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)), _mm_set1_epi8(-1));
  const __m128i words = _mm_min_epu8(low, _mm_srli_epi16(low, 8));
  return static_cast<uint8_t>(~_mm_cvtsi128_si32(_mm_minpos_epu16(words)));
#elif defined(__aarch64__)
  return vmaxvq_u8((uint8x16_t)v);
#else
  uint8_t most = v[0];
  for (int i = 1; i < kStep; ++i) most = v[i] > most ? v[i] : most;
  return most;
#endif
}

// The highest of n > 0 bytes that are flipped to unsigned ones.
uint8_t highest_byte(const uint8_t* x, int64_t n, uint8_t flip) {
  B top{};
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) top = max(top, load_bytes(x + i) ^ splat_byte(flip));
  if (i < n && n >= kStep) {
    top = max(top, load_bytes(x + n - kStep) ^ splat_byte(flip));
  } else if (i < n) {
    uint8_t parts[kStep];
    memset(parts, x[0], sizeof parts);
    memcpy(parts, x, static_cast<size_t>(n));
    top = load_bytes(parts) ^ splat_byte(flip);
  }
  return highest(top);
}

// y for d = 255 - i at answer[i]; `unit` is 1 / (total y_scale).
void answer_all(const State& s, uint64_t total, uint8_t* answer) {
  const DType type = s.flip ? DType::kI8 : DType::kU8;
  const double whole = static_cast<double>(total);
  const float unit = static_cast<float>(1 / (whole * static_cast<double>(s.y.scale)));
  I doubtful{};
  int at = 256;
  while (at > 0) {
    at -= kStep;
    I number[4];
    LITE_UNROLL for (int q = 0; q < 4; ++q) {
      const F exact = min(load(s.falling + at + q * kLanes) * unit, splat(512.0f));
      number[q] = to_int(exact);
      doubtful |= abs(exact - to_float(number[q])) > splat(kSure);
    }
    const B bytes = narrow(number[0], number[1], number[2], number[3], s.y.zero + s.flip);
    store_bytes(answer + at, bytes ^ splat_byte(s.flip));
    if (at > 0 && s.falling[at - 1] * unit < 0.25f) {
      memset(answer, s.y.zero, static_cast<size_t>(at));
      break;
    }
  }
  int64_t halves[sizeof(I) / 8], any = 0;
  memcpy(halves, &doubtful, sizeof halves);
  for (int64_t half : halves) any |= half;
  if (!any) return;
  for (int i = at; i < 256; ++i)
    answer[i] = static_cast<uint8_t>(quantise_exactly(s.e.number[255 - i] / whole, s.y, type));
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  uint8_t answer[512];
  int64_t begin, end;
  if (s.axis == 0) return;
  share(s.outer * s.inner, 1, thread, threads, &begin, &end);
  for (int64_t series = begin; series < end; ++series) {
    const int64_t start = series / s.inner * s.axis * s.inner + series % s.inner;
    const uint8_t* x = step.inputs[0]->data + start;
    uint8_t* y = step.outputs[0]->data + start;
    uint8_t highest = 0;
    uint64_t total = 0;
    if (s.inner == 1) {
      highest = highest_byte(x, s.axis, s.flip);
      total = sum_numbers(s.e, highest ^ s.flip, x, s.axis);
    } else {
      for (int64_t i = 0; i < s.axis; ++i) {
        const uint8_t byte = x[i * s.inner] ^ s.flip;
        if (byte > highest) highest = byte;
      }
      for (int64_t i = 0; i < s.axis; ++i)
        total += s.e.number[highest - (x[i * s.inner] ^ s.flip)];
    }
    answer_all(s, total, answer);
    // By the byte as it is stored: d is (highest - x) mod 256, flipped or not.
    memcpy(answer + 256, answer, 256);
    const uint8_t* of_byte = answer + static_cast<uint8_t>(255 - (highest ^ s.flip));
    if (s.inner == 1) map_rows(of_byte, x, 0, y, 0, s.axis, 1);
    else
      for (int64_t i = 0; i < s.axis; ++i) y[i * s.inner] = of_byte[x[i * s.inner]];
  }
}

const Kernel kSoftmax[] = {{"QLinearSoftmax", "i8_softmax", prepare, run, kInPlace | kDivisible}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_softmax, kSoftmax)
