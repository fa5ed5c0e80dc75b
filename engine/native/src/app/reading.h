// What a model's outputs mean. Every place that reads outputs asks here: Python through lite_outputs_read,
// pipelines, `lite_run` and exported applications directly.
#pragma once

#include "heads.h"
#include "image.h"
#include "json.h"
#include "nms.h"
#include "prepare.h"
#include "values.h"

namespace lite::app {

struct View;

// Something found in a picture. `box` is x0, y0, x1, y1 and `corners` four points from the upper left, clockwise,
// both in parts of the view.
struct Found {
  float box[4];
  float corners[8];
  float score;
  int32_t index;
  bool slanted;   // `corners` say more than `box`
  View* crop;     // owned by the answer, null until it is cut out
  int32_t first_point = 0, num_points = 0;  // of Answer::points
  int32_t row = -1;    // of the output that has its mask
  int32_t shape = -1;  // of Answer::shapes
};

// A mask as a grid of levels over `rect`, in parts of the view: what is above 0 belongs to it.
struct Shape {
  size_t first;  // of Answer::levels
  int32_t width, height;
  float rect[4];
};

// A keypoint, in parts of the view.
struct Keypoint {
  float x, y, score;
};

struct Class {
  int32_t index;
  float score;  // of a mask: the share of the pixels
};

enum class Kind { kValues, kText, kTop, kBoxes, kMask, kRegions, kKeypoints, kVector, kImage };
const char* kind_name(Kind kind);

struct Answer {
  int model = 0;
  Kind kind = Kind::kValues;
  Array<Found> found;
  Array<Class> classes;      // of a text: its letters in order, -1 for a space without label
  Array<Keypoint> points;
  Array<Shape> shapes;       // masks of what was found
  Array<float> levels;
  Array<float> vector;       // of length 1
  Array<char> text;          // UTF-8, with its zero byte
  float confidence = 0;      // mean of the letters' scores
  Array<uint8_t> mask;       // class of each pixel over the picture
  int mask_w = 0, mask_h = 0;
  Image image;               // what a model made that makes images
  bool grey = false;         // of one channel
  Answer* next = nullptr;
  ~Answer();
};

// How outputs are read.
struct Reading {
  bool named = false;  // somebody chose the kind
  Kind kind = Kind::kValues;
  double threshold = 0.4;
  Nms nms;
  double map_threshold = 0.3, box_threshold = 0.6, unclip = 1.5;
  int64_t top = 5;
  bool normalised = false;  // softmax of class scores
  Heads heads;              // of boxes that the model leaves encoded
  int64_t keypoints = 17;
  Array<float> gallery;     // known vectors of length 1, one for each label
  int64_t gallery_size = 0; // of one vector
  Pixels pixels;            // of outputs that are images
  Array<uint8_t> colors;    // of a mask's classes: red, green, blue
  Json::Value labels;
  int num_labels = 0;
  Array<const char*> label;

  const char* read(Json::Value how, Json::Value labels);
  const char* name(int index, char* room, size_t bytes) const;  // "class 7" where there is no label
};

struct Given {
  const Array<Values*>& outputs;
  const Reading& how;
  const Placement& placed;
};

// False where the outputs do not fit this kind. Null in `why`, or what failed.
bool read_text(const Given& g, Answer* out, const char** why);
bool read_top(const Given& g, Answer* out, const char** why);
bool read_boxes(const Given& g, Answer* out, const char** why);
bool read_mask(const Given& g, Answer* out, const char** why);
bool read_regions(const Given& g, Answer* out, const char** why);
bool read_keypoints(const Given& g, Answer* out, const char** why);
bool read_vector(const Given& g, Answer* out, const char** why);
bool read_image(const Given& g, Answer* out, const char** why);
// The first kind that fits, or the one that was chosen. Null, or why not.
const char* read_answer(const Given& g, Answer* out);

// The masks of the things that were found, whose boxes are parts of the input, as far as memory goes.
bool read_masks(const Given& g, Answer* out);

const char* read_gallery(Json::Value from, Reading* out);
// The dims that are not 1; how many there are.
int squeezed(const Values& v, int64_t* dims);
// Sorts best first; equal scores keep their order. At most `most` stay.
void best_first(Array<Found>* found, size_t most);

}  // namespace lite::app
