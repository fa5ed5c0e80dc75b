// Regions of one probability map, read as PP-OCR reads its text detector's (DB): lite_workbench/regions.py
// says how and after whom. Here the rectangles keep their corners, in the order in which text is read.
#include "reading.h"

#include <math.h>

#include <algorithm>

namespace lite::app {

namespace {

struct Point {
  double x, y;
};

struct Run {
  int32_t y, first, last, parent;
};

struct Rectangle {
  Point axis[2];
  double low[2], high[2];
  double side(int i) const { return high[i] - low[i]; }
  double area() const { return side(0) * side(1); }
  void corners(Point* out) const {
    const double along[4][2] = {{low[0], low[1]}, {low[0], high[1]}, {high[0], low[1]}, {high[0], high[1]}};
    for (int i = 0; i < 4; ++i)
      out[i] = {along[i][0] * axis[0].x + along[i][1] * axis[1].x,
                along[i][0] * axis[0].y + along[i][1] * axis[1].y};
  }
};

int32_t top(Array<Run>& runs, int32_t i) {
  while (runs[i].parent != i) i = runs[i].parent = runs[runs[i].parent].parent;
  return i;
}

// Connected pixels above the threshold, corners included, as runs that share a parent.
bool find_runs(const Values& v, int64_t h, int64_t w, float threshold, Array<Run>* runs) {
  int32_t above = 0, here = 0;
  for (int32_t y = 0; y < h; ++y) {
    const float* row = &v.v[y * w];
    const int32_t before = above;
    above = here = static_cast<int32_t>(runs->size());
    for (int32_t x = 0; x < w; ++x) {
      if (!(row[x] > threshold)) continue;
      const int32_t first = x;
      while (x + 1 < w && row[x + 1] > threshold) ++x;
      const int32_t index = static_cast<int32_t>(runs->size());
      if (!runs->push({y, first, x, index})) return false;
      for (int32_t k = before; k < here; ++k) {
        const Run& other = (*runs)[k];
        if (other.last >= first - 1 && other.first <= x + 1)
          (*runs)[top(*runs, k)].parent = top(*runs, index);
      }
    }
  }
  return true;
}

double turn(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

// Convex hull (Andrew's monotone chain) of points, which are sorted by it.
bool hull_of(Array<Point>* points, Array<Point>* out) {
  std::sort(points->begin(), points->end(),
            [](Point a, Point b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  Array<Point> once;
  for (const Point& p : *points)
    if (once.empty() || once[once.size() - 1].x != p.x || once[once.size() - 1].y != p.y)
      if (!once.push(p)) return false;
  if (once.size() < 3) return out->swap(once), true;
  for (int pass = 0; pass < 2; ++pass) {
    const size_t start = out->size();
    for (size_t i = 0; i < once.size(); ++i) {
      const Point p = once[pass ? once.size() - 1 - i : i];
      while (out->size() > start + 1 && turn((*out)[out->size() - 2], (*out)[out->size() - 1], p) <= 0)
        out->cut(out->size() - 1);
      if (!out->push(p)) return false;
    }
    out->cut(out->size() - 1);
  }
  return true;
}

Rectangle smallest(const Array<Point>& hull) {
  Rectangle best{{{1, 0}, {0, 1}}, {hull[0].x, hull[0].y}, {hull[0].x, hull[0].y}};
  double least = INFINITY;
  for (size_t i = 0; i < hull.size(); ++i) {
    const Point a = hull[i], b = hull[(i + 1) % hull.size()];
    const double length = sqrt((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y));
    if (!(length > 0)) continue;
    const Point along{(b.x - a.x) / length, (b.y - a.y) / length};
    Rectangle r{{along, {-along.y, along.x}}, {INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
    for (const Point& p : hull)
      for (int k = 0; k < 2; ++k) {
        const double at = p.x * r.axis[k].x + p.y * r.axis[k].y;
        r.low[k] = std::min(r.low[k], at);
        r.high[k] = std::max(r.high[k], at);
      }
    if (r.area() < least) least = r.area(), best = r;
  }
  return best;
}

// Mean of the elements whose centres lie less than half a pixel outside.
double mean_in(const Rectangle& r, const Values& v, int64_t h, int64_t w) {
  Point c[4];
  r.corners(c);
  double x0 = c[0].x, x1 = x0, y0 = c[0].y, y1 = y0, sum = 0;
  for (const Point& p : c) {
    x0 = std::min(x0, p.x), x1 = std::max(x1, p.x);
    y0 = std::min(y0, p.y), y1 = std::max(y1, p.y);
  }
  int64_t count = 0;
  for (int64_t y = std::max<int64_t>(0, llrint(y0)); y <= std::min<int64_t>(h - 1, llrint(y1)); ++y) {
    for (int64_t x = std::max<int64_t>(0, llrint(x0)); x <= std::min<int64_t>(w - 1, llrint(x1)); ++x) {
      bool inside = true;
      for (int k = 0; k < 2; ++k) {
        const double at = static_cast<double>(x) * r.axis[k].x + static_cast<double>(y) * r.axis[k].y;
        inside = inside && at > r.low[k] - 0.5 && at < r.high[k] + 0.5;
      }
      if (inside) sum += v.v[y * w + x], ++count;
    }
  }
  return count ? sum / static_cast<double>(count) : 0;
}

// Upper left, upper right, lower right, lower left.
void in_order(Point* p) {
  std::sort(p, p + 4, [](Point a, Point b) { return a.x < b.x; });
  if (p[0].y > p[1].y) std::swap(p[0], p[1]);
  if (p[2].y > p[3].y) std::swap(p[2], p[3]);
  const Point made[4] = {p[0], p[2], p[3], p[1]};
  memcpy(p, made, sizeof made);
}

// Lines from above to below, and from left to right where their upper left corners are about as high.
void reading_order(Array<Found>* f, int height) {
  std::sort(f->begin(), f->end(), [](const Found& a, const Found& b) {
    return a.corners[1] != b.corners[1] ? a.corners[1] < b.corners[1] : a.corners[0] < b.corners[0];
  });
  const float near = 10.f / static_cast<float>(height);
  for (size_t i = 1; i < f->size(); ++i)
    for (size_t k = i; k > 0; --k) {
      Found &a = (*f)[k - 1], &b = (*f)[k];
      if (fabsf(b.corners[1] - a.corners[1]) >= near || b.corners[0] >= a.corners[0]) break;
      std::swap(a, b);
    }
}

}  // namespace

bool read_regions(const Given& g, Answer* out, const char** why) {
  constexpr double kLeastSide = 3;
  constexpr size_t kMostRegions = 10000;
  if (g.outputs.size() != 1 || g.outputs[0]->rank != 4 || g.outputs[0]->whole) return false;
  const Values& v = *g.outputs[0];
  int64_t d[8];
  int rank = 0;
  for (int i = 0; i < 4; ++i)
    if (v.dims[i] != 1) d[rank++] = v.dims[i];
  if (rank != 2 || d[0] < 8 || d[1] < 8 || d[0] > 65535 || d[1] > 65535) return false;
  for (const float x : v.v)
    if (x < 0 || x > 1) return false;
  const int64_t h = d[0], w = d[1];
  Array<Run> runs;
  Array<int32_t> order;
  if (!find_runs(v, h, w, static_cast<float>(g.how.map_threshold), &runs) || !order.resize(runs.size()))
    return *why = "does not fit in memory", true;
  for (size_t i = 0; i < runs.size(); ++i) {
    order[i] = static_cast<int32_t>(i);
    runs[i].parent = top(runs, static_cast<int32_t>(i));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return runs[a].parent != runs[b].parent ? runs[a].parent < runs[b].parent : a < b;
  });
  for (size_t i = 0; i < order.size() && out->found.size() < kMostRegions;) {
    const int32_t parent = runs[order[i]].parent;
    Array<Point> points, hull;
    for (; i < order.size() && runs[order[i]].parent == parent; ++i) {
      const Run& r = runs[order[i]];
      if (!points.push({static_cast<double>(r.first), static_cast<double>(r.y)}) ||
          !points.push({static_cast<double>(r.last), static_cast<double>(r.y)}))
        return *why = "does not fit in memory", true;
    }
    if (!hull_of(&points, &hull)) return *why = "does not fit in memory", true;
    Rectangle r = smallest(hull);
    if (std::min(r.side(0), r.side(1)) < kLeastSide) continue;
    const double score = mean_in(r, v, h, w);
    if (score < g.how.box_threshold) continue;
    const double by = r.area() * g.how.unclip / (2 * (r.side(0) + r.side(1)));
    for (int k = 0; k < 2; ++k) r.low[k] -= by, r.high[k] += by;
    Point c[4];
    r.corners(c);
    in_order(c);
    Found f{{1, 1, 0, 0}, {}, static_cast<float>(score), 0, true, nullptr};
    for (int k = 0; k < 4; ++k) {
      float x = static_cast<float>(c[k].x / static_cast<double>(w));
      float y = static_cast<float>(c[k].y / static_cast<double>(h));
      g.placed.to_picture(&x, &y);
      f.corners[2 * k] = x;
      f.corners[2 * k + 1] = y;
      f.box[0] = std::min(f.box[0], x), f.box[2] = std::max(f.box[2], x);
      f.box[1] = std::min(f.box[1], y), f.box[3] = std::max(f.box[3], y);
    }
    if (!out->found.push(f)) return *why = "does not fit in memory", true;
  }
  reading_order(&out->found, g.placed.height);
  return true;
}

}  // namespace lite::app
