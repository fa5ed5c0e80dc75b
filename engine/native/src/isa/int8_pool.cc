// i8_pool: MaxPool and the quantised average pools on channels-last bytes. Averages are summed as
// integers:  y = clamp(round(float(sum of (x - zero_point)) * (x_scale / (y_scale * cells))) + zero)
// With rounding="litert" a window's is  y = sum of x / cells, ties away from 0, of integers as they are,
// and a whole map's  y = clamp(round(float(sum of x) * (x_scale / y_scale / cells) + bias)),
// bias = y_zero - x_zero * (x_scale / y_scale), each step in float32
#include "ops/pool_shape.h"
#include "ops/quant_scalars.h"
#include "int8_tile.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  PoolShape shape;
  uint8_t flip;
  int32_t x_zero, y_zero;  // as unsigned bytes
  float x_scale, y_scale, bias;
  bool litert, whole;  // whole: one window is the map
};

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || (x->dtype != DType::kI8 && x->dtype != DType::kU8) || y->dtype != x->dtype)
    return env.fail("needs an input and an output of one 8-bit type");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_pool(step, env, &s->shape)) return false;
  if (s->shape.kernel[0] * s->shape.kernel[1] > 1 << 22) return env.fail("window too large");
  s->flip = x->dtype == DType::kI8 ? 0x80 : 0;
  if (s->shape.max) return true;
  QuantScalars a, b;
  if (!read_scalars(step, env, 1, x->dtype, &a) || !read_scalars(step, env, 3, x->dtype, &b))
    return false;
  s->x_scale = a.scale;
  s->y_scale = b.scale;
  s->x_zero = a.zero + s->flip;
  s->y_zero = b.zero + s->flip;
  const char* rounding = attr_string(step, "rounding", "");
  s->litert = strcmp(rounding, "litert") == 0;
  s->whole = strcmp(step.op, "QLinearGlobalAveragePool") == 0;
  volatile const float moved = static_cast<float>(a.zero) * (a.scale / b.scale);  // not fused
  s->bias = static_cast<float>(b.zero) - moved;
  return s->litert || !*rounding || env.fail("rounding %s is not known", rounding);
}

template <class Read>
LITE_INLINE I pool_lanes(const State& s, const uint8_t* x, const PoolWindow& p, Read read) {
  const int64_t down = s.shape.dilation[0] * s.shape.in_row;
  const int64_t right = s.shape.dilation[1] * s.shape.in_pixel;
  I acc{};  // the lowest byte, or no sum
  for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
    for (int64_t kx = p.kx0; kx < p.kx1; ++kx) {
      const I v = read(x + ky * down + kx * right);
      acc = s.shape.max ? (v > acc ? v : acc) : acc + v;
    }
  if (s.shape.max) return acc;
  const int64_t taps = (p.ky1 - p.ky0) * (p.kx1 - p.kx0), cells = p.cells > 0 ? p.cells : 1;
  if (s.litert) {
    const int32_t flip = s.flip, count = static_cast<int32_t>(cells);
    const I sum = acc - static_cast<int32_t>(taps) * flip;
    if (s.whole) {
      const F mean = to_float(sum) * splat(s.x_scale / s.y_scale / static_cast<float>(cells));
      return whole_byte(rounded(mean) + splat(s.bias), static_cast<float>(flip));
    }
    return (sum + (sum > 0 ? splat(count / 2) : splat(-(count / 2)))) / count + flip;
  }
  const float scale = s.x_scale / (s.y_scale * static_cast<float>(cells));
  const F mean = to_float(acc - static_cast<int32_t>(taps * s.x_zero)) * splat(scale);
  return whole_byte(mean, static_cast<float>(s.y_zero));
}

