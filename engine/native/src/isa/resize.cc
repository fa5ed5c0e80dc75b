// Resize of the spatial axes of a channels-last tensor of rank 3 or 4. f32_resize, f16_resize: each output pixel is
// a weighted sum of input pixels; lanes are channels. i8_resize: it is the nearest one.
#include "ops/resample.h"

#include "vec.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  Resample y, x;
  int64_t line;  // numbers of an output row, where rows of the input are resampled along x first; or 0
};

// Two passes are used only where each axis has at most this many taps.
constexpr int kFewTaps = 4;

// Of an axis that grows, neighbouring outputs share inputs: an input row along x once for all of them.
bool plan_lines(Step& step, Env& env, State* s) {
  if (s->y.in >= s->y.out || s->y.taps == 1 || s->y.taps > kFewTaps || s->x.taps > kFewTaps) return true;
  size_t line;
  if (!mul_size(static_cast<size_t>(s->x.out), static_cast<size_t>(last_dim(*step.outputs[0])), &line) ||
      !mul_size(line, s->y.taps * sizeof(Real), &step.scratch_bytes)) {
    return env.fail("output too large");
  }
  if (step.scratch_bytes > env.l2_bytes / 2) step.scratch_bytes = 0;
  else s->line = static_cast<int64_t>(line);
  return true;
}

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  const bool bytes = strcmp(step.kernel->name, "i8_resize") == 0;
  if (!x || !y || x->dtype != y->dtype || x->rank != y->rank || x->rank < 3 || x->rank > 5 ||
      x->dims[0] != y->dims[0] || (x->rank == 5 && x->dims[1] != y->dims[1]) ||
      last_dim(*x) != last_dim(*y))
    return env.fail("resizes rows and pixels of tensors of rank 3 to 5 only");
  if (bytes ? dtype_bytes(x->dtype) != 1 : x->dtype != kReal)
    return env.fail("'%s' is %s", x->name, dtype_name(x->dtype));
  if (bytes && strcmp(attr_string(step, "mode", "nearest"), "nearest") != 0)
    return env.fail("bytes are not interpolated");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!plan_resample(step, env, *x, *y, x->rank - 2, &s->x)) return false;
  if (x->rank > 3)
    return plan_resample(step, env, *x, *y, x->rank - 3, &s->y) && (bytes || plan_lines(step, env, s));
  static const int32_t kZero = 0;
  static const float kOne = 1;
  s->y = {1, 1, 1, const_cast<int32_t*>(&kZero), const_cast<float*>(&kOne)};
  return true;
}

// y[i] = sum over taps of weight * from[tap][i], n numbers; the last vector steps back.
template <int kTaps>
LITE_INLINE void blend(const Real* const* from, const float* weight, Real* y, int64_t n) {
  F w[kTaps];
  const Real* p[kTaps];
  LITE_UNROLL for (int t = 0; t < kTaps; ++t) w[t] = splat(weight[t]), p[t] = from[t];
  const auto sum = [&](auto read) __attribute__((always_inline)) {
    F total = w[0] * read(p[0]);
    LITE_UNROLL for (int t = 1; t < kTaps; ++t) total = fma(w[t], read(p[t]), total);
    return total;
  };
  const auto at = [&](int64_t i) __attribute__((always_inline)) {
    store(y + i, sum([&](const Real* q) __attribute__((always_inline)) { return load(q + i); }));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) at(i);
  if (i == n) return;
  if (n >= kLanes) return at(n - kLanes);
  const int part = static_cast<int>(n);
  store_part(y, sum([&](const Real* q) __attribute__((always_inline)) { return load_part(q, part); }),
             part);
}
void blend(const Real* const* from, const float* weight, int taps, Real* y, int64_t n) {
  switch (taps) {
    case 1: return blend<1>(from, weight, y, n);
    case 2: return blend<2>(from, weight, y, n);
    case 3: return blend<3>(from, weight, y, n);
    default: return blend<kFewTaps>(from, weight, y, n);
  }
}

