// YOLO's boxes: decoded rows of centre, size and scores (v5 to v7: with an objectness; v8 and later, anchor-free:
// without, and often transposed), and heads that are decoded here.
//
// Sources: Redmon and Farhadi, "YOLOv3: An Incremental Improvement", 2018 (anchors, exp); Bochkovskiy et al.,
// "YOLOv4", 2020 (scale_xy); Ultralytics YOLOv5 (centre 2s - 0.5, size (2s)^2); Li et al., "Generalized Focal Loss",
// 2020 (YOLOv8: read_distances.cc); Ge et al., "YOLOX", 2021.
#include <math.h>

#include <algorithm>

#include "grid.h"

namespace lite::app {

namespace {

constexpr int kMaxLevels = 8, kMaxAnchors = 32;

// Does a grid of (height,width) cover the input in squares?
bool covers(const Placement& p, int64_t height, int64_t width, float* stride) {
  if (height < 1 || width < 1 || p.height % height || p.width % width) return false;
  *stride = static_cast<float>(p.width / width);
  return p.height / height == p.width / width;
}

void anchored(const Heads& how, const Grid& g, const float* anchors, BoxList* list) {
  const auto act = [&](float x) { return how.sigmoid ? sigmoid(x) : x; };
  const float scale = static_cast<float>(how.form == Heads::kYolo5 ? 2 : how.scale_xy);
  for (int64_t a = 0; a < g.anchors; ++a)
    for (int64_t y = 0; y < g.height; ++y)
      for (int64_t x = 0; x < g.width; ++x) {
        const float object = act(g.at(a, y, x, 4));
        if (!(object > list->threshold)) continue;
        int64_t best = 5;
        float score = object;
        if (g.columns > 5) {
          g.best(a, y, x, 5, &best, &score);
          score = object * act(score);
        }
        const float u = act(g.at(a, y, x, 0)), v = act(g.at(a, y, x, 1));
        const float cx = (u * scale - (scale - 1) / 2 + static_cast<float>(x)) * g.stride;
        const float cy = (v * scale - (scale - 1) / 2 + static_cast<float>(y)) * g.stride;
        float w = g.at(a, y, x, 2), h = g.at(a, y, x, 3);
        if (how.form == Heads::kYolo5) w = act(w) * 2, h = act(h) * 2, w *= w, h *= h;
        else w = expf(w), h = expf(h);
        w *= anchors[2 * a] / 2, h *= anchors[2 * a + 1] / 2;
        list->add(cx - w, cy - h, cx + w, cy + h, best - 5, score);
      }
}

bool with_anchors(const Given& g, BoxList* list) {
  const Heads& how = g.how.heads;
  const int64_t columns = g.how.num_labels ? g.how.num_labels + 5 : 0;
  Grid grids[kMaxLevels];
  int64_t before = INT64_MAX;
  for (size_t level = 0; level < how.levels.size(); ++level) {
    bool found = false;  // the largest grid below the one before
    for (const Values* v : g.outputs) {
      Grid grid;
      if (!grid_of(*v, g.placed, how.levels[level].count, columns, &grid) || grid.columns < 5) continue;
      if (grid.width >= before || (found && grid.width <= grids[level].width)) continue;
      found = true;
      grids[level] = grid;
    }
    if (!found) return false;
    before = grids[level].width;
  }
  for (size_t level = 0; level < how.levels.size(); ++level)
    anchored(how, grids[level], &how.anchors[2 * how.levels[level].first], list);
  return true;
}

bool rows_of_strides(const Given& g, BoxList* list) {
  const Heads& how = g.how.heads;
  if (g.outputs.size() != 1) return false;
  const Values& v = *g.outputs[0];
  if (v.rank != 3 || v.whole || v.dims[0] != 1 || v.dims[2] < 5) return false;
  const int64_t columns = v.dims[2];
  if (g.how.num_labels && columns != g.how.num_labels + 5) return false;
  int64_t rows = 0;
  for (const float s : how.strides) {
    const int step = static_cast<int>(s);
    if (g.placed.width % step || g.placed.height % step) return false;
    rows += int64_t{g.placed.width / step} * (g.placed.height / step);
  }
  if (rows != v.dims[1]) return false;
  const auto act = [&](float x) { return how.sigmoid ? sigmoid(x) : x; };
  const float* row = v.v.data();
  for (const float s : how.strides)
    for (int y = 0; y < g.placed.height / static_cast<int>(s); ++y)
      for (int x = 0; x < g.placed.width / static_cast<int>(s); ++x, row += columns) {
        const float object = act(row[4]);
        if (!(object > list->threshold)) continue;
        int64_t best = 5;
        for (int64_t c = 6; c < columns; ++c)
          if (row[c] > row[best]) best = c;
        const float score = columns > 5 ? object * act(row[best]) : object;
        const float cx = (row[0] + static_cast<float>(x)) * s, cy = (row[1] + static_cast<float>(y)) * s;
        const float w = expf(row[2]) * s / 2, h = expf(row[3]) * s / 2;
        list->add(cx - w, cy - h, cx + w, cy + h, best - 5, score);
      }
  return true;
}

}  // namespace

bool grid_of(const Values& v, const Placement& placed, int64_t anchors, int64_t columns, Grid* g) {
  const int64_t* d = v.dims;
  if (v.whole || d[0] != 1 || (v.rank != 4 && v.rank != 5)) return false;
  *g = {v.v.data(), anchors, 0, 0, 0, 0, 0, 0, 0, 0};
  const auto fits = [&](int64_t h, int64_t w, int64_t a, int64_t c) {
    g->height = h, g->width = w, g->columns = c;
    return a == anchors && c >= 4 && (!columns || c == columns) && covers(placed, h, w, &g->stride);
  };
  if (v.rank == 4) {
    if (d[1] % anchors == 0 && fits(d[2], d[3], anchors, d[1] / anchors)) {
      g->by_x = 1, g->by_y = d[3], g->by_column = d[2] * d[3], g->by_anchor = g->columns * g->by_column;
      return true;
    }
    if (d[3] % anchors != 0 || !fits(d[1], d[2], anchors, d[3] / anchors)) return false;
    g->by_column = 1, g->by_anchor = g->columns, g->by_x = d[3], g->by_y = d[2] * d[3];
    return true;
  }
  if (fits(d[2], d[3], d[1], d[4])) {
    g->by_column = 1, g->by_x = d[4], g->by_y = d[3] * d[4], g->by_anchor = d[2] * g->by_y;
  } else if (fits(d[1], d[2], d[3], d[4])) {
    g->by_column = 1, g->by_anchor = d[4], g->by_x = d[3] * d[4], g->by_y = d[2] * g->by_x;
  } else if (fits(d[3], d[4], d[1], d[2])) {
    g->by_x = 1, g->by_y = d[4], g->by_column = d[3] * d[4], g->by_anchor = d[2] * g->by_column;
  } else {
    return false;
  }
  return true;
}

void Grid::best(int64_t a, int64_t y, int64_t x, int64_t from, int64_t* column, float* score) const {
  *column = from;
  *score = at(a, y, x, from);
  for (int64_t c = from + 1; c < columns; ++c)
    if (at(a, y, x, c) > *score) *column = c, *score = at(a, y, x, c);
}

const char* Heads::read(Json::Value how) {
  static const char* const known[] = {"yolov3", "yolov5", "yolov8", "yolox", "nanodet", "fcos"};
  const char* wanted = how["decode"].text(nullptr);
  if (!wanted) return nullptr;
  for (int i = 0; i < 6; ++i)
    if (strcmp(known[i], wanted) == 0) form = static_cast<Form>(i + 1);
  if (form == kNone) return "read: `decode` is not yolov3, yolov5, yolov8, yolox, nanodet or fcos";
  const Json::Value said = how["sigmoid"];
  sigmoid = said ? said.yes() : form != kYolox && form != kNanoDet;
  scale_xy = how["scale_xy"].number(1);
  if (!(scale_xy >= 1 && scale_xy <= 2)) return "read: `scale_xy` is not a number from 1 to 2";
  center = how["center"].number(0.5);
  if (!(center >= 0 && center <= 1)) return "read: `center` is not a number from 0 to 1";
  pixels = how["pixels"].yes();
  bins = form == kFcos ? 1 : form == kNanoDet ? 8 : 16;
  if (!how["bins"].whole(1, 64, &bins)) return "read: `bins` is not a whole number from 1 to 64";
  for (Json::Value level = how["anchors"].first(); level; level = level.next()) {
    const int first = static_cast<int>(anchors.size() / 2);
    for (Json::Value v = level.first(); v; v = v.next()) {
      const double n = v.number();
      if (!(n > 0 && n < 65536)) return "read: an anchor is not a width and a height in pixels";
      if (!anchors.push(static_cast<float>(n))) return "does not fit in memory";
    }
    const int count = static_cast<int>(anchors.size() / 2) - first;
    if (anchors.size() % 2 || count < 1 || count > kMaxAnchors || levels.size() == kMaxLevels)
      return "read: `anchors` is not a list of widths and heights for each level";
    if (!levels.push({first, count})) return "does not fit in memory";
  }
  if ((form == kYolo3 || form == kYolo5) && levels.empty()) return "read: `decode` needs `anchors`";
  for (Json::Value v = how["strides"].first(); v; v = v.next()) {
    int64_t stride = 0;
    if (!v.whole(1, 4096, &stride) || strides.size() == kMaxLevels) return "read: `strides` are not pixels";
    if (!strides.push(static_cast<float>(stride))) return "does not fit in memory";
  }
  for (float s = 8; strides.size() < (form == kFcos ? 5 : 3) && !how["strides"]; s *= 2)
    if (!strides.push(s)) return "does not fit in memory";
  return nullptr;
}

bool read_heads(const Given& g, BoxList* list) {
  list->pixels = true;
  switch (g.how.heads.form) {
    case Heads::kYolo8:
    case Heads::kNanoDet:
    case Heads::kFcos: return read_distances(g, list);
    case Heads::kYolox: return rows_of_strides(g, list);
    default: return with_anchors(g, list);
  }
}

// (1,N,5+C), or (1,4+C,N) and its transpose: only where a person or the labels say so, since any plane of
// numbers could be this. With labels their number tells whether there is an objectness.
bool read_yolo_rows(const Given& g, BoxList* list) {
  const Values* only = nullptr;  // training heads of rank 4 and 5 may lie beside it
  for (const Values* v : g.outputs) {
    if (v->rank == 3 && only) return false;
    if (v->rank == 3) only = v;
    else if (v->rank < 3 || !g.how.named) return false;
  }
  if (!only || only->whole || only->dims[0] != 1) return false;
  const Values& v = *only;
  const bool turned = v.dims[1] < v.dims[2];
  const int64_t n = turned ? v.dims[2] : v.dims[1], columns = turned ? v.dims[1] : v.dims[2];
  const int64_t labels = g.how.num_labels;
  if (columns < 5 || n < 8 || (labels ? columns != labels + 4 && columns != labels + 5 : !g.how.named))
    return false;
  const bool sure = labels ? columns == labels + 5 : !turned;
  const int64_t row = turned ? 1 : columns, column = turned ? n : 1;
  for (int64_t i = 0; i < n; ++i) {
    const float* p = &v.v[i * row];
    const int64_t from = sure ? 5 : 4;
    int64_t best = from;
    for (int64_t c = from; c < columns; ++c)
      if (p[c * column] > p[best * column]) best = c;
    const float object = sure ? p[4 * column] : 1.f;
    const float score = from < columns ? object * p[best * column] : object;
    const float x = p[0], y = p[column], w = p[2 * column] / 2, h = p[3 * column] / 2;
    list->add(x - w, y - h, x + w, y + h, from < columns ? best - from : 0, score);
  }
  return true;
}

}  // namespace lite::app
