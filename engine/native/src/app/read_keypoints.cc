// Keypoints: rows of a box and its points (YOLO pose), MoveNet's (one person or several), heat maps (SimpleBaseline,
// HRNet and their relatives), and plain coordinates.
//
// The place of a heat map's maximum is moved by a quarter of a cell towards its greater neighbour. Source: Newell et
// al., "Stacked Hourglass Networks for Human Pose Estimation", 2016.
#include <math.h>

#include <algorithm>

#include "reading.h"

namespace lite::app {

namespace {

bool push(Answer* out, Found* f, float x, float y, float score) {
  if (!f->num_points++) f->first_point = static_cast<int32_t>(out->points.size());
  return out->points.push({x, y, score});
}

// The box around the points.
bool put_around(Answer* out, Found f) {
  f.box[0] = f.box[1] = INFINITY;
  f.box[2] = f.box[3] = -INFINITY;
  for (int32_t i = 0; i < f.num_points; ++i) {
    const Keypoint& p = out->points[f.first_point + i];
    f.box[0] = std::min(f.box[0], p.x), f.box[2] = std::max(f.box[2], p.x);
    f.box[1] = std::min(f.box[1], p.y), f.box[3] = std::max(f.box[3], p.y);
  }
  return out->found.push(f);
}

// (1,N,4+s+3K) or its transpose, where s is a score, or an objectness and a score.
bool rows(const Given& g, const Values& v, Answer* out, bool* full) {
  const int64_t points = g.how.keypoints;
  const bool turned = v.dims[1] < v.dims[2];
  const int64_t n = turned ? v.dims[2] : v.dims[1], columns = turned ? v.dims[1] : v.dims[2];
  const int64_t scores = columns - 4 - 3 * points;
  if (v.rank != 3 || n < 8 || scores < 1 || scores > 2) return false;
  const int64_t row = turned ? 1 : columns, column = turned ? n : 1;
  for (int64_t i = 0; i < n; ++i) {
    const float* p = &v.v[i * row];
    const float score = p[4 * column] * (scores == 2 ? p[5 * column] : 1.f);
    if (!(score > g.how.threshold)) continue;
    const float x = p[0], y = p[column], w = p[2 * column] / 2, h = p[3 * column] / 2;
    Found f{{x - w, y - h, x + w, y + h}, {}, score, 0, false, nullptr};
    for (int64_t k = 0; k < points; ++k) {
      const float* at = p + (4 + scores + 3 * k) * column;
      *full = !push(out, &f, at[0], at[column], at[2 * column]) || *full;
    }
    *full = !out->found.push(f) || *full;
  }
  return true;
}

// (1,1,K,3), or (1,P,3K+5) for several: y, x, score, and then a box y0, x0, y1, x1 with its score.
bool movenet(const Given& g, const Values& v, Answer* out, bool* full) {
  const int64_t points = g.how.keypoints;
  const bool one = v.rank == 4 && v.dims[1] == 1 && v.dims[2] == points && v.dims[3] == 3;
  if (!one && (v.rank != 3 || v.dims[1] >= 8 || v.dims[2] != 3 * points + 5)) return false;
  const int64_t columns = one ? 3 * points : v.dims[2];
  for (int64_t i = 0; i < (one ? 1 : v.dims[1]); ++i) {
    const float* p = &v.v[i * columns];
    Found f{{}, {}, 0, 0, false, nullptr};
    for (int64_t k = 0; k < points; ++k) {
      *full = !push(out, &f, p[3 * k + 1], p[3 * k], p[3 * k + 2]) || *full;
      f.score += p[3 * k + 2] / static_cast<float>(points);
    }
    if (one) return *full = !put_around(out, f) || *full, true;
    const float* b = p + 3 * points;
    f.score = b[4];
    const float box[4] = {b[1], b[0], b[3], b[2]};
    memcpy(f.box, box, sizeof box);
    if (f.score > g.how.threshold) *full = !out->found.push(f) || *full;
  }
  return true;
}

float quarter(float before, float after) { return after > before ? 0.25f : after < before ? -0.25f : 0.f; }

// (1,K,H,W) or (1,H,W,K).
bool maps(const Given& g, const Values& v, Answer* out, bool* full) {
  const int64_t points = g.how.keypoints, *d = v.dims;
  const bool first = v.rank == 4 && d[1] == points && d[2] > 3 && d[3] > 3;
  if (v.rank != 4 || (!first && (d[3] != points || d[1] < 4 || d[2] < 4))) return false;
  const int64_t h = first ? d[2] : d[1], w = first ? d[3] : d[2];
  const int64_t plane = first ? h * w : 1, pixel = first ? 1 : points;
  Found f{{}, {}, 0, 0, false, nullptr};
  for (int64_t k = 0; k < points; ++k) {
    const float* p = &v.v[k * plane];
    int64_t best = 0;
    for (int64_t i = 1; i < h * w; ++i)
      if (p[i * pixel] > p[best * pixel]) best = i;
    const int64_t x = best % w, y = best / w;
    float u = static_cast<float>(x), t = static_cast<float>(y);
    if (x > 0 && x + 1 < w) u += quarter(p[(best - 1) * pixel], p[(best + 1) * pixel]);
    if (y > 0 && y + 1 < h) t += quarter(p[(best - w) * pixel], p[(best + w) * pixel]);
    const float score = p[best * pixel];
    *full = !push(out, &f, u / static_cast<float>(w), t / static_cast<float>(h), score) || *full;
    f.score += score / static_cast<float>(points);
  }
  *full = !put_around(out, f) || *full;
  return true;
}

// K times x, y or x, y, score.
bool coordinates(const Given& g, const Values& v, Answer* out, bool* full) {
  const int64_t points = g.how.keypoints, each = v.count() / points;
  if ((each != 2 && each != 3) || v.count() != each * points) return false;
  Found f{{}, {}, 1, 0, false, nullptr};
  for (int64_t k = 0; k < points; ++k) {
    const float* p = &v.v[k * each];
    *full = !push(out, &f, p[0], p[1], each == 3 ? p[2] : 1.f) || *full;
  }
  *full = !put_around(out, f) || *full;
  return true;
}

}  // namespace

bool read_keypoints(const Given& g, Answer* out, const char** why) {
  constexpr size_t kMost = 3000;
  if (!g.how.named || g.outputs.size() != 1 || g.outputs[0]->whole || g.outputs[0]->dims[0] != 1) return false;
  const Values& v = *g.outputs[0];
  bool full = false;
  const bool several = v.rank == 3 && rows(g, v, out, &full);
  if (!several && !movenet(g, v, out, &full) && !maps(g, v, out, &full) && !coordinates(g, v, out, &full))
    return out->found.clear(), out->points.clear(), false;
  if (full) return *why = "does not fit in memory", true;
  float most = 0;
  for (const Keypoint& p : out->points) most = std::max(most, std::max(p.x, p.y));
  const float width = most > 2 ? static_cast<float>(g.placed.width) : 1;  // pixels of the input
  const float height = most > 2 ? static_cast<float>(g.placed.height) : 1;
  best_first(&out->found, kMost);
  for (Found& f : out->found)
    for (int i = 0; i < 4; ++i) f.box[i] /= i % 2 ? height : width;
  if (several && !g.how.nms.apply(&out->found, g.how.threshold, g.placed)) *why = "does not fit in memory";
  for (Keypoint& p : out->points) {
    p.x /= width, p.y /= height;
    g.placed.to_picture(&p.x, &p.y);
  }
  for (Found& f : out->found) {
    g.placed.to_picture(&f.box[0], &f.box[1]);
    g.placed.to_picture(&f.box[2], &f.box[3]);
    memset(f.corners, 0, sizeof f.corners);
  }
  return true;
}

}  // namespace lite::app
