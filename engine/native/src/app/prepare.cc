#include "prepare.h"

#include <math.h>

namespace lite::app {

namespace {

bool read_numbers(Json::Value from, float* out) {
  int n = 0;
  for (Json::Value v = from.first(); v; v = v.next(), ++n) {
    if (n == 3 || !v.is(Json::kNumber) || !(fabs(v.number()) <= 1e6)) return false;
    out[n] = static_cast<float>(v.number());
  }
  if (n == 1) out[1] = out[2] = out[0];
  return n == 1 || n == 3;
}

bool one_of(const char* text, const char* a, const char* b, const char* c, int* out) {
  const char* known[] = {a, b, c};
  for (int i = 0; i < 3; ++i)
    if (strcmp(text, known[i]) == 0) return *out = i, true;
  return false;
}

}  // namespace

void Placement::to_picture(float* x, float* y) const {
  const double u = (static_cast<double>(*x) * width - left) / scaled_w;
  const double v = (static_cast<double>(*y) * height - top) / scaled_h;
  *x = static_cast<float>(u < 0 ? 0 : u > 1 ? 1 : u);
  *y = static_cast<float>(v < 0 ? 0 : v > 1 ? 1 : v);
}

const char* Preprocess::read(Json::Value from) {
  int colour = 0, layout = 0, how = 0;
  int64_t h = 0, w = 0, padding = 114;
  const Json::Value size = from["size"], crop_share = from["crop"];
  if (!from.is(Json::kObject) || !size.first().whole(1, 65535, &h) ||
      !size.first().next().whole(1, 65535, &w) || !h || !w || h * w > kMaxPixels)
    return "preprocess: `size` is not a height and a width";
  if (!one_of(from["colour"].text("rgb"), "rgb", "bgr", "grey", &colour))
    return "preprocess: `colour` is not rgb, bgr or grey";
  if (!one_of(from["layout"].text("nchw"), "nchw", "nhwc", "", &layout))
    return "preprocess: `layout` is not nchw or nhwc";
  if (strcmp(from["fit"].text("stretch"), "height") == 0) how = 3;
  else if (!one_of(from["fit"].text("stretch"), "stretch", "crop", "letterbox", &how))
    return "preprocess: `fit` is not stretch, crop, letterbox or height";
  if (!from["pad"].whole(0, 255, &padding)) return "preprocess: `pad` is not a pixel of 0 to 255";
  crop = crop_share.number(0.875);
  if (!(crop >= 0.1 && crop <= 1)) return "preprocess: `crop` is not a share of 0.1 to 1";
  numbers = from["mean"] || from["std"];
  if (numbers) {
    const float zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    memcpy(mean, zero, sizeof mean);
    memcpy(std, one, sizeof std);
    if ((from["mean"] && !read_numbers(from["mean"], mean)) ||
        (from["std"] && !read_numbers(from["std"], std)))
      return "preprocess: `mean` and `std` are one number, or one per channel";
    for (const float s : std)
      if (!(fabsf(s) >= 1e-6f)) return "preprocess: `std` has a number near zero";
  }
  bgr = colour == 1;
  grey = colour == 2;
  nhwc = layout == 1;
  fit = static_cast<Fit>(how);
  width = static_cast<int>(w);
  height = static_cast<int>(h);
  pad = static_cast<int>(padding);
  return nullptr;
}

const char* Preprocess::read_widths(Json::Value from) {
  for (Json::Value v = from.first(); v; v = v.next()) {
    int64_t w = 0;
    if (!v.whole(1, 65535, &w) || w * height > kMaxPixels || w <= (widths.empty() ? 0 : widths[widths.size() - 1]))
      return "`widths` are not widths of inputs, the narrowest first";
    if (!widths.push(static_cast<int>(w))) return "does not fit in memory";
  }
  if (widths.empty()) return nullptr;
  if (fit != kHeight) return "`widths` need `fit` height";
  width = widths[widths.size() - 1];
  return nullptr;
}

double Preprocess::line_width(int w, int h) const { return ceil(static_cast<double>(height) * w / h); }

int Preprocess::width_for(const Image& picture) const {
  for (const int w : widths)
    if (line_width(picture.width, picture.height) <= w) return w;
  return width;
}

const char* Preprocess::place(int w, int h, int input_width, Placement* out) const {
  *out = {input_width, height, input_width, height, 0, 0};
  if (fit == kHeight) {  // text lines: the height is met, the width follows up to the input's
    const double wide = line_width(w, h);
    out->scaled_w = wide > input_width ? input_width : wide < 1 ? 1 : static_cast<int>(wide);
  } else if (fit == kLetterbox) {
    const double by_h = static_cast<double>(height) / h, by_w = static_cast<double>(input_width) / w;
    const double ratio = by_h < by_w ? by_h : by_w;
    const double sw = nearbyint(w * ratio), sh = nearbyint(h * ratio);
    out->scaled_w = sw < 1 ? 1 : static_cast<int>(sw);
    out->scaled_h = sh < 1 ? 1 : static_cast<int>(sh);
    out->left = static_cast<int>(nearbyint((input_width - out->scaled_w) / 2.0 - 0.1));
    out->top = static_cast<int>(nearbyint((height - out->scaled_h) / 2.0 - 0.1));
  } else if (fit == kCrop) {
    const int64_t rows = static_cast<int64_t>(floor(height / crop + 1e-6));
    const int64_t columns = static_cast<int64_t>(floor(input_width / crop + 1e-6));
    const bool tall = rows * w >= columns * h;
    const int64_t sw = tall ? rows * w / h : columns, sh = tall ? rows : columns * h / w;
    if (sw < 1 || sh < 1 || sw > kMaxPixels / sh) return "the picture is too narrow for a center crop";
    out->scaled_w = static_cast<int>(sw);
    out->scaled_h = static_cast<int>(sh);
    out->left = -static_cast<int>(nearbyint((out->scaled_w - input_width) / 2.0));
    out->top = -static_cast<int>(nearbyint((out->scaled_h - height) / 2.0));
  }
  return nullptr;
}

const char* Preprocess::apply(const Image& picture, int input_width, int dtype, Quant quant, Array<uint8_t>* out,
                              Placement* placed) const {
  if (const char* why = place(picture.width, picture.height, input_width, placed)) return why;
  Image grey_picture, scaled;
  const Image* from = &picture;
  if (grey) {  // before the resize, like Pillow: it rounds at each step
    if (!grey_picture.make(picture.width, picture.height)) return "does not fit in memory";
    for (size_t i = 0; i < picture.pixels.size(); i += 3) {
      const uint8_t* p = &picture.pixels[i];
      memset(&grey_picture.pixels[i], (p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16, 3);
    }
    from = &grey_picture;
  }
  if (from->width != placed->scaled_w || from->height != placed->scaled_h) {
    if (!resize(*from, placed->scaled_w, placed->scaled_h, &scaled)) return "does not fit in memory";
    from = &scaled;
  }
  const int count = channels(), bytes = dtype == 1 ? 4 : 1;
  const size_t plane = static_cast<size_t>(input_width) * height;
  if (!out->resize(plane * count * bytes)) return "does not fit in memory";
  const float low = dtype == 5 ? -128.f : 0.f, high = dtype == 5 ? 127.f : 255.f;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < input_width; ++x) {
      const int u = x - placed->left, v = y - placed->top;
      const bool in = u >= 0 && v >= 0 && u < from->width && v < from->height;
      for (int c = 0; c < count; ++c) {
        const int pixel = in ? from->at(u, v)[bgr ? 2 - c : c] : pad;
        float value = (static_cast<float>(pixel) - mean[c]) / std[c];
        if (fit == kHeight && !in) value = 0;  // lines were padded after the normalisation
        const size_t at = nhwc ? (static_cast<size_t>(y) * input_width + x) * count + c
                               : plane * c + static_cast<size_t>(y) * input_width + x;
        if (dtype == 1) {
          memcpy(out->data() + 4 * at, &value, 4);
          continue;
        }
        if (!numbers) value = nearbyintf(value * 255.f) + low;
        else if (quant.scale) value = nearbyintf(value / quant.scale) + static_cast<float>(quant.zero_point);
        value = value < low ? low : value > high ? high : value;
        const int whole = static_cast<int>(value);
        (*out)[at] = static_cast<uint8_t>(whole);
      }
    }
  }
  return nullptr;
}

}  // namespace lite::app
