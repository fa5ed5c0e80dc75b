// ConvTranspose as ordinary convolutions: the output pixels with the same remainder modulo the
// stride see the same subset of taps, so each remainder is a stride-1 tap GEMM that writes every
// stride-th pixel. Nothing is scattered and nothing is multiplied by inserted zeros.
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct Deconv {
  int32_t parts;
  int32_t residual;               // input index or -1
  TapGemm* part;
};

// Along one axis, outputs o = remainder + stride * j read input j + base + u * step for taps
// u = 0 ... count-1, which are the kernel's taps last - u * tap_step.
struct Remainder {
  int64_t count, last, tap_step, base, step, outputs;
};

int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

Remainder remainder_of(const ConvShape& s, int axis, int64_t remainder) {
  const int64_t stride = s.stride[axis], dilation = s.dilation[axis], kernel = s.kernel[axis];
  const int64_t size = axis ? s.out.w : s.out.h;
  Remainder r{};
  r.outputs = size > remainder ? (size - remainder + stride - 1) / stride : 0;
  const int64_t common = divisor(stride, dilation);
  r.tap_step = stride / common;
  r.step = dilation / common;
  const int64_t shifted = remainder + s.pad[axis];
  int64_t first = 0;
  while (first < kernel && first < r.tap_step && (shifted - first * dilation) % stride != 0)
    ++first;
  if (first >= kernel || (shifted - first * dilation) % stride != 0) return r;
  r.count = (kernel - 1 - first) / r.tap_step + 1;
  r.last = first + (r.count - 1) * r.tap_step;
  r.base = (shifted - r.last * dilation) / stride;
  return r;
}

PixelView every(const PixelView& v, int64_t y, int64_t x, const Remainder& rows,
                const Remainder& columns, const ConvShape& s) {
  PixelView out = v;
  out.origin += y * v.row + x * v.pixel;
  out.h = rows.outputs;
  out.w = columns.outputs;
  out.row *= s.stride[0];
  out.pixel *= s.stride[1];
  return out;
}

bool prepare(Step& step, Env& env) {
  ConvShape s;
  if (!read_conv(step, env, true, &s)) return false;
  Deconv* d = static_cast<Deconv*>(env.allocate(sizeof(Deconv)));
  if (!d) return env.out_of_memory();
  step.state = d;
  d->residual = s.has_residual ? 3 : -1;
  if (s.stride[0] * s.stride[1] > 4096) return env.fail("strides whose product exceeds 4096");
  d->part = static_cast<TapGemm*>(
      env.allocate(static_cast<size_t>(s.stride[0] * s.stride[1]) * sizeof(TapGemm)));
  if (!d->part) return env.out_of_memory();
  const int64_t kh = s.kernel[0], kw = s.kernel[1], taps = kh * kw;
  for (int64_t y = 0; y < s.stride[0]; ++y) {
    const Remainder rows = remainder_of(s, 0, y);
    for (int64_t x = 0; x < s.stride[1]; ++x) {
      const Remainder columns = remainder_of(s, 1, x);
      if (rows.outputs == 0 || columns.outputs == 0) continue;
      ConvShape part = s;
      part.out = every(s.out, y, x, rows, columns, s);
      if (s.has_residual) part.residual = every(s.residual, y, x, rows, columns, s);
      const Remainder* axes[2] = {&rows, &columns};
      for (int i = 0; i < 2; ++i) {
        part.stride[i] = 1;
        part.dilation[i] = axes[i]->step;
        part.kernel[i] = axes[i]->count;
        part.pad[i] = -axes[i]->base;
      }
      if (rows.count == 0 || columns.count == 0) part.kernel[0] = part.kernel[1] = 0;
      const WeightView w{s.weights->as<float>() + rows.last * kw + columns.last,
                         s.group_in * s.group_out * taps,
                         taps,
                         s.group_out * taps,
                         -rows.tap_step * kw,
                         -columns.tap_step,
                         1.0f};
      if (!prepare_tap_gemm(part, w, s.bias ? s.bias->as<float>() : nullptr, 1.0f, env,
                            &d->part[d->parts++])) {
        return false;
      }
    }
  }
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

void run(const Step& step, int, int thread, int, void*) {
  const Deconv& d = *static_cast<const Deconv*>(step.state);
  for (int32_t i = 0; i < d.parts; ++i) {
    run_tap_gemm(d.part[i], step.inputs[0]->as<float>(), step.outputs[0]->as<float>(),
                 d.residual < 0 ? nullptr : step.inputs[d.residual]->as<float>(), thread);
  }
}

const Kernel kDeconv[] = {
    {"ConvTranspose", "f32_deconv2d", prepare, run, kAcceptsPitch | kAcceptsHalo},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(deconv, kDeconv)
