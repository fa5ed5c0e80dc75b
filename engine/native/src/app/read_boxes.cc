// Detectors: TFLite's post-processing (boxes, classes, scores, count), rows of label, score and corners
// (multiclass_nms, 6 columns; DetectionOutput, 7), (1,N,4) corners with (1,N,C) scores whose class 0 is the
// background (SSD and its relatives). YOLO's forms are in read_yolo.cc.
#include "reading.h"

#include <math.h>

#include <algorithm>

namespace lite::app {

namespace {

bool is_float(const Values& v) { return !v.whole; }

int64_t first_of(const Values& v) { return static_cast<int64_t>(v.v[0]); }

bool post_processed(const Array<Values*>& o, BoxList* list) {
  if (o.size() != 4 || o[0]->rank != 3 || o[0]->dims[2] != 4 || o[0]->dims[0] != 1) return false;
  const int64_t n = o[0]->dims[1];
  for (int i = 1; i < 3; ++i)
    if (o[i]->rank != 2 || o[i]->dims[0] != 1 || o[i]->dims[1] != n) return false;
  if (o[3]->count() != 1 || !(fabsf(o[3]->v[0]) < 1e9f)) return false;
  const int64_t count = std::min(n, first_of(*o[3]));
  for (int64_t i = 0; i < count; ++i) {
    const float* b = &o[0]->v[4 * i];
    const float c = o[1]->v[i];
    if (fabsf(c) < 1e9f) list->add(b[1], b[0], b[3], b[2], static_cast<int64_t>(c), o[2]->v[i]);
  }
  return true;
}

bool rows(const Array<Values*>& o, BoxList* list) {
  const Values* v = nullptr;
  for (const Values* each : o)
    if (!v && is_float(*each) && (each->rank == 2 || each->rank == 4)) v = each;
  if (!v || (v->last() != 6 && v->last() != 7) || (v->rank == 4) != (v->last() == 7)) return false;
  for (const Values* each : o)
    if (each != v && is_float(*each)) return false;
  if (v->rank == 4 && (v->dims[0] != 1 || v->dims[1] != 1)) return false;
  const int64_t columns = v->last(), n = v->count() / columns;
  const auto row = [&](int64_t i) { return &v->v[i * columns + columns - 6]; };
  for (int64_t i = 0; i < n; ++i)
    if (row(i)[0] != nearbyintf(row(i)[0]) || !(fabsf(row(i)[0]) < 1e9f) || row(i)[1] > 1) return false;
  for (int64_t i = 0; i < n; ++i) {
    const float* r = row(i);
    if (r[0] >= 0) list->add(r[2], r[3], r[4], r[5], static_cast<int64_t>(r[0]), r[1]);
  }
  return true;
}

bool corners(const Array<Values*>& o, BoxList* list) {
  if (o.size() != 2) return false;
  for (const Values* v : o)
    if (v->rank != 3 || !is_float(*v) || v->dims[0] != 1) return false;
  const bool in_order = o[0]->dims[2] == 4;
  const Values &boxes = *o[in_order ? 0 : 1], &scores = *o[in_order ? 1 : 0];
  const int64_t n = boxes.dims[1], classes = scores.dims[2];
  if (boxes.dims[2] != 4 || scores.dims[1] != n || classes < 2) return false;
  Array<Class> best;
  float greatest = 0;
  if (!best.resize(static_cast<size_t>(n))) return list->full = true;
  for (int64_t i = 0; i < n; ++i) {
    const float* s = &scores.v[i * classes];
    int32_t c = 1;
    for (int32_t k = 2; k < classes; ++k)
      if (s[k] > s[c]) c = k;
    best[i] = {c, s[c]};
    greatest = std::max(greatest, s[c]);
  }
  const float sure = std::min(0.4f, greatest);
  for (int64_t i = 0; i < n; ++i) {
    const float* b = &boxes.v[4 * i];
    if (best[i].score >= sure && !(b[2] > b[0] && b[3] > b[1])) return false;  // offsets from anchors
  }
  for (int64_t i = 0; i < n; ++i) {
    const float* b = &boxes.v[4 * i];
    list->add(b[0], b[1], b[2], b[3], best[i].index, best[i].score);
  }
  return true;
}

bool better(const Found& a, const Found& b) { return a.score > b.score; }

}  // namespace

void BoxList::add(float x0, float y0, float x1, float y1, int64_t index, float score) {
  if (!(score > threshold)) return;
  full = full || !out->push({{x0, y0, x1, y1}, {}, score, static_cast<int32_t>(index), false, nullptr});
}

void best_first(Array<Found>* found, size_t most) {
  Array<Found>& f = *found;
  for (size_t i = 0; i < f.size(); ++i) f[i].corners[0] = static_cast<float>(i);
  std::sort(f.begin(), f.end(), [](const Found& a, const Found& b) {
    return a.score != b.score ? better(a, b) : a.corners[0] < b.corners[0];
  });
  f.cut(most);
}

bool read_boxes(const Given& g, Answer* out, const char** why) {
  constexpr size_t kMost = 30000;  // what suppression sees: its time grows with the square
  BoxList list{&out->found, g.how.threshold};
  bool thin = false;
  if (g.how.heads.form != Heads::kNone) {
    thin = true;
    if (!read_heads(g, &list)) return out->found.clear(), false;
  } else if (read_instances(g, &list)) {
    thin = !list.pixels;  // where each has a mask of its own, the model has chosen among them
  } else if (!post_processed(g.outputs, &list) && !rows(g.outputs, &list)) {
    thin = true;
    if (!corners(g.outputs, &list) && !read_yolo_rows(g, &list)) return out->found.clear(), false;
  }
  if (list.full) return *why = "does not fit in memory", true;
  Array<Found>& f = out->found;
  best_first(&f, kMost);
  float most = 0;
  for (const Found& each : f)
    for (const float x : each.box) most = std::max(most, x);
  if (list.pixels || most > 2)  // pixels of the input
    for (Found& each : f)
      for (int i = 0; i < 4; ++i)
        each.box[i] /= static_cast<float>(i % 2 ? g.placed.height : g.placed.width);
  if (thin && !g.how.nms.apply(&f, g.how.threshold, g.placed)) *why = "does not fit in memory";
  if (!*why && !read_masks(g, out)) *why = "does not fit in memory";
  for (Found& each : f) {
    g.placed.to_picture(&each.box[0], &each.box[1]);
    g.placed.to_picture(&each.box[2], &each.box[3]);
    memset(each.corners, 0, sizeof each.corners);
  }
  return true;
}

}  // namespace lite::app
