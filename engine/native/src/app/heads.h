// Detectors whose boxes the model leaves encoded: one output per stride (YOLO v3 to v5 with anchors, v8 and FCOS
// without), or rows of all strides (YOLOX, NanoDet).
#pragma once

#include "json.h"
#include "values.h"

namespace lite::app {

struct Reading;
struct Found;
struct Given;

struct Heads {
  enum Form { kNone, kYolo3, kYolo5, kYolo8, kYolox, kNanoDet, kFcos } form = kNone;
  bool sigmoid = true;   // the model leaves it to the reader
  double scale_xy = 1;   // how far a centre reaches beyond its cell: above 1 in YOLO v4
  int64_t bins = 16;     // of a distance (YOLO v8: 16, NanoDet: 8)
  double center = 0.5;   // of a cell, from which distances count
  bool pixels = false;   // distances are in pixels, not in strides
  struct Level {
    int first, count;    // of `anchors`
  };
  Array<Level> levels;   // finest first
  Array<float> anchors;  // width and height, in pixels of the input
  Array<float> strides;  // of rows of cells
  const char* read(Json::Value how);
};

// Boxes above a score, in the order in which they are found.
struct BoxList {
  Array<Found>* out;
  double threshold;
  bool full = false;    // memory did not suffice
  bool pixels = false;  // of the input; else their size tells
  void add(float x0, float y0, float x1, float y1, int64_t index, float score);
};

// False where no output is such a head.
bool read_heads(const Given& g, BoxList* list);
// Boxes that have masks in other outputs. False where there are none.
bool read_instances(const Given& g, BoxList* list);
// (1,N,5+C) or (1,4+C,N), and their transposes: boxes that the model decodes.
bool read_yolo_rows(const Given& g, BoxList* list);

}  // namespace lite::app
