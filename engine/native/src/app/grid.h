// An output of a detector as a grid over the input: what read_yolo.cc and read_distances.cc share.
#pragma once

#include <math.h>

#include "reading.h"

namespace lite::app {

// Element (anchor, y, x, column).
struct Grid {
  const float* v;
  int64_t anchors, height, width, columns;
  int64_t by_anchor, by_y, by_x, by_column;
  float stride;
  float at(int64_t a, int64_t y, int64_t x, int64_t c) const {
    return v[a * by_anchor + y * by_y + x * by_x + c * by_column];
  }
  // The best of the columns from `from` on.
  void best(int64_t a, int64_t y, int64_t x, int64_t from, int64_t* column, float* score) const;
};

inline float sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// Reads (1,A*C,H,W), (1,H,W,A*C), (1,A,H,W,C), (1,H,W,A,C) or (1,A,C,H,W); `columns` is C, or 0 where
// it is not known. False for another shape, or one that does not cover the input in squares.
bool grid_of(const Values& v, const Placement& placed, int64_t anchors, int64_t columns, Grid* g);

// Boxes as distances to the four sides. False where no output is such a head.
bool read_distances(const Given& g, BoxList* list);

}  // namespace lite::app