// Rows [begin, end) of one image's output. Line i % taps of scratch memory has input row i along x.
void run_lines(const State& s, const Real* from, int64_t row, int64_t pixel, Real* to, int64_t out_row,
               int64_t out_pixel, int64_t channels, int64_t begin, int64_t end, Real* lines) {
  const Resample &x = s.x, &y = s.y;
  int64_t held[kFewTaps] = {-1, -1, -1, -1};
  const Real* taps[kFewTaps];
  for (int64_t oy = begin; oy < end; ++oy) {
    const Real* above[kFewTaps];
    for (int t = 0; t < y.taps; ++t) {
      const int64_t iy = y.index[oy * y.taps + t], slot = iy % y.taps;
      Real* const line = lines + slot * s.line;
      above[t] = line;
      if (held[slot] == iy) continue;
      held[slot] = iy;
      for (int64_t ox = 0; ox < x.out; ++ox) {
        for (int i = 0; i < x.taps; ++i)
          taps[i] = from + iy * row + x.index[ox * x.taps + i] * pixel;
        blend(taps, x.weight + ox * x.taps, x.taps, line + ox * channels, channels);
      }
    }
    const float* weight = y.weight + oy * y.taps;
    Real* const out = to + oy * out_row;
    if (out_pixel == channels) {
      blend(above, weight, y.taps, out, s.line);
      continue;
    }
    for (int64_t ox = 0; ox < x.out; ++ox) {
      for (int t = 0; t < y.taps; ++t) taps[t] = above[t] + ox * channels;
      blend(taps, weight, y.taps, out + ox * out_pixel, channels);
    }
  }
}

// y[c] = sum over taps of weight * x[...][c]
void pixel(const Resample& ry, const Resample& rx, int64_t oy, int64_t ox, const Real* image,
           int64_t row, int64_t step, Real* y, int64_t channels) {
  const int32_t* iy = ry.index + oy * ry.taps;
  const int32_t* ix = rx.index + ox * rx.taps;
  const float* wy = ry.weight + oy * ry.taps;
  const float* wx = rx.weight + ox * rx.taps;
  if (ry.taps == 1 && rx.taps == 1) {
    memcpy(y, image + *iy * row + *ix * step, channels * sizeof(Real));
    return;
  }
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int n = static_cast<int>(channels - c < kLanes ? channels - c : kLanes);
    F total = splat(0.0f);
    for (int ty = 0; ty < ry.taps; ++ty) {
      F line = splat(0.0f);
      for (int tx = 0; tx < rx.taps; ++tx) {
        const Real* p = image + iy[ty] * row + ix[tx] * step + c;
        line = fma(splat(wx[tx]), n == kLanes ? load(p) : load_part(p, n), line);
      }
      total = fma(splat(wy[ty]), line, total);
    }
    if (n == kLanes) store(y + c, total);
    else store_part(y + c, total, n);
  }
}

LITE_INLINE void pixel(const Resample& ry, const Resample& rx, int64_t oy, int64_t ox,
                       const uint8_t* image, int64_t row, int64_t step, uint8_t* y,
                       int64_t channels) {
  memcpy(y, image + ry.index[oy] * row + rx.index[ox] * step, channels);
}

template <class Element>
void run(const Step& step, int, int thread, int threads, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &in = *step.inputs[0], &out = *step.outputs[0];
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  const int64_t in_origin = strides_of(in, in_strides), out_origin = strides_of(out, out_strides);
  const int64_t in_row = in.rank > 3 ? in_strides[in.rank - 3] : 0,
                out_row = in.rank > 3 ? out_strides[in.rank - 3] : 0;
  const int64_t in_pixel = in_strides[in.rank - 2], out_pixel = out_strides[in.rank - 2];
  const bool volume = in.rank == 5;  // whose frames are images
  int64_t begin, end;
  share(in.dims[0] * (volume ? in.dims[1] : 1) * s.y.out, 1, thread, threads, &begin, &end);
  for (int64_t line = begin; line < end; ++line) {
    const int64_t image = line / s.y.out, oy = line % s.y.out;
    const Element* from = in.as<Element>() + in_origin + image * in_strides[volume];
    Element* to = out.as<Element>() + out_origin + image * out_strides[volume];
    if constexpr (sizeof(Element) == sizeof(Real)) {  // bytes take the nearest pixel
      if (s.line) {
        const int64_t rest = end - line, stop = s.y.out - oy < rest ? s.y.out : oy + rest;
        run_lines(s, from, in_row, in_pixel, to, out_row, out_pixel, last_dim(in), oy, stop,
                  static_cast<Element*>(scratch));
        line += stop - oy - 1;
        continue;
      }
    }
    to += oy * out_row;
    for (int64_t ox = 0; ox < s.x.out; ++ox)
      pixel(s.y, s.x, oy, ox, from, in_row, in_pixel, to + ox * out_pixel, last_dim(in));
  }
}

const Kernel kResize[] = {
#if defined(LITE_FP16)
    {"Resize", "f16_resize", prepare, run<Real>, kAcceptsPitch | kAcceptsHalo | kDivisible},
#else
    {"Resize", "f32_resize", prepare, run<Real>, kAcceptsPitch | kAcceptsHalo | kDivisible},
    {"Resize", "i8_resize", prepare, run<uint8_t>, kAcceptsPitch | kAcceptsHalo | kDivisible},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(resize, kResize)
