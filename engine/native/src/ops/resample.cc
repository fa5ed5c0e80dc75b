#include "resample.h"

#include <math.h>

namespace lite {

namespace {

enum class Mode { kNearest, kLinear, kCubic };

bool same(const char* a, const char* b) { return strcmp(a, b) == 0; }

// Source position of output `i`. Source: ONNX Resize, coordinate_transformation_mode. The nearest pixel
// is found in floats, as onnxruntime finds it: whole positions of some ratios are only near in either.
template <class T>
T position(const char* mode, int64_t at, double ratio, int64_t in, int64_t out) {
  const T i = static_cast<T>(at), scale = static_cast<T>(ratio), half = static_cast<T>(0.5);
  if (same(mode, "asymmetric")) return i / scale;
  if (same(mode, "align_corners"))
    return out > 1 ? i * static_cast<T>(in - 1) / static_cast<T>(out - 1) : 0;
  if (same(mode, "pytorch_half_pixel") && out <= 1) return 0;
  if (same(mode, "tf_half_pixel_for_nn")) return (i + half) / scale;
  if (!same(mode, "half_pixel_symmetric")) return (i + half) / scale - half;
  const T whole = static_cast<T>(in), shrunk = static_cast<T>(out) / (scale * whole);
  const T shift = whole / 2 * (1 - shrunk);
  // onnxruntime divides in doubles here, and only here.
  return static_cast<T>(shift + (i + 0.5) / static_cast<double>(scale) - 0.5);
}

// Positions within so much of the middle between two pixels are in the middle.
constexpr double kTie = 1e-5;

double nearest(const char* mode, double at) {
  if (same(mode, "floor")) return floor(at);
  if (same(mode, "ceil")) return ceil(at);
  const double low = floor(at), tie = same(mode, "round_prefer_ceil") ? 0.5 - kTie : 0.5 + kTie;
  return low + (at - low > tie);
}

// Triangle, or Keys' cubic with coefficient a.
double kernel_weight(Mode mode, double distance, double a) {
  const double d = fabs(distance);
  if (mode == Mode::kLinear) return d < 1 ? 1 - d : 0;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

bool is_one_of(const char* text, const char* const* list, int count) {
  for (int i = 0; i < count; ++i)
    if (same(text, list[i])) return true;
  return false;
}

bool check_modes(const Step& step, Env& env, Mode* mode) {
  const char* text = attr_string(step, "mode", "nearest");
  *mode = same(text, "linear")  ? Mode::kLinear
          : same(text, "cubic") ? Mode::kCubic
                                : Mode::kNearest;
  if (*mode == Mode::kNearest && !same(text, "nearest")) return env.fail("mode '%s'", text);
  static const char* const kCoordinates[] = {"half_pixel",           "asymmetric",
                                             "align_corners",        "pytorch_half_pixel",
                                             "tf_half_pixel_for_nn", "half_pixel_symmetric"};
  const char* coordinates = attr_string(step, "coordinate_transformation_mode", "half_pixel");
  if (!is_one_of(coordinates, kCoordinates, 6)) return env.fail("coordinates '%s'", coordinates);
  static const char* const kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
  const char* rounding = attr_string(step, "nearest_mode", "round_prefer_floor");
  if (!is_one_of(rounding, kRoundings, 4)) return env.fail("nearest_mode '%s'", rounding);
  if (!same(attr_string(step, "keep_aspect_ratio_policy", "stretch"), "stretch"))
    return env.fail("keeping the aspect ratio is not supported");
  int count;
  attr_ints(step, "axes", &count);
  return count == 0 || env.fail("a list of axes is not supported");
}

bool scale_of(const Step& step, Env& env, const Tensor& x, const Tensor& y, int axis,
              double* scale) {
  int count;
  const double* scales = attr_floats(step, "scales", &count);
  if (count != 0 && count != x.rank) return env.fail("%d scales for rank %d", count, x.rank);
  *scale = count          ? scales[axis]
           : x.dims[axis] ? static_cast<double>(y.dims[axis]) / x.dims[axis]
                          : 1.0;
  return (*scale > 1e-6 && *scale < 1e6) || env.fail("scale is out of range");
}

}  // namespace

bool plan_resample(const Step& step, Env& env, const Tensor& x, const Tensor& y, int axis,
                   Resample* r) {
  Mode mode;
  double scale = 1;
  if (!check_modes(step, env, &mode) || !scale_of(step, env, x, y, axis, &scale)) return false;
  r->in = x.dims[axis];
  r->out = y.dims[axis];
  if (r->in < 1 || r->in > 1 << 24 || r->out > 1 << 24)
    return env.fail("axis %d is out of range", axis);
  const double stretch =
      attr_int(step, "antialias", 0) && scale < 1 && mode != Mode::kNearest ? 1 / scale : 1.0;
  const double support = (mode == Mode::kCubic ? 2 : 1) * stretch;
  const bool same_grid = r->in == r->out && scale == 1;
  r->taps = mode == Mode::kNearest || same_grid ? 1 : static_cast<int>(ceil(2 * support)) + 1;
  if (r->taps > 4096) return env.fail("shrinks by more than 1024");
  // Positions on the grid need one tap less: with stretch 1 the last weight is always zero.
  if (r->taps > 1 && stretch == 1.0) --r->taps;
  size_t cells;
  if (!mul_size(r->out, r->taps, &cells)) return env.out_of_memory();
  r->index = static_cast<int32_t*>(env.allocate((cells + 1) * sizeof(int32_t)));
  r->weight = static_cast<float*>(env.allocate((cells + 1) * sizeof(float)));
  if (!r->index || !r->weight) return env.out_of_memory();
  const char* coordinates = attr_string(step, "coordinate_transformation_mode", "half_pixel");
  const char* rounding = attr_string(step, "nearest_mode", "round_prefer_floor");
  const double a = attr_float(step, "cubic_coeff_a", -0.75);
  const bool exclude = attr_int(step, "exclude_outside", 0) != 0;
  for (int64_t i = 0; i < r->out; ++i) {
    const double at = same_grid                 ? i
                      : mode == Mode::kNearest ? position<float>(coordinates, i, scale, r->in, r->out)
                                               : position<double>(coordinates, i, scale, r->in, r->out);
    double first = floor(at - support) + 1, total = 0;
    if (r->taps == 1) first = same_grid ? i : nearest(rounding, at);
    for (int t = 0; t < r->taps; ++t) {
      const double tap = first + t;
      double weight = r->taps == 1 ? 1 : kernel_weight(mode, (tap - at) / stretch, a);
      if (exclude && r->taps > 1 && (tap < 0 || tap > r->in - 1)) weight = 0;
      const double inside = tap < 0 ? 0 : tap > r->in - 1 ? r->in - 1 : tap;
      r->index[i * r->taps + t] = static_cast<int32_t>(inside);
      r->weight[i * r->taps + t] = static_cast<float>(weight);
      total += weight;
    }
    for (int t = 0; t < r->taps && total != 0; ++t)
      r->weight[i * r->taps + t] = static_cast<float>(r->weight[i * r->taps + t] / total);
  }
  return true;
}

}  // namespace lite
