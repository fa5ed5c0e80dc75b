// Resize of the spatial axes of a channels-last tensor of rank 3 or 4. f32_resize, f16_resize: each output pixel is
// a weighted sum of input pixels; lanes are channels. i8_resize: it is the nearest one.
#include "ops/resample.h"

#include "vec.h"

namespace lite::LITE_ISA {

namespace {

struct State {
  Resample y, x;
};

bool prepare(Step& step, Env& env) {
  const Tensor* x = input_of(step, 0);
  const Tensor* y = output_of(step, 0);
  const bool bytes = strcmp(step.kernel->name, "i8_resize") == 0;
  if (!x || !y || x->dtype != y->dtype || x->rank != y->rank || (x->rank != 3 && x->rank != 4) ||
      x->dims[0] != y->dims[0] || last_dim(*x) != last_dim(*y))
    return env.fail("resizes the spatial axes of tensors of rank 3 or 4 only");
  if (bytes ? dtype_bytes(x->dtype) != 1 : x->dtype != kReal)
    return env.fail("'%s' is %s", x->name, dtype_name(x->dtype));
  if (bytes && strcmp(attr_string(step, "mode", "nearest"), "nearest") != 0)
    return env.fail("bytes are not interpolated");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!plan_resample(step, env, *x, *y, x->rank - 2, &s->x)) return false;
  if (x->rank == 4) return plan_resample(step, env, *x, *y, 1, &s->y);
  static const int32_t kZero = 0;
  static const float kOne = 1;
  s->y = {1, 1, 1, const_cast<int32_t*>(&kZero), const_cast<float*>(&kOne)};
  return true;
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
void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor &in = *step.inputs[0], &out = *step.outputs[0];
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  const int64_t in_origin = strides_of(in, in_strides), out_origin = strides_of(out, out_strides);
  const int64_t in_row = in.rank == 4 ? in_strides[1] : 0,
                out_row = in.rank == 4 ? out_strides[1] : 0;
  const int64_t in_pixel = in_strides[in.rank - 2], out_pixel = out_strides[in.rank - 2];
  int64_t begin, end;
  share(in.dims[0] * s.y.out, 1, thread, threads, &begin, &end);
  for (int64_t line = begin; line < end; ++line) {
    const int64_t image = line / s.y.out, oy = line % s.y.out;
    const Element* from = in.as<Element>() + in_origin + image * in_strides[0];
    Element* to = out.as<Element>() + out_origin + image * out_strides[0] + oy * out_row;
    for (int64_t ox = 0; ox < s.x.out; ++ox)
      pixel(s.y, s.x, oy, ox, from, in_row, in_pixel, to + ox * out_pixel, last_dim(in));
  }
}

const Kernel kResize[] = {
#if defined(LITE_FP16)
    {"Resize", "f16_resize", prepare, run<Real>, kAcceptsPitch | kAcceptsHalo},
#else
    {"Resize", "f32_resize", prepare, run<Real>, kAcceptsPitch | kAcceptsHalo},
    {"Resize", "i8_resize", prepare, run<uint8_t>, kAcceptsPitch | kAcceptsHalo},
#endif
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(resize, kResize)
