// Kernels between real numbers and 8- or 16-bit integers, and elementwise kernels on such integers:
//
//   real = (q - zero_point) * scale;   q = clamp(round_half_even(real / scale) + zero_point)
//
// All in float32, in this order of operations: results are bit-exact everywhere. With rounding="litert"
// a number becomes an integer by a product with float32(1 / scale), and sums and products are computed
// as int8_litert.h says.
#include "ops/broadcast.h"
#include "ops/convert.h"
#include "int8_litert.h"
#include "int8_tile.h"

namespace lite::LITE_ISA {

namespace {

bool is_small_integer(DType type) {
  return type == DType::kI8 || type == DType::kU8 || type == DType::kI16 || type == DType::kU16;
}

void range_of(DType type, float* low, float* high) {
  *low = type == DType::kI8 ? -128 : type == DType::kI16 ? -32768 : 0;
  *high = type == DType::kI8 ? 127 : type == DType::kU8 ? 255 : type == DType::kI16 ? 32767 : 65535;
}

// Scale and zero point, one or one per entry of an axis.
struct Params {
  const Tensor *scale, *zero;
};

bool read_params(const Step& step, Env& env, int at, int64_t entries, DType type, Params* p) {
  p->scale = input_of(step, at);
  p->zero = input_of(step, at + 1);
  if (!p->scale || p->scale->dtype != DType::kF32 || !is_dense(*p->scale) ||
      (p->scale->size != 1 && p->scale->size != entries))
    return env.fail("a scale must be f32, one or %lld values", static_cast<long long>(entries));
  if (p->zero && (p->zero->dtype != type || !is_dense(*p->zero) ||
                  (p->zero->size != 1 && p->zero->size != entries)))
    return env.fail("a zero point must have its tensor's type, one or %lld values",
                    static_cast<long long>(entries));
  return true;
}

float scale_at(const Params& p, int64_t i) {
  return p.scale->as<float>()[p.scale->size == 1 ? 0 : i];
}
float zero_at(const Params& p, int64_t i) {
  if (!p.zero) return 0;
  const int64_t at = p.zero->size == 1 ? 0 : i;
  int64_t zero;
  load_ints(p.zero->dtype, p.zero->data + at * dtype_bytes(p.zero->dtype), 1, 1, &zero);
  return static_cast<float>(zero);
}

bool is_byte(DType type) { return type == DType::kI8 || type == DType::kU8; }

// n <= kChunk elements. Not inlined: a multiply and a later add must not become one operation.
__attribute__((noinline)) void to_real(const Tensor& t, int64_t at, int64_t stride, int n,
                                       float scale, float zero, float* out) {
  if (is_byte(t.dtype) && stride == 1) {
    const uint8_t flip = t.dtype == DType::kI8 ? 0x80 : 0;
    const int32_t shift = static_cast<int32_t>(zero) + flip;
    const uint8_t* x = t.data + at;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes)
      store(out + i, to_float(widen(x + i, flip) - shift) * scale);
    if (i < n) store_part(out + i, to_float(widen_part(x + i, n - i, flip) - shift) * scale, n - i);
    return;
  }
  int64_t whole[kChunk];
  load_ints(t.dtype, t.data + at * dtype_bytes(t.dtype), stride, n, whole);
  const int32_t shift = static_cast<int32_t>(zero);
  for (int i = 0; i < n; ++i) out[i] = static_cast<float>(static_cast<int32_t>(whole[i]) - shift);
  for (int i = 0; i < n; ++i) out[i] *= scale;
}

__attribute__((noinline)) void to_integer(const float* x, int n, float scale, float zero,
                                          const Tensor& t, int64_t at, bool by_product = false) {
  const float inverse = 1.0f / scale;
  if (is_byte(t.dtype)) {
    const uint8_t flip = t.dtype == DType::kI8 ? 0x80 : 0;
    const int32_t shift = static_cast<int32_t>(zero) + flip;
    const Divisor s = divisor(scale);
    // Quotients beyond are beyond every byte.
    const F low = splat(-512 * scale), high = splat(512 * scale);
    const auto bytes = [&](const float* from) __attribute__((always_inline)) {
      I v[4];
      LITE_UNROLL for (int q = 0; q < 4; ++q) {
        const F real = min(high, at_least(low, load(from + q * kLanes)));
        v[q] = to_int(by_product ? real * splat(inverse) : divide(real, s));
      }
      return narrow(v[0], v[1], v[2], v[3], shift) ^ splat_byte(flip);
    };
    uint8_t* y = t.data + at;
    int i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      // Images come from far, 4 KiB ahead.
      LITE_UNROLL for (int q = 0; q < 4; ++q) prefetch_l1(x + i + 1024 + q * kLanes);
      store_bytes(y + i, bytes(x + i));
    }
    if (i < n) {
      float rest[4 * kLanes] = {};
      memcpy(rest, x + i, (n - i) * sizeof(float));
      store_bytes(y + i, bytes(rest), n - i);
    }
    return;
  }
  float low, high;
  range_of(t.dtype, &low, &high);
  low -= zero;
  high -= zero;
  int64_t whole[kChunk];
  for (int i = 0; i < n; ++i) {
    const float q = by_product ? x[i] * inverse : x[i] / scale;
    const float inside = q > low ? (q < high ? q : high) : low;
    // Adding 1.5 * 2^23 rounds to whole numbers, ties to even.
    const float rounded = (inside + 12582912.0f) - 12582912.0f;
    whole[i] = static_cast<int64_t>(rounded) + static_cast<int64_t>(zero);
  }
  store_ints(t.dtype, whole, n, t.data + at * dtype_bytes(t.dtype));
}

