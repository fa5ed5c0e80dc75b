#include "deconv_parts.h"

namespace lite {
namespace {

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

}  // namespace

int64_t count_deconv_parts(const ConvShape& s, Env& env) {
  if (s.stride[0] * s.stride[1] <= 4096) return s.stride[0] * s.stride[1];
  env.fail("strides whose product exceeds 4096");
  return 0;
}

bool deconv_part(const ConvShape& s, int64_t index, DeconvPart* part) {
  const int64_t y = index / s.stride[1], x = index % s.stride[1];
  const Remainder rows = remainder_of(s, 0, y), columns = remainder_of(s, 1, x);
  if (rows.outputs == 0 || columns.outputs == 0) return false;
  part->shape = s;
  part->shape.out = every(s.out, y, x, rows, columns, s);
  if (s.has_residual) part->shape.residual = every(s.residual, y, x, rows, columns, s);
  const Remainder* axes[2] = {&rows, &columns};
  for (int i = 0; i < 2; ++i) {
    part->shape.stride[i] = 1;
    part->shape.dilation[i] = axes[i]->step;
    part->shape.kernel[i] = axes[i]->count;
    part->shape.pad[i] = -axes[i]->base;
  }
  if (rows.count == 0 || columns.count == 0) part->shape.kernel[0] = part->shape.kernel[1] = 0;
  part->first_y = rows.last;
  part->first_x = columns.last;
  part->step_y = -rows.tap_step;
  part->step_x = -columns.tap_step;
  return true;
}

}  // namespace lite
