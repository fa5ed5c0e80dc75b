// 5x5 depthwise convolution of bytes in float32, exact: for instruction sets that have fused products of
// floats but no dot products of bytes, where one operation does more products than with pairs of int16.
// (With 3x3 taps converting costs what it gains, or more.)
//
// A block of channels at a time: the input rows that an output row meets are kept as floats in a ring of
// five, padded with the zero point, so that every byte is converted once. Sums are whole numbers of at
// most 2^24 (suits_floats()), which floats hold, and the zero point is one constant of the bias: the
// integers are those of int8_depthwise.cc.
#pragma once

#include "int8_tile.h"
#include "ops/conv_shape.h"
#include "ops/quant_params.h"

namespace lite::LITE_ISA {

constexpr int kFloatTaps = 5;             // in both directions
constexpr int kFloatBlock = 4 * kLanes;   // channels
constexpr int64_t kExactSum = int64_t{1} << 24;

struct FloatForm {
  int32_t stride;               // columns from one output to the next
  int32_t pixels;               // outputs per tile
  int64_t columns;              // of a row in the ring
  const float* weights;         // [block][ky][kx][kFloatBlock]
  const float* bias;
  const float* scale;
};

struct FloatTile {
  const float* rows[kFloatTaps];   // of the ring, at the first column
  int64_t vectors;              // of channels
  const float* weights;
  const float* bias;
  const float* scale;
  int32_t zero;                 // of y as an unsigned byte
  uint8_t low, high, flip;
  uint8_t* out;
  int64_t out_pixel, channels;
};

// Stride s, kPx outputs.
template <int s, int kPx>
void float_tile(const FloatTile& t) {
  constexpr int k = kFloatTaps;
  I sums[kPx][4];
  if (t.vectors < 4) memset(sums, 0, sizeof sums);
  for (int64_t v = 0; v < t.vectors; ++v) {
    const int64_t c = v * kLanes;
    F acc[kPx];
    const F b = load(t.bias + c);
    LITE_UNROLL for (int p = 0; p < kPx; ++p) acc[p] = b;
    const float* w = t.weights + c;
    for (int ky = 0; ky < k; ++ky, w += k * kFloatBlock) {
      F f[k];
      LITE_UNROLL for (int x = 0; x < k; ++x) f[x] = load(w + x * kFloatBlock);
      const float* column = t.rows[ky] + c;
      LITE_UNROLL for (int j = 0; j < (kPx - 1) * s + k; ++j) {
        const F d = load(column + j * kFloatBlock);
        LITE_UNROLL for (int x = 0; x < k; ++x) {
          const int p = (j - x) / s;
          if (j < x || (j - x) % s != 0 || p >= kPx) continue;
          acc[p] = fma(d, f[x], acc[p]);
        }
      }
    }
    const F scale = load(t.scale + c);
    LITE_UNROLL for (int p = 0; p < kPx; ++p) sums[p][v] = to_int(acc[p] * scale);
  }
  const B low = splat_byte(t.low), high = splat_byte(t.high), flip = splat_byte(t.flip);
  for (int p = 0; p < kPx; ++p) {
    const B bytes = narrow(sums[p][0], sums[p][1], sums[p][2], sums[p][3], t.zero);
    const B y = min(high, max(low, bytes)) ^ flip;
    if (t.channels == kFloatBlock) store_bytes(t.out + p * t.out_pixel, y);
    else store_bytes(t.out + p * t.out_pixel, y, static_cast<int>(t.channels));
  }
}

using FloatTileFn = void (*)(const FloatTile&);

template <int s>
FloatTileFn float_tile_of(int pixels) {
  return pixels == 7 ? float_tile<s, 7> : pixels == 4 ? float_tile<s, 4> : float_tile<s, 1>;
}

// Columns of an input row, from the first one of the padding on, as floats; row nullptr: padding.
LITE_INLINE void widen_row(const ConvShape& s, int64_t columns, const uint8_t* row, int64_t channels,
                           uint8_t flip, float zero, float* to) {
  for (int64_t x = -s.pad[1]; x < columns - s.pad[1]; ++x, to += kFloatBlock) {
    if (!row || x < 0 || x >= s.in.w) {
      for (int i = 0; i < 4; ++i) store(to + i * kLanes, splat(zero));
      continue;
    }
    const uint8_t* from = row + x * s.in.pixel;
    uint8_t part[kFloatBlock] = {};
    if (channels < kFloatBlock) {
      store_bytes(part, load_bytes(from, static_cast<int>(channels)));
      from = part;
    }
    LITE_UNROLL for (int i = 0; i < 4; ++i)
      store(to + i * kLanes, to_float(widen(from + i * kLanes, flip)));
  }
}

// Of the input as unsigned bytes.
LITE_INLINE int32_t float_zero(const QuantParams& q) { return q.x_zero + (q.x_signed ? 128 : 0); }

// What every sum of channel c begins with; adds the most that products can change it by to `*most`.
inline int64_t float_constant(const QuantParams& q, const Tensor& w, const int32_t* bias, int64_t c,
                              int64_t* most) {
  constexpr int64_t taps = kFloatTaps * kFloatTaps;
  int64_t sum = bias ? bias[c] : 0;
  for (int64_t i = 0; i < taps; ++i) {
    const int64_t v = centred_weight(q, w, c, c * taps + i);
    sum -= float_zero(q) * v;
    *most += 255 * (v < 0 ? -v : v);
  }
  return sum;
}

LITE_INLINE int64_t float_columns(const ConvShape& s) {
  return (s.out.w - 1) * s.stride[1] + kFloatTaps;
}
LITE_INLINE size_t float_ring_bytes(const ConvShape& s) {
  return static_cast<size_t>(kFloatTaps * float_columns(s)) * kFloatBlock * sizeof(float);
}

// Whether there is a form for the shape, and floats hold all sums.
inline bool suits_floats(const ConvShape& s, const QuantParams& q, const Tensor& w, const int32_t* bias,
                         size_t l2_bytes) {
  constexpr int k = kFloatTaps;
  if (s.kernel[0] != k || s.kernel[1] != k || s.stride[1] > 2) return false;
  if (s.dilation[0] != 1 || s.dilation[1] != 1 || float_ring_bytes(s) > l2_bytes / 2) return false;
  for (int64_t c = 0; c < s.out.c; ++c) {
    int64_t most = 0;
    const int64_t sum = float_constant(q, w, bias, c, &most);
    if ((sum < 0 ? -sum : sum) + most > kExactSum) return false;
  }
  return true;
}

inline bool prepare_floats(Step& step, Env& env, const ConvShape& s, const QuantParams& q,
                           const Tensor& w, const int32_t* bias, FloatForm* form) {
  constexpr int taps = kFloatTaps * kFloatTaps;
  const int64_t blocks = (s.out.c + kFloatBlock - 1) / kFloatBlock, channels = blocks * kFloatBlock;
  const auto floats = [&](int64_t n) {
    return static_cast<float*>(env.allocate(static_cast<size_t>(n + 1) * sizeof(float)));
  };
  float* weights = floats(channels * taps);
  float* biases = floats(channels);
  float* scales = floats(channels);
  if (!weights || !biases || !scales) return env.out_of_memory();
  for (int64_t c = 0; c < s.out.c; ++c) {
    for (int64_t i = 0; i < taps; ++i)
      weights[(c / kFloatBlock * taps + i) * kFloatBlock + c % kFloatBlock] =
          static_cast<float>(centred_weight(q, w, c, c * taps + i));
    int64_t most = 0;
    biases[c] = static_cast<float>(float_constant(q, w, bias, c, &most));
    scales[c] = q.scale[c];
  }
  form->stride = static_cast<int32_t>(s.stride[1]);
  form->pixels = s.out.w >= 7 ? 7 : s.out.w >= 4 ? 4 : 1;
  form->columns = float_columns(s);
  form->weights = weights;
  form->bias = biases;
  form->scale = scales;
  step.scratch_bytes = float_ring_bytes(s);
  set_variant(step, "%s__" LITE_ISA_NAME "_floats_%dx%d", step.kernel->name, form->pixels, kFloatBlock);
  return true;
}

// The block of channels that begins at c, of rows begin ... end of all images.
inline void run_floats(const Step& step, const ConvShape& s, const QuantParams& q, const FloatForm& form,
                       int64_t c, int64_t begin, int64_t end, float* ring) {
  constexpr int k = kFloatTaps;
  const FloatTileFn run_tile =
      form.stride == 1 ? float_tile_of<1>(form.pixels) : float_tile_of<2>(form.pixels);
  const uint8_t flip = q.x_signed ? 0x80 : 0, y_flip = q.y_signed ? 0x80 : 0;
  const float zero = static_cast<float>(float_zero(q));
  FloatTile t{};
  t.channels = s.out.c - c < kFloatBlock ? s.out.c - c : kFloatBlock;
  t.vectors = (t.channels + kLanes - 1) / kLanes;
  t.weights = form.weights + c * k * k;
  t.bias = form.bias + c;
  t.scale = form.scale + c;
  t.zero = q.y_zero + y_flip;
  t.low = static_cast<uint8_t>(q.low + y_flip);
  t.high = static_cast<uint8_t>(q.high + y_flip);
  t.flip = y_flip;
  t.out_pixel = s.out.pixel;
  const ptrdiff_t row_floats = form.columns * kFloatBlock;
  int64_t image = -1, next = 0;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t y = row % s.out.h, top = y * s.stride[0] - s.pad[0];
    if (row / s.out.h != image) {
      image = row / s.out.h;
      next = top;
    }
    const auto slot = [&](int64_t at) { return ring + (at + s.pad[0]) % k * row_floats; };
    const uint8_t* in = step.inputs[0]->data + s.in.origin + image * s.in.image + c;
    for (next = next < top ? top : next; next < top + k; ++next)
      widen_row(s, form.columns, next >= 0 && next < s.in.h ? in + next * s.in.row : nullptr, t.channels,
                flip, zero, slot(next));
    uint8_t* out = step.outputs[0]->data + s.out.origin + image * s.out.image + y * s.out.row + c;
    // The last tile of a row overlaps the one before rather than being narrower.
    for (int64_t x = 0; x < s.out.w; x += form.pixels) {
      if (x + form.pixels > s.out.w) x = s.out.w - form.pixels;
      for (int ky = 0; ky < k; ++ky)
        t.rows[ky] = slot(top + ky) + x * form.stride * kFloatBlock;
      t.out = out + x * s.out.pixel;
      run_tile(t);
    }
  }
}

}  // namespace lite::LITE_ISA
