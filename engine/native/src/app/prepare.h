// A picture to a model's input: what lite_engine/preprocess.py documents, with the same numbers.
#pragma once

#include "image.h"
#include "json.h"
#include "values.h"

namespace lite::app {

// Where a picture lies in an input of `width` by `height`: resized to (scaled_w, scaled_h), its corner at
// (left, top), which is negative where it was cut.
struct Placement {
  int width = 0, height = 0, scaled_w = 0, scaled_h = 0, left = 0, top = 0;
  // x and y as parts of the input → parts of the picture, 0...1.
  void to_picture(float* x, float* y) const;
};

// How numbers become pixels, in the order of the model's channels.
struct Pixels {
  float mean[3] = {0, 0, 0}, std[3] = {255, 255, 255};
  bool bgr = false;
};

struct Preprocess {
  enum Fit { kStretch, kCrop, kLetterbox, kHeight } fit = kStretch;
  float mean[3] = {0, 0, 0}, std[3] = {255, 255, 255};
  bool bgr = false, grey = false, nhwc = false, numbers = false;
  int width = 0, height = 0, pad = 114;
  double crop = 0.875;
  Array<int> widths;  // of lines, ascending: the model takes each of them; empty where only `width`

  // Null, or what is wrong with it.
  const char* read(Json::Value from);
  const char* read_widths(Json::Value from);
  // The narrowest of `widths` that holds a picture, or the widest one.
  int width_for(const Image& picture) const;
  // Of a picture `w` by `h` in an input of this width.
  const char* place(int w, int h, int input_width, Placement* out) const;
  Pixels pixels() const { return {{mean[0], mean[1], mean[2]}, {std[0], std[1], std[2]}, bgr}; }
  // How wide a line of this shape is at the input's height.
  double line_width(int w, int h) const;
  int channels() const { return grey ? 1 : 3; }
  // Into `out`, an input of this width, one element after the other in the type `dtype` (1 f32, 5 i8, 6 u8).
  const char* apply(const Image& picture, int input_width, int dtype, Quant quant, Array<uint8_t>* out,
                    Placement* placed) const;
};

}  // namespace lite::app
