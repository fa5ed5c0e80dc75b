// Detectors without anchors, whose boxes are distances from a cell to the four sides.
//
// Sources: Tian et al., "FCOS: Fully Convolutional One-Stage Object Detection", 2019 (centerness; score as in
// torchvision: sqrt(class * centerness)); Li et al., "Generalized Focal Loss", 2020 (a distance as the mean of a
// distribution: NanoDet, YOLO v8).
#include <algorithm>

#include "grid.h"

namespace lite::app {

namespace {

// The mean of a distribution over 0, 1, ... that is given by its logits; one bin is the distance itself.
float distance(const Grid& g, int64_t y, int64_t x, int64_t side, int64_t bins) {
  if (bins == 1) return g.at(0, y, x, side);
  float most = g.at(0, y, x, side * bins), sum = 0, mean = 0;
  for (int64_t i = 1; i < bins; ++i) most = std::max(most, g.at(0, y, x, side * bins + i));
  for (int64_t i = 0; i < bins; ++i) {
    const float e = expf(g.at(0, y, x, side * bins + i) - most);
    sum += e;
    mean += e * static_cast<float>(i);
  }
  return mean / sum;
}

// What one stride has; `sure` is FCOS' centerness, or null.
void add_boxes(const Heads& how, const Grid& boxes, const Grid& scores, const Grid* sure, BoxList* list) {
  const auto act = [&](float x) { return how.sigmoid ? sigmoid(x) : x; };
  const float s = boxes.stride, unit = how.pixels ? 1.f : s, shift = static_cast<float>(how.center);
  for (int64_t y = 0; y < boxes.height; ++y)
    for (int64_t x = 0; x < boxes.width; ++x) {
      int64_t best;
      float score;
      scores.best(0, y, x, 0, &best, &score);
      score = act(score);
      if (sure) score = sqrtf(score * act(sure->at(0, y, x, 0)));
      if (!(score > list->threshold)) continue;
      const float cx = (static_cast<float>(x) + shift) * s, cy = (static_cast<float>(y) + shift) * s;
      float side[4];
      for (int k = 0; k < 4; ++k) side[k] = distance(boxes, y, x, k, how.bins) * unit;
      list->add(cx - side[0], cy - side[1], cx + side[2], cy + side[3], best, score);
    }
}

using Levels = Array<Grid>;  // of one output

// One grid, or rows (1,N,C) of one stride or of all, one after the other. Empty where it is neither.
bool levels_of(const Given& g, const Values& v, int64_t columns, Levels* out) {
  out->clear();
  Grid grid;
  if (grid_of(v, g.placed, 1, columns, &grid)) return out->push(grid);
  if (v.rank != 3 || v.whole || v.dims[0] != 1 || (columns && v.dims[2] != columns)) return true;
  int64_t rows = 0;
  for (const float s : g.how.heads.strides) {
    const int step = static_cast<int>(s);
    const int64_t height = (g.placed.height + step - 1) / step, width = (g.placed.width + step - 1) / step;
    const bool alone = height * width == v.dims[1];
    if (alone) out->clear(), rows = 0;
    const int64_t k = v.dims[2];
    if (rows + height * width <= v.dims[1] &&
        !out->push({v.v.data() + rows * k, 1, height, width, k, 0, width * k, k, 1, s}))
      return false;
    rows += height * width;
    if (alone) break;
  }
  if (rows != v.dims[1]) out->clear();
  return true;
}

// An output of the same cells with another number of columns (0: any). False where it has other cells.
bool like(const Values& v, const Values& boxes, const Grid& b, int64_t offset, int64_t columns, Grid* out) {
  if (v.whole || v.dims[0] != 1 || v.rank != boxes.rank) return false;
  *out = b;
  out->v = v.v.data();
  if (v.rank == 3) {
    if (v.dims[1] != boxes.dims[1]) return false;
    out->columns = out->by_x = v.dims[2];
    out->by_y = b.width * out->columns;
    out->v += offset * out->columns;
  } else if (v.rank == 4) {
    const bool first = v.dims[2] == b.height && v.dims[3] == b.width;
    if (!first && (v.dims[1] != b.height || v.dims[2] != b.width)) return false;
    out->columns = first ? v.dims[1] : v.dims[3];
    out->by_column = first ? b.height * b.width : 1;
    out->by_x = first ? 1 : out->columns;
    out->by_y = out->by_x * b.width;
  } else {
    return false;
  }
  return out->columns >= 1 && (!columns || out->columns == columns);
}

// Boxes, scores and centerness are outputs of their own.
bool apart(const Given& g, Levels* levels, BoxList* list) {
  const Heads& how = g.how.heads;
  const int64_t sides = 4 * how.bins, labels = g.how.num_labels;
  const bool centred = how.form == Heads::kFcos;
  const size_t count = g.outputs.size();
  const Values* taken[LITE_APP_MAX_OUTPUTS] = {};  // as scores, which may have as many columns as the boxes
  size_t pairs = 0;
  for (size_t i = 0; i < count; ++i) {
    const Values* v = g.outputs[how.form == Heads::kYolo8 ? i : count - 1 - i];  // which has the boxes first
    if (std::find(taken, taken + pairs, v) != taken + pairs) continue;
    if (!levels_of(g, *v, sides, levels)) return list->full = true;
    int64_t offset = 0;
    for (const Grid& boxes : *levels) {
      Grid scores, sure;
      const Values* classes = nullptr;
      const Values* centres = nullptr;
      for (const Values* other : g.outputs) {
        Grid grid;
        if (other == v || !like(*other, *v, boxes, offset, 0, &grid)) continue;
        if (!classes && (labels ? grid.columns == labels : grid.columns != sides && (!centred || grid.columns > 1)))
          classes = other, scores = grid;
        else if (centred && !centres && grid.columns == 1)
          centres = other, sure = grid;
      }
      offset += boxes.height * boxes.width;
      if (!classes || centred != (centres != nullptr)) continue;
      add_boxes(how, boxes, scores, centres ? &sure : nullptr, list);
      if (pairs == 0 || taken[pairs - 1] != classes) {
        if (pairs == LITE_APP_MAX_OUTPUTS) return true;
        taken[pairs++] = classes;
      }
    }
  }
  return pairs > 0;
}

// Boxes and scores are columns of one output: NanoDet has the scores first.
bool joined(const Given& g, Levels* levels, BoxList* list) {
  const Heads& how = g.how.heads;
  const int64_t sides = 4 * how.bins, labels = g.how.num_labels;
  bool found = false;
  for (const Values* v : g.outputs) {
    if (!levels_of(g, *v, labels ? sides + labels : 0, levels)) return list->full = true;
    for (const Grid& both : *levels) {
      if (both.columns <= sides) continue;
      const int64_t classes = both.columns - sides;
      Grid boxes = both, scores = both;
      (how.form == Heads::kNanoDet ? boxes : scores).v +=
          (how.form == Heads::kNanoDet ? classes : sides) * both.by_column;
      boxes.columns = sides;
      scores.columns = classes;
      add_boxes(how, boxes, scores, nullptr, list);
      found = true;
    }
  }
  return found;
}

}  // namespace

bool read_distances(const Given& g, BoxList* list) {
  Levels levels;
  if (apart(g, &levels, list)) return true;
  return g.how.heads.form != Heads::kFcos && joined(g, &levels, list);
}

}  // namespace lite::app