bool is_litert(const Step& step, Env& env, bool* answer) {
  const char* rounding = attr_string(step, "rounding", "");
  *answer = strcmp(rounding, "litert") == 0;
  return *answer || !*rounding || env.fail("rounding %s is not known", rounding);
}

// ---- QuantizeLinear, DequantizeLinear

struct LinearState {
  Params params;
  int64_t entries, inner;  // element i uses entry i / inner % entries
  bool by_product;
};

bool prepare_linear(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  const bool quantize = strcmp(step.op, "QuantizeLinear") == 0;
  if (!x || !y || !same_dims(*x, *y)) return env.fail("needs an input and an output of its shape");
  const Tensor& real = quantize ? *x : *y;
  const Tensor& whole = quantize ? *y : *x;
  if (real.dtype != DType::kF32 ||
      !(is_small_integer(whole.dtype) || (!quantize && whole.dtype == DType::kI32)))
    return env.fail("converts between f32 and 8- or 16-bit integers");
  LinearState* s = static_cast<LinearState*>(env.allocate(sizeof(LinearState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!is_litert(step, env, &s->by_product)) return false;
  const Tensor* scale = input_of(step, 1);
  s->entries = s->inner = 1;
  if (scale && scale->size != 1) {
    int64_t axis = attr_int(step, "axis", 1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank || scale->rank != 1)
      return env.fail("scales must lie along one axis inside rank %d", x->rank);
    s->entries = x->dims[axis];
    for (int i = static_cast<int>(axis) + 1; i < x->rank; ++i) s->inner *= x->dims[i];
  }
  return read_params(step, env, 1, s->entries, whole.dtype, &s->params);
}

void run_linear(const Step& step, int, int thread, int threads, void*) {
  const LinearState& s = *static_cast<const LinearState*>(step.state);
  const Tensor &x = *step.inputs[0], &y = *step.outputs[0];
  const bool quantize = x.dtype == DType::kF32;
  const int64_t run = s.entries == 1 ? x.size : s.inner;  // elements with the same parameters
  int64_t begin, end;
  share(x.size, 64, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end;) {
    const int64_t left = run - i % run, rest = end - i;
    int n = static_cast<int>(left < kChunk ? left : kChunk);
    if (rest < n) n = static_cast<int>(rest);
    const int64_t entry = i / run % s.entries;
    const float scale = scale_at(s.params, entry), zero = zero_at(s.params, entry);
    if (quantize) to_integer(x.as<float>() + i, n, scale, zero, y, i, s.by_product);
    else to_real(x, i, 1, n, scale, zero, y.as<float>() + i);
    i += n;
  }
}

// ---- QLinearAdd, QLinearSub, QLinearMul: inputs a, its scale and zero point, b, ..., y's scale and zero point

struct BinaryState {
  Broadcast plan;
  Params a, b, y;
  bool multiply, subtract, is_litert;
  LitertBinary litert;
};

bool prepare_binary(Step& step, Env& env) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 3), *y = output_of(step, 0);
  if (!a || !b || !y || !is_small_integer(y->dtype) || a->dtype != y->dtype || b->dtype != y->dtype)
    return env.fail("needs two inputs and an output of one 8- or 16-bit type");
  BinaryState* s = static_cast<BinaryState*>(env.allocate(sizeof(BinaryState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->multiply = strcmp(step.op, "QLinearMul") == 0;
  s->subtract = strcmp(step.op, "QLinearSub") == 0;
  if (!is_litert(step, env, &s->is_litert)) return false;
  const Tensor* inputs[] = {a, b};
  return read_params(step, env, 1, 1, y->dtype, &s->a) &&
         read_params(step, env, 4, 1, y->dtype, &s->b) &&
         read_params(step, env, 6, 1, y->dtype, &s->y) &&
         plan_broadcast(env, *y, inputs, 2, &s->plan) &&
         (!s->is_litert || prepare_litert(step, env, &s->litert));
}

// A difference is a sum with the negative of b: -(x * scale) is x * -scale, to the last bit.
float b_scale(const BinaryState& s) { return s.subtract ? -scale_at(s.b, 0) : scale_at(s.b, 0); }

template <bool kMultiply, bool kSigned>
LITE_INLINE B combine(const uint8_t* pa, const uint8_t* pb, int32_t za, int32_t zb, float sa,
                      float sb, const Divisor& d, int32_t zy) {
  I v[4];
  LITE_UNROLL for (int q = 0; q < 4; ++q) {
    const F x = rounded(to_float(widen<kSigned>(pa + q * kLanes) - za) * sa);
    const F z = rounded(to_float(widen<kSigned>(pb + q * kLanes) - zb) * sb);
    v[q] = to_int(divide(kMultiply ? x * z : x + z, d));
  }
  return narrow(v[0], v[1], v[2], v[3], zy);
}

// Dense bytes of one length: 4 vectors at a time, in registers. False when the operands lie otherwise.
template <bool kMultiply, bool kSigned>
bool run_dense(const BinaryState& s, const Step& step, int thread, int threads) {
  const Broadcast& p = s.plan;
  const Tensor &a = *step.inputs[0], &b = *step.inputs[3], &y = *step.outputs[0];
  if (p.rank != 1) return false;
  for (int i = 0; i < 3; ++i)
    if (p.stride[i][0] != 1) return false;
  const float sa = scale_at(s.a, 0), sb = b_scale(s), sy = scale_at(s.y, 0);
  // Beyond that the numbers do not fit int32, where narrow() takes them from.
  const float most = kMultiply ? 255 * sa * (255 * sb) : 255 * sa + 255 * scale_at(s.b, 0);
  if (!(most / sy < 1e6f)) return false;
  const uint8_t flip = kSigned ? 0x80 : 0;
  const int32_t za = static_cast<int32_t>(zero_at(s.a, 0));
  const int32_t zb = static_cast<int32_t>(zero_at(s.b, 0));
  const int32_t zy = static_cast<int32_t>(zero_at(s.y, 0)) + flip;
  const Divisor d = divisor(sy);
  constexpr int kStep = 4 * kLanes;
  int64_t begin, end;
  share(p.count[0], kStep, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; i += kStep) {
    const int n = static_cast<int>(end - i < kStep ? end - i : kStep);
    uint8_t parts[2][kStep];
    const uint8_t *pa = a.data + i, *pb = b.data + i;
    if (n < kStep) {
      store_bytes(parts[0], load_bytes(pa, n));
      store_bytes(parts[1], load_bytes(pb, n));
      pa = parts[0], pb = parts[1];
    }
    const B bytes =
        combine<kMultiply, kSigned>(pa, pb, za, zb, sa, sb, d, zy) ^ splat_byte(flip);
    if (n < kStep) store_bytes(y.data + i, bytes, n);
    else store_bytes(y.data + i, bytes);
  }
  return true;
}

// One operand repeats every row, as a number per channel does: whole rows fill a chunk at once.
// False when the operands lie otherwise.
bool run_rows(const BinaryState& s, const Step& step, int thread, int threads) {
  const Broadcast& p = s.plan;
  if (p.rank != 2 || p.count[1] > kChunk / 2) return false;
  const int64_t c = p.count[1];
  const int full = p.stride[2][0] == 0 ? 1 : 2, row = 3 - full;
  for (int i = 0; i < 3; ++i)
    if (i != row && (p.stride[i][0] != c || p.stride[i][1] != 1)) return false;
  if (p.stride[row][0] != 0 || p.stride[row][1] != 1) return false;
  const Params& of_full = full == 1 ? s.a : s.b;
  const Params& of_row = full == 1 ? s.b : s.a;
  float x[kChunk], z[kChunk];
  const float of_a = scale_at(s.a, 0), of_b = b_scale(s);
  to_real(*step.inputs[row == 1 ? 0 : 3], 0, 1, static_cast<int>(c), row == 1 ? of_a : of_b,
          zero_at(of_row, 0), z);
  const int64_t rows = kChunk / c;
  for (int64_t i = c; i < rows * c; ++i) z[i] = z[i - c];
  int64_t begin, end;
  share(p.count[0], rows, thread, threads, &begin, &end);
  for (int64_t r = begin; r < end; r += rows) {
    const int n = static_cast<int>((end - r < rows ? end - r : rows) * c);
    to_real(*step.inputs[full == 1 ? 0 : 3], r * c, 1, n, full == 1 ? of_a : of_b,
            zero_at(of_full, 0), x);
    for (int k = 0; k < n; ++k) x[k] = s.multiply ? x[k] * z[k] : x[k] + z[k];
    to_integer(x, n, scale_at(s.y, 0), zero_at(s.y, 0), *step.outputs[0], r * c);
  }
  return true;
}

void run_binary(const Step& step, int, int thread, int threads, void*) {
  const BinaryState& s = *static_cast<const BinaryState*>(step.state);
  static constexpr bool (*kDense[2][2])(const BinaryState&, const Step&, int, int) = {
      {run_dense<false, false>, run_dense<false, true>},
      {run_dense<true, false>, run_dense<true, true>}};
  const DType type = step.outputs[0]->dtype;
  if (s.is_litert) {
    const auto run = type == DType::kI8 ? run_litert<true> : run_litert<false>;
    return run(s.litert, s.plan, step, thread, threads);
  }
  if (is_byte(type) && kDense[s.multiply][type == DType::kI8](s, step, thread, threads)) return;
  if (run_rows(s, step, thread, threads)) return;
  const int last = s.plan.rank - 1;
  const int64_t sa = s.plan.stride[1][last], sb = s.plan.stride[2][last];
  float x[kChunk], z[kChunk];
  BroadcastWalk walk;
  for (start_walk(s.plan, thread, threads, &walk); next_piece(&walk);) {
    for (int64_t i = 0; i < walk.length; i += kChunk) {
      const int n = static_cast<int>(walk.length - i < kChunk ? walk.length - i : kChunk);
      to_real(*step.inputs[0], walk.at[1] + i * sa, sa, n, scale_at(s.a, 0), zero_at(s.a, 0), x);
      to_real(*step.inputs[3], walk.at[2] + i * sb, sb, n, b_scale(s), zero_at(s.b, 0), z);
      for (int k = 0; k < n; ++k) x[k] = s.multiply ? x[k] * z[k] : x[k] + z[k];
      to_integer(x, n, scale_at(s.y, 0), zero_at(s.y, 0), *step.outputs[0], walk.at[0] + i);
    }
  }
}

const Kernel kQuant[] = {
    {"QuantizeLinear DequantizeLinear", "any_quantize", prepare_linear, run_linear, kDivisible},
    {"QLinearAdd QLinearSub QLinearMul", "i8_binary", prepare_binary, run_binary, kAcceptsPitch | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(quant, kQuant)
