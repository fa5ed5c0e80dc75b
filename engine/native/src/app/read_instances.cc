// Detectors that say which pixels a thing has, beside its box: rows of YOLO with coefficients and an output of
// prototypes, of which a mask is the weighted sum (Bolya et al., "YOLACT: Real-time Instance Segmentation", 2019), and
// boxes with labels, scores and a mask each (He et al., "Mask R-CNN", 2017).
#include <math.h>

#include <algorithm>

#include "heads.h"
#include "reading.h"

namespace lite::app {

namespace {

constexpr size_t kMostLevels = size_t{1} << 24;  // of all masks of an answer

// Rows (1,N,K) or (1,K,N), whose last columns are coefficients of the prototypes (1,M,h,w) or (1,h,w,M).
struct Weighted {
  const Values *rows = nullptr, *prototypes = nullptr;
  int64_t count = 0, columns = 0, by_row = 0, by_column = 0;
  int64_t weights = 0, height = 0, width = 0, by_weight = 0, by_cell = 0;
  bool sure = false;  // an objectness stands before the scores

  bool find(const Given& g) {
    for (const Values* v : g.outputs) {
      const Values** place = v->rank == 3 ? &rows : v->rank == 4 ? &prototypes : nullptr;
      if (!place || *place || v->whole || v->dims[0] != 1) return false;
      *place = v;
    }
    if (!rows || !prototypes) return false;
    const int64_t *r = rows->dims, *p = prototypes->dims;
    const bool turned = r[1] < r[2];
    count = turned ? r[2] : r[1], columns = turned ? r[1] : r[2];
    by_row = turned ? 1 : columns, by_column = turned ? count : 1;
    const bool first = fits(g, p[1]);
    if (!first && !fits(g, p[3])) return false;
    weights = first ? p[1] : p[3];
    height = first ? p[2] : p[1], width = first ? p[3] : p[2];
    by_weight = first ? height * width : 1, by_cell = first ? 1 : weights;
    const int64_t labels = g.how.num_labels;
    sure = labels ? columns == 5 + labels + weights : !turned;
    return height > 0 && width > 0 && columns > (sure ? 5 : 4) + weights;
  }
  // Without labels only where a person says that these are boxes: any plane of numbers could be.
  bool fits(const Given& g, int64_t m) const {
    const int64_t labels = g.how.num_labels, rest = columns - 4 - m;
    return m > 0 && (labels ? rest == labels || rest == labels + 1 : g.how.named && rest > 0);
  }
  float at(int64_t row, int64_t column) const { return rows->v[row * by_row + column * by_column]; }
};

// (N,4), (N) of whole numbers, (N), and (N,1,h,w).
struct Masked {
  const Values *boxes = nullptr, *labels = nullptr, *scores = nullptr, *masks = nullptr;
  bool find(const Given& g) {
    for (const Values* v : g.outputs) {
      const Values** place = v->rank == 4 ? &masks : v->rank == 2 ? &boxes : v->whole ? &labels : &scores;
      if (*place || (v->rank == 3 || v->rank == 0 || v->rank > 4)) return false;
      *place = v;
    }
    if (!boxes || !labels || !scores || !masks || boxes->dims[1] != 4 || masks->dims[1] != 1) return false;
    const int64_t n = boxes->dims[0];
    return labels->dims[0] == n && scores->dims[0] == n && masks->dims[0] == n && masks->dims[2] > 0 &&
           masks->dims[3] > 0;
  }
};

void add(BoxList* list, float x0, float y0, float x1, float y1, int64_t index, float score, int64_t row) {
  const size_t before = list->out->size();
  list->add(x0, y0, x1, y1, index, score);
  if (list->out->size() > before) (*list->out)[before].row = static_cast<int32_t>(row);
}

// `v`, a part of the input, as one of the picture, which may lie outside it.
float beside(float v, int side, int offset, int scaled) {
  return static_cast<float>((static_cast<double>(v) * side - offset) / scaled);
}

// Room for a mask over `rect`, parts of the input; null where there is none left.
float* room(const Given& g, Answer* out, Found* f, const float* rect, int64_t w, int64_t h) {
  const size_t first = out->levels.size(), count = static_cast<size_t>(w) * static_cast<size_t>(h);
  if (first + count > kMostLevels || !out->levels.resize(first + count)) return nullptr;
  const Placement& p = g.placed;
  Shape shape{first, static_cast<int32_t>(w), static_cast<int32_t>(h),
              {beside(rect[0], p.width, p.left, p.scaled_w), beside(rect[1], p.height, p.top, p.scaled_h),
               beside(rect[2], p.width, p.left, p.scaled_w), beside(rect[3], p.height, p.top, p.scaled_h)}};
  if (!out->shapes.push(shape)) return nullptr;
  f->shape = static_cast<int32_t>(out->shapes.size()) - 1;
  return out->levels.data() + first;
}

// The cells of `side` that a box touches, and one more on each side: what is between their middles is told by them.
void cells(float low, float high, int64_t side, int64_t* from, int64_t* to) {
  const float a = std::min(std::max(low, 0.f), 1.f), b = std::min(std::max(high, 0.f), 1.f);
  *from = std::max<int64_t>(static_cast<int64_t>(a * static_cast<float>(side)) - 1, 0);
  *to = std::min<int64_t>(static_cast<int64_t>(b * static_cast<float>(side)) + 2, side);
}

bool weigh(const Given& g, const Weighted& w, Answer* out, Found* f) {
  int64_t x0, x1, y0, y1;
  cells(f->box[0], f->box[2], w.width, &x0, &x1);
  cells(f->box[1], f->box[3], w.height, &y0, &y1);
  if (x0 >= x1 || y0 >= y1) return true;
  const float across = static_cast<float>(w.width), down = static_cast<float>(w.height);
  const float rect[4] = {static_cast<float>(x0) / across, static_cast<float>(y0) / down,
                         static_cast<float>(x1) / across, static_cast<float>(y1) / down};
  float* to = room(g, out, f, rect, x1 - x0, y1 - y0);
  if (!to) return false;
  const int64_t from = w.columns - w.weights;
  for (int64_t y = y0; y < y1; ++y)
    for (int64_t x = x0; x < x1; ++x) {
      const float* cell = w.prototypes->v.data() + (y * w.width + x) * w.by_cell;
      float sum = 0;  // above 0: more likely than not
      for (int64_t m = 0; m < w.weights; ++m) sum += w.at(f->row, from + m) * cell[m * w.by_weight];
      *to++ = sum;
    }
  return true;
}

}  // namespace

bool read_instances(const Given& g, BoxList* list) {
  Weighted w;
  if (w.find(g)) {
    const int64_t first = w.sure ? 5 : 4;
    for (int64_t i = 0; i < w.count; ++i) {
      int64_t best = first;
      for (int64_t c = first; c < w.columns - w.weights; ++c)
        if (w.at(i, c) > w.at(i, best)) best = c;
      const float score = w.at(i, best) * (w.sure ? w.at(i, 4) : 1.f);
      const float x = w.at(i, 0), y = w.at(i, 1), half_w = w.at(i, 2) / 2, half_h = w.at(i, 3) / 2;
      add(list, x - half_w, y - half_h, x + half_w, y + half_h, best - first, score, i);
    }
    return true;
  }
  Masked m;
  if (!m.find(g)) return false;
  list->pixels = true;
  for (int64_t i = 0; i < m.boxes->dims[0]; ++i) {
    const float* b = &m.boxes->v[4 * i];
    add(list, b[0], b[1], b[2], b[3], static_cast<int64_t>(m.labels->v[i]), m.scores->v[i], i);
  }
  return true;
}

bool read_masks(const Given& g, Answer* out) {
  Weighted w;
  Masked m;
  const bool weighted = w.find(g);
  if (!weighted && !m.find(g)) return true;
  for (Found& f : out->found) {
    if (f.row < 0) continue;
    if (weighted) {
      if (!weigh(g, w, out, &f)) break;
      continue;
    }
    const int64_t height = m.masks->dims[2], width = m.masks->dims[3];
    float* to = room(g, out, &f, f.box, width, height);
    if (!to) break;
    const float* from = &m.masks->v[f.row * height * width];
    for (int64_t i = 0; i < height * width; ++i) to[i] = from[i] - 0.5f;
  }
  return true;
}

}  // namespace lite::app