// Largest bytes of a window for the channels that fill whole registers, or with masks for all; returns
// the next channel.
int64_t max_bytes(const State& s, const uint8_t* x, uint8_t* y, const PoolWindow& p, int64_t c,
                  int64_t end) {
  const int64_t down = s.shape.dilation[0] * s.shape.in_row;
  const int64_t right = s.shape.dilation[1] * s.shape.in_pixel;
  const B flip = splat_byte(s.flip);
  for (; c + 4 * kLanes <= end; c += 4 * kLanes) {
    B acc{};
    for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
      for (int64_t kx = p.kx0; kx < p.kx1; ++kx)
        acc = max(acc, load_bytes(x + ky * down + kx * right + c) ^ flip);
    store_bytes(y + c, acc ^ flip);
  }
#if defined(__AVX512BW__)
  if (const int rest = static_cast<int>(end - c); rest > 0) {
    B acc{};
    for (int64_t ky = p.ky0; ky < p.ky1; ++ky)
      for (int64_t kx = p.kx0; kx < p.kx1; ++kx)
        acc = max(acc, load_bytes(x + ky * down + kx * right + c, rest) ^ flip);
    store_bytes(y + c, acc ^ flip, rest);
    c = end;
  }
#endif
  return c;
}

#if defined(__AVX512BW__)
// Whether windows are 2x2 pixels of 8, 16 or 32 bytes, side by side: a register holds several.
bool in_squares(const PoolShape& s) {
  const bool narrow = s.c == 8 || s.c == 16 || s.c == 32;
  return s.max && narrow && s.in_pixel == s.c && s.out_pixel == s.c && s.kernel[0] == 2 &&
         s.kernel[1] == 2 && s.stride[0] == 2 && s.stride[1] == 2 && s.dilation[0] == 1 &&
         s.dilation[1] == 1 && s.pad[0] == 0 && s.pad[1] == 0 && 2 * s.out_h <= s.h &&
         2 * s.out_w <= s.w;
}

// Largest bytes of `count` windows: of the upper and the lower row, then of even and odd pixels.
void max_squares(const State& s, const uint8_t* x, uint8_t* y, int64_t count) {
  const int64_t c = s.shape.c, quads = c / 8;
  alignas(64) int64_t even[8], odd[8];
  for (int64_t i = 0; i < 8; ++i) {
    even[i] = i / quads * 2 * quads + i % quads;
    odd[i] = even[i] + quads;
  }
  const __m512i pick_even = _mm512_load_si512(even), pick_odd = _mm512_load_si512(odd);
  const B flip = splat_byte(s.flip);
  for (int64_t left = count * c; left > 0; left -= 64, x += 128, y += 64) {
    const auto read = [&](int64_t at) {
      const int64_t n = 2 * left - at < 64 ? 2 * left - at : 64;
      if (n <= 0) return B{};
      const uint8_t* from = x + at;
      return max(load_bytes(from, static_cast<int>(n)) ^ flip,
                 load_bytes(from + s.shape.in_row, static_cast<int>(n)) ^ flip);
    };
    const __m512i a = (__m512i)read(0), b = (__m512i)read(64);
    const B largest = max((B)_mm512_permutex2var_epi64(a, pick_even, b),
                          (B)_mm512_permutex2var_epi64(a, pick_odd, b));
    store_bytes(y, largest ^ flip, static_cast<int>(left < 64 ? left : 64));
  }
}
#endif

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
#if defined(__AVX512BW__)
  if (in_squares(s.shape)) {
    for_each_row(s.shape, s.shape.c, thread, threads,
                 [&](int64_t image, int64_t oy, int64_t begin, int64_t end, int64_t, int64_t) {
                   const PoolWindow p = pool_window(s.shape, image, oy, begin);
                   max_squares(s, step.inputs[0]->data + p.from, step.outputs[0]->data + p.to,
                               end - begin);
                 });
    return;
  }
#endif
  for_each_window(s.shape, kLanes, thread, threads,
                  [&](const PoolWindow& p, int64_t c, int64_t end) {
                    const uint8_t* x = step.inputs[0]->data + p.from;
                    uint8_t* y = step.outputs[0]->data + p.to;
                    if (s.shape.max) c = max_bytes(s, x, y, p, c, end);
                    for (; c + kLanes <= end; c += kLanes)
                      shorten(y + c, pool_lanes(s, x + c, p, [&](const uint8_t* q) {
                                return widen(q, s.flip);
                              }), s.flip);
                    const int rest = static_cast<int>(end - c);
                    if (rest > 0)
                      shorten_part(y + c, pool_lanes(s, x + c, p, [&](const uint8_t* q) {
                                     return widen_part(q, rest, s.flip);
                                   }), rest, s.flip);
                  });
}

const Kernel kInt8Pool[] = {{"MaxPool QLinearAveragePool QLinearGlobalAveragePool", "i8_pool",
                             prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_pool, kInt8Pool)
