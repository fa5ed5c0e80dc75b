// Pillow's bilinear resize for bytes: weights of a triangle as wide as the reduction, in 22-bit fixed point,
// along rows first and columns then, each rounded to bytes (Pillow begins with the cheaper one).
#include "image.h"

#include <math.h>

namespace lite::app {

namespace {

constexpr int kBits = 32 - 8 - 2;

struct Weights {
  Array<int32_t> weight;      // `most` per element of the output
  Array<int32_t> from, count;  // the elements of the input that it is made of
  int most = 0;
};

bool make_weights(int in, int out, Weights* w) {
  const double scale = static_cast<double>(in) / out, wide = scale < 1 ? 1 : scale, support = wide;
  w->most = static_cast<int>(ceil(support)) * 2 + 1;
  Array<double> k;
  if (!k.resize(w->most) || !w->weight.resize(static_cast<size_t>(out) * w->most) ||
      !w->from.resize(out) || !w->count.resize(out))
    return false;
  const double step = 1.0 / wide;
  for (int x = 0; x < out; ++x) {
    const double center = (x + 0.5) * scale;
    int low = static_cast<int>(center - support + 0.5), high = static_cast<int>(center + support + 0.5);
    low = low < 0 ? 0 : low;
    high = high > in ? in : high;
    double sum = 0;
    for (int i = low; i < high; ++i) {
      const double at = fabs((i - center + 0.5) * step);
      k[i - low] = at < 1 ? 1 - at : 0;
      sum += k[i - low];
    }
    for (int i = 0; i < high - low; ++i) {
      const double share = sum != 0 ? k[i] / sum : k[i];
      w->weight[static_cast<size_t>(x) * w->most + i] = static_cast<int>(0.5 + share * (1 << kBits));
    }
    w->from[x] = low;
    w->count[x] = high - low;
  }
  return true;
}

// Each of `lines` lines has `in` pixels, `in_step` bytes apart, and becomes `out` pixels.
void run(const Weights& w, const uint8_t* in, size_t in_step, size_t in_line, uint8_t* to, int out,
         size_t out_step, size_t out_line, int lines) {
  for (int y = 0; y < lines; ++y) {
    for (int x = 0; x < out; ++x) {
      int32_t sum[3] = {1 << (kBits - 1), 1 << (kBits - 1), 1 << (kBits - 1)};
      const uint8_t* p = in + y * in_line + w.from[x] * in_step;
      const int32_t* k = &w.weight[static_cast<size_t>(x) * w.most];
      for (int i = 0; i < w.count[x]; ++i, p += in_step)
        for (int c = 0; c < 3; ++c) sum[c] += p[c] * k[i];
      uint8_t* pixel = to + y * out_line + x * out_step;
      for (int c = 0; c < 3; ++c) {
        const int32_t v = sum[c] >> kBits;
        pixel[c] = static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
      }
    }
  }
}

}  // namespace

bool resize(const Image& in, int width, int height, Image* out) {
  Weights w;
  Image wide;
  const Image* from = &in;
  if (width != in.width) {
    if (!make_weights(in.width, width, &w) || !wide.make(width, in.height)) return false;
    run(w, in.pixels.data(), 3, size_t{3} * in.width, wide.pixels.data(), width, 3, size_t{3} * width,
        in.height);
    from = &wide;
  }
  if (!out->make(width, height)) return false;
  if (height == in.height) {
    memcpy(out->pixels.data(), from->pixels.data(), out->pixels.size());
    return true;
  }
  const size_t line = size_t{3} * width;
  if (!make_weights(in.height, height, &w)) return false;
  run(w, from->pixels.data(), line, 3, out->pixels.data(), height, line, 3, width);
  return true;
}

}  // namespace lite::app
