// The pixels of the photo that a thing's mask has.
#include <math.h>

#include <algorithm>

#include "app.h"

namespace lite::app {

namespace {

bool inverse(const double* m, double* out) {
  const double a = m[4] * m[8] - m[5] * m[7], b = m[5] * m[6] - m[3] * m[8], c = m[3] * m[7] - m[4] * m[6];
  const double det = m[0] * a + m[1] * b + m[2] * c;
  if (!(fabs(det) > 1e-12)) return false;
  const double made[9] = {a, m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                          b, m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                          c, m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  for (int i = 0; i < 9; ++i) out[i] = made[i] / det;
  return true;
}

// Between the middles of cells bilinear, outside them the nearest one.
float level(const Answer& a, const Shape& s, double u, double v) {
  const double wide = static_cast<double>(s.rect[2]) - s.rect[0], high = static_cast<double>(s.rect[3]) - s.rect[1];
  double x = (u - s.rect[0]) / wide * s.width - 0.5, y = (v - s.rect[1]) / high * s.height - 0.5;
  if (!(x > 0)) x = 0;
  if (!(y > 0)) y = 0;
  x = std::min(x, s.width - 1.0), y = std::min(y, s.height - 1.0);
  const int left = static_cast<int>(x), upper = static_cast<int>(y);
  const int right = std::min(left + 1, s.width - 1), lower = std::min(upper + 1, s.height - 1);
  const float* l = &a.levels[s.first];
  const float fx = static_cast<float>(x - left), fy = static_cast<float>(y - upper);
  const float top = l[upper * s.width + left] * (1 - fx) + l[upper * s.width + right] * fx;
  const float bottom = l[lower * s.width + left] * (1 - fx) + l[lower * s.width + right] * fx;
  return top * (1 - fy) + bottom * fy;
}

}  // namespace

MaskPixels::MaskPixels(const View& photo, const View& view, const Answer& answer, const Found& found)
    : view_(view), answer_(answer), found_(found) {
  if (found.shape < 0 || !inverse(view.back, from_)) return;
  const int width = photo.image.width, height = photo.image.height;
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (int i = 0; i < 4; ++i) {
    double at[2];
    to_photo(view, static_cast<double>(found.box[i % 2 ? 2 : 0]) * view.image.width,
             static_cast<double>(found.box[i / 2 ? 3 : 1]) * view.image.height, at);
    for (int k = 0; k < 2; ++k) low[k] = std::min(low[k], at[k]), high[k] = std::max(high[k], at[k]);
  }
  if (!(low[0] > -1e9 && low[1] > -1e9 && high[0] < 1e9 && high[1] < 1e9)) return;
  x0 = std::max(static_cast<int>(floor(low[0])), 0), x1 = std::min(static_cast<int>(ceil(high[0])), width);
  y0 = std::max(static_cast<int>(floor(low[1])), 0), y1 = std::min(static_cast<int>(ceil(high[1])), height);
}

bool MaskPixels::at(int x, int y) const {
  const double px = x + 0.5, py = y + 0.5, w = from_[6] * px + from_[7] * py + from_[8];
  const double u = (from_[0] * px + from_[1] * py + from_[2]) / w / view_.image.width;
  const double v = (from_[3] * px + from_[4] * py + from_[5]) / w / view_.image.height;
  const float* b = found_.box;
  if (!(u >= static_cast<double>(b[0]) && v >= static_cast<double>(b[1]) && u < static_cast<double>(b[2]) &&
        v < static_cast<double>(b[3])))
    return false;
  return level(answer_, answer_.shapes[found_.shape], u, v) > 0;
}

void write_mask(opencl::Text* out, const View& photo, const View& view, const Answer& a, const Found& f) {
  const int width = photo.image.width, height = photo.image.height;
  const MaskPixels mask(photo, view, a, f);
  out->add(", \"mask\": {\"size\": [%d, %d], \"counts\": [", height, width);
  bool inside = false, first = true;
  int64_t run = int64_t{height} * mask.x0, left = int64_t{height} * width - run;
  const auto put = [&](int64_t count) {
    out->add(first ? "%lld" : ", %lld", static_cast<long long>(count));
    first = false;
    run = 0;
  };
  for (int x = mask.x0; x < mask.x1; ++x)
    for (int y = 0; y < height; ++y, ++run, --left)
      if ((y >= mask.y0 && y < mask.y1 && mask.at(x, y)) != inside) {
        put(run);
        inside = !inside;
      }
  if (inside) put(run);
  if (run + left) put(run + left);
  out->add("]}");
}

}  // namespace lite::app
