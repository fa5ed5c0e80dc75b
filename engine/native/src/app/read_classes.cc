// Class scores, lines of text and classes of pixels.
#include "reading.h"

#include <math.h>

#include <algorithm>

namespace lite::app {

namespace {

bool append(Array<char>* text, const char* more) {
  for (; *more; ++more)
    if (!text->push(*more)) return false;
  return true;
}

bool is_blank(const char* label) {
  static const char* const known[] = {"-", "_", "<blank>", "blank", "[blank]", ""};
  for (const char* k : known)
    if (strcmp(k, label) == 0) return true;
  return false;
}

// (1,1,1,7): what Caffe's DetectionOutput says of one box, or of none, rather than seven classes.
bool is_one_row(const Values& v) {
  if (v.rank != 4 || v.whole || v.count() != 7 || v.dims[3] != 7) return false;
  const float* p = v.v.data();
  bool none = true;
  for (int i = 0; i < 7; ++i) none = none && p[i] == -1;
  return none || (p[0] == 0 && p[1] == nearbyintf(p[1]) && p[2] > 0 && p[2] <= 1 && p[5] > p[3] &&
                  p[6] > p[4]);
}

struct Alphabet {
  int64_t classes, steps;
  bool last;  // classes are the last axis
  int64_t blank;
  bool shifted;  // the dictionary lacks the blank, which comes first
};

bool alphabet_of(const int64_t* dims, const Reading& how, Alphabet* out) {
  const int64_t labels = how.num_labels;
  for (int pass = 0; pass < 2; ++pass) {
    for (int axis = 1; axis >= 0; --axis) {
      const int64_t classes = dims[axis], more = classes - labels;
      const bool fits = pass == 0 ? more == 0 : more > 0 && more <= 2 && labels >= 10;
      if (!fits) continue;
      *out = {classes, dims[1 - axis], axis == 1, 0, pass == 1};
      if (pass == 0 && is_blank(how.label[labels - 1]) && !is_blank(how.label[0]))
        out->blank = classes - 1;
      return true;
    }
  }
  return false;
}

}  // namespace

int squeezed(const Values& v, int64_t* dims) {
  int rank = 0;
  for (int i = 0; i < v.rank; ++i)
    if (v.dims[i] != 1) dims[rank++] = v.dims[i];
  return rank;
}

bool read_top(const Given& g, Answer* out, const char** why) {
  if (g.outputs.size() != 1 || is_one_row(*g.outputs[0])) return false;
  const Values& v = *g.outputs[0];
  int64_t dims[8];
  if (squeezed(v, dims) != 1 || v.count() < 2) return false;
  Array<Class> all;
  if (!all.reserve(v.v.size())) return *why = "does not fit in memory", true;
  double low = v.v[0], sum = 0;
  for (const float x : v.v) low = x > low ? x : low;
  if (g.how.normalised)
    for (const float x : v.v) sum += exp(x - low);
  for (size_t i = 0; i < v.v.size(); ++i)
    all.push({static_cast<int32_t>(i),
              g.how.normalised ? static_cast<float>(exp(v.v[i] - low) / sum) : v.v[i]});
  const size_t shown = std::min<size_t>(all.size(), static_cast<size_t>(g.how.top));
  std::partial_sort(all.begin(), all.begin() + shown, all.end(), [](const Class& a, const Class& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  for (size_t i = 0; i < shown; ++i)
    if (!out->classes.push(all[i])) *why = "does not fit in memory";
  return true;
}

bool read_text(const Given& g, Answer* out, const char** why) {
  if (g.outputs.size() != 1 || !g.how.num_labels) return false;
  const Values& v = *g.outputs[0];
  int64_t dims[8];
  Alphabet a;
  if (squeezed(v, dims) != 2 || !alphabet_of(dims, g.how, &a)) return false;
  const int64_t step = a.last ? a.classes : 1, next = a.last ? 1 : a.steps;
  bool logits = false;
  for (const float x : v.v) logits = logits || x < 0 || x > 1;
  int64_t before = -1;
  double sum = 0;
  int letters = 0;
  for (int64_t t = 0; t < a.steps; ++t) {
    const float* p = v.v.data() + t * step;
    int64_t best = 0;
    for (int64_t c = 1; c < a.classes; ++c)
      if (p[c * next] > p[best * next]) best = c;
    double score = p[best * next], total = 0;
    if (logits) {
      for (int64_t c = 0; c < a.classes; ++c)
        total += exp(static_cast<double>(p[c * next]) - p[best * next]);
      score = 1 / total;
    }
    if (best != before && best != a.blank) {
      const int64_t at = a.shifted ? best - 1 : best;
      const bool named = at < g.how.num_labels;
      if (!append(&out->text, named ? g.how.label[at] : " ") ||
          !out->classes.push({named ? static_cast<int32_t>(at) : -1, static_cast<float>(score)}))
        *why = "does not fit in memory";
      sum += score;
      ++letters;
    }
    before = best;
  }
  if (!out->text.push('\0')) *why = "does not fit in memory";
  out->confidence = letters ? static_cast<float>(sum / letters) : 0;
  return true;
}

namespace {

constexpr int kMaxClasses = 256;

// (H,W) of class numbers in one plane of whole numbers, or by the greatest of several planes.
bool class_map(const Values& v, bool binary, Array<uint8_t>* out, int64_t* h, int64_t* w) {
  int64_t d[8];
  int rank = 0;
  if (binary) {
    if (squeezed(v, d) != 2) return false;
    *h = d[0], *w = d[1];
    if (!out->resize(v.v.size())) return false;
    for (size_t i = 0; i < v.v.size(); ++i) (*out)[i] = v.v[i] > 0.5f;
    return true;
  }
  if ((v.rank != 3 && v.rank != 4) || v.dims[0] != 1) return false;
  for (int i = 1; i < v.rank; ++i) d[rank++] = v.dims[i];
  if (v.whole && v.bytes >= 4) {
    if (rank == 3 && d[0] == 1) d[0] = d[1], d[1] = d[2], --rank;
    if (rank == 3 && d[2] == 1) --rank;
    if (rank != 2 || d[0] < 8 || d[1] < 8) return false;
    *h = d[0], *w = d[1];
    if (!out->resize(v.v.size())) return false;
    for (size_t i = 0; i < v.v.size(); ++i) {
      if (v.v[i] < 0 || v.v[i] >= kMaxClasses) return false;
      (*out)[i] = static_cast<uint8_t>(v.v[i]);
    }
    return true;
  }
  if (rank != 3) return false;
  const bool first = d[0] < std::min(d[1], d[2]);
  const int64_t classes = first ? d[0] : d[2];
  *h = first ? d[1] : d[0];
  *w = first ? d[2] : d[1];
  if (classes < 2 || classes > kMaxClasses || std::min(*h, *w) <= std::max<int64_t>(8, classes))
    return false;
  if (!out->resize(static_cast<size_t>(*h * *w))) return false;
  const int64_t pixel = first ? 1 : classes, plane = first ? *h * *w : 1;
  for (int64_t i = 0; i < *h * *w; ++i) {
    const float* p = v.v.data() + i * pixel;
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (p[c * plane] > p[best * plane]) best = c;
    (*out)[i] = static_cast<uint8_t>(best);
  }
  return true;
}

// What of `length` cells that span `whole` lies over the picture.
void part(int64_t length, int whole, int offset, int scaled, int64_t* low, int64_t* high) {
  const int start = offset > 0 ? offset : 0, end = std::min(offset + scaled, whole);
  *low = std::min<int64_t>(static_cast<int64_t>(nearbyint(static_cast<double>(start) * length / whole)),
                           length - 1);
  *high = std::max<int64_t>(static_cast<int64_t>(nearbyint(static_cast<double>(end) * length / whole)),
                            *low + 1);
}

}  // namespace

bool read_mask(const Given& g, Answer* out, const char** why) {
  const bool alone = g.outputs.size() == 1;
  Array<uint8_t> map;
  int64_t h = 0, w = 0;
  bool found = false;
  for (size_t i = 0; i < g.outputs.size() && !found; ++i)
    found = (alone || g.outputs[i]->whole) && class_map(*g.outputs[i], false, &map, &h, &w);
  if (!found && g.how.named && alone) found = class_map(*g.outputs[0], true, &map, &h, &w);
  if (!found) return false;
  int64_t x0, x1, y0, y1;
  part(h, g.placed.height, g.placed.top, g.placed.scaled_h, &y0, &y1);
  part(w, g.placed.width, g.placed.left, g.placed.scaled_w, &x0, &x1);
  out->mask_w = static_cast<int>(x1 - x0);
  out->mask_h = static_cast<int>(y1 - y0);
  int64_t counts[kMaxClasses] = {};
  if (!out->mask.resize(static_cast<size_t>(out->mask_w) * out->mask_h))
    return *why = "does not fit in memory", true;
  for (int64_t y = y0, at = 0; y < y1; ++y)
    for (int64_t x = x0; x < x1; ++x) ++counts[out->mask[at++] = map[y * w + x]];
  for (int i = 0; i < kMaxClasses; ++i)
    if (counts[i] && !out->classes.push({i, static_cast<float>(static_cast<double>(counts[i]) /
                                                               static_cast<double>(out->mask.size()))}))
      *why = "does not fit in memory";
  std::sort(out->classes.begin(), out->classes.end(), [](const Class& a, const Class& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  return true;
}

}  // namespace lite::app
