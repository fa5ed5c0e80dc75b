#include <math.h>

#include <algorithm>

#include "app.h"

namespace lite::app {

namespace {

// The homography that takes the corners of a unit square to four points (Heckbert, 1989, section 2.2.3).
bool square_to(const double* x, const double* y, double* m) {
  const double dx1 = x[1] - x[2], dx2 = x[3] - x[2], sx = x[0] - x[1] + x[2] - x[3];
  const double dy1 = y[1] - y[2], dy2 = y[3] - y[2], sy = y[0] - y[1] + y[2] - y[3];
  const double det = dx1 * dy2 - dx2 * dy1;
  if (!(fabs(det) > 1e-9)) return false;
  const double g = (sx * dy2 - dx2 * sy) / det, h = (dx1 * sy - sx * dy1) / det;
  const double made[9] = {x[1] - x[0] + g * x[1], x[3] - x[0] + h * x[3], x[0],
                          y[1] - y[0] + g * y[1], y[3] - y[0] + h * y[3], y[0], g, h, 1};
  memcpy(m, made, sizeof made);
  return true;
}

void product(const double* a, const double* b, double* out) {
  double made[9];
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      made[3 * i + k] = 0;
      for (int j = 0; j < 3; ++j) made[3 * i + k] += a[3 * i + j] * b[3 * j + k];
    }
  memcpy(out, made, sizeof made);
}

void apply(const double* m, double x, double y, double* out) {
  const double w = m[6] * x + m[7] * y + m[8];
  out[0] = (m[0] * x + m[1] * y + m[2]) / w;
  out[1] = (m[3] * x + m[4] * y + m[5]) / w;
}

// Bilinear; outside, the nearest pixel of the edge.
void sample(const Image& in, double x, double y, uint8_t* to) {
  x = std::min(std::max(x, 0.0), in.width - 1.0);
  y = std::min(std::max(y, 0.0), in.height - 1.0);
  const int u = static_cast<int>(x), v = static_cast<int>(y);
  const int right = std::min(u + 1, in.width - 1), below = std::min(v + 1, in.height - 1);
  const double fx = x - u, fy = y - v;
  for (int c = 0; c < 3; ++c) {
    const double a = in.at(u, v)[c] * (1 - fx) + in.at(right, v)[c] * fx;
    const double b = in.at(u, below)[c] * (1 - fx) + in.at(right, below)[c] * fx;
    to[c] = static_cast<uint8_t>(a * (1 - fy) + b * fy + 0.5);
  }
}

// A place or length in a view of `pixels`. What is a whole number but for the rounding of the floats that it comes
// from is that number.
double snapped(double at, double pixels) {
  constexpr double kRounding = 0x1p-21;  // some steps of a float below 1
  const double whole = nearbyint(at);
  return fabs(at - whole) <= kRounding * pixels ? whole : at;
}

double between(const double* x, const double* y, int a, int b) {
  return sqrt((x[a] - x[b]) * (x[a] - x[b]) + (y[a] - y[b]) * (y[a] - y[b]));
}

bool cut_slanted(const View& from, const Found& f, View* out) {
  double x[4], y[4], m[9];
  for (int i = 0; i < 4; ++i) {
    x[i] = static_cast<double>(f.corners[2 * i]) * from.image.width;
    y[i] = static_cast<double>(f.corners[2 * i + 1]) * from.image.height;
  }
  const int longest = std::max(from.image.width, from.image.height);
  int w = static_cast<int>(snapped(std::max(between(x, y, 0, 1), between(x, y, 2, 3)), longest));
  int h = static_cast<int>(snapped(std::max(between(x, y, 0, 3), between(x, y, 1, 2)), longest));
  w = std::max(w, 1);
  h = std::max(h, 1);
  if (h >= 1.5 * w) {  // a column of text: its upper right corner becomes the upper left
    std::swap(w, h);
    std::rotate(x, x + 1, x + 4);
    std::rotate(y, y + 1, y + 4);
  }
  if (!square_to(x, y, m)) {
    const double plain[9] = {x[1] - x[0], 0, x[0], 0, y[2] - y[0], y[0], 0, 0, 1};
    memcpy(m, plain, sizeof m);
  }
  const double unit[9] = {1.0 / w, 0, 0, 0, 1.0 / h, 0, 0, 0, 1};
  product(m, unit, m);
  if (!out->image.make(w, h)) return false;
  for (int v = 0; v < h; ++v)
    for (int u = 0; u < w; ++u) {
      double at[2];
      apply(m, u, v, at);
      if (!(at[0] == at[0] && at[1] == at[1])) at[0] = at[1] = 0;
      sample(from.image, at[0], at[1], out->image.at(u, v));
    }
  product(from.back, m, out->back);
  return true;
}

}  // namespace

void to_photo(const View& view, double x, double y, double* out) { apply(view.back, x, y, out); }

View* cut_out(const View& from, const Found& f, double grow) {
  View* out = make<View>();
  if (!out) return nullptr;
  if (f.slanted) {
    if (cut_slanted(from, f, out)) return out;
    destroy(out);
    return nullptr;
  }
  const double w = from.image.width, h = from.image.height;
  const double b[4] = {f.box[0], f.box[1], f.box[2], f.box[3]};
  const double more_x = (b[2] - b[0]) * grow, more_y = (b[3] - b[1]) * grow;
  const int x0 = static_cast<int>(std::max(0.0, floor(snapped((b[0] - more_x) * w, w))));
  const int y0 = static_cast<int>(std::max(0.0, floor(snapped((b[1] - more_y) * h, h))));
  const int x1 = static_cast<int>(std::min(w, ceil(snapped((b[2] + more_x) * w, w))));
  const int y1 = static_cast<int>(std::min(h, ceil(snapped((b[3] + more_y) * h, h))));
  const int left = std::min(x0, from.image.width - 1), upper = std::min(y0, from.image.height - 1);
  if (!out->image.make(std::max(x1 - left, 1), std::max(y1 - upper, 1))) {
    destroy(out);
    return nullptr;
  }
  for (int y = 0; y < out->image.height; ++y)
    memcpy(out->image.at(0, y), from.image.at(left, upper + y), size_t{3} * out->image.width);
  const double moved[9] = {1, 0, static_cast<double>(left), 0, 1, static_cast<double>(upper), 0, 0, 1};
  product(from.back, moved, out->back);
  return out;
}

void turn_half(View* view) {
  turn_upright(&view->image, 3);
  const double w = view->image.width - 1, h = view->image.height - 1;
  const double turned[9] = {-1, 0, w, 0, -1, h, 0, 0, 1};
  product(view->back, turned, view->back);
}

}  // namespace lite::app
