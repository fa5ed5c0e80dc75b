// Hard: Felzenszwalb et al., "Object Detection with Discriminatively Trained Part Based Models", 2010, section 6.
// DIoU: Zheng et al., "Distance-IoU Loss", 2020. Weighted: Bazarevsky et al., "BlazeFace", 2019, section 3.3.
// Soft: Bodla et al., "Soft-NMS", 2017. Matrix: Wang et al., "SOLOv2", 2020, section 3.3.
#include "nms.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "reading.h"

namespace lite::app {

namespace {

constexpr size_t kMost = 4096;  // of boxes whose scores are lowered: each meets each
const char* const kNames[] = {"hard", "diou", "weighted", "soft-linear", "soft-gaussian", "matrix-linear",
                              "matrix-gaussian"};

double side(double low, double high) { return std::max(0.0, high - low); }

// Intersection and union.
struct Shared {
  double both, either;
  Shared(const float* a, const float* b) {
    const double w = side(std::max(a[0], b[0]), std::min(a[2], b[2]));
    const double h = side(std::max(a[1], b[1]), std::min(a[3], b[3]));
    const auto area = [](const float* x) { return (static_cast<double>(x[2]) - x[0]) * (static_cast<double>(x[3]) - x[1]); };
    both = w * h;
    either = area(a) + area(b) - both;
  }
  bool above(double overlap) const { return both > overlap * either; }
  double ratio() const { return either > 0 ? both / either : 0; }
};

// The squared distance of two boxes' centers over that of the corners of what holds both.
double apart(const float* a, const float* b, const Placement& placed) {
  double distance = 0, whole = 0;
  for (int i = 0; i < 2; ++i) {
    const double pixels = i ? placed.height : placed.width;
    const double d = (static_cast<double>(a[i]) + a[i + 2] - b[i] - b[i + 2]) / 2 * pixels;
    const double c = side(std::min(a[i], b[i]), std::max(a[i + 2], b[i + 2])) * pixels;
    distance += d * d, whole += c * c;
  }
  return whole > 0 ? distance / whole : 0;
}

class Suppression {
 public:
  Suppression(const Nms& how, double threshold, const Placement& placed, Array<Found>* found)
      : how_(how), threshold_(threshold), placed_(placed), f_(*found) {}

  bool run() {
    switch (how_.kind) {
      case Nms::kHard:
      case Nms::kDiou: return hard();
      case Nms::kWeighted: return weighted();
      case Nms::kSoftLinear:
      case Nms::kSoftGaussian: return soft();
      default: return matrix();
    }
  }

 private:
  const Nms& how_;
  const double threshold_;
  const Placement& placed_;
  Array<Found>& f_;

  bool meet(const Found& a, const Found& b) const { return how_.agnostic || a.index == b.index; }

  bool covers(const Found& better, const Found& f) const {
    const Shared shared(better.box, f.box);
    if (how_.kind != Nms::kDiou) return shared.above(how_.overlap);
    return shared.ratio() - apart(better.box, f.box, placed_) > how_.overlap;
  }

  bool hard() {
    Array<Found> kept;
    for (const Found& f : f_) {
      bool covered = false;
      for (const Found& k : kept) {
        covered = meet(k, f) && covers(k, f);
        if (covered) break;
      }
      if (!covered && !kept.push(f)) return false;
    }
    f_.swap(kept);
    return true;
  }

  // A box becomes the mean of itself and of those that it covers, by their scores.
  bool weighted() {
    Array<Found> kept;
    Array<uint8_t> gone;
    if (!gone.resize(f_.size())) return false;
    std::fill(gone.begin(), gone.end(), uint8_t{0});
    for (size_t i = 0; i < f_.size(); ++i) {
      if (gone[i]) continue;
      double sum[4] = {}, total = 0;
      for (size_t k = i; k < f_.size(); ++k) {
        if (gone[k] || (k != i && !(meet(f_[i], f_[k]) && covers(f_[i], f_[k])))) continue;
        gone[k] = 1;
        const double score = std::max(static_cast<double>(f_[k].score), 1e-9);
        for (int c = 0; c < 4; ++c) sum[c] += score * static_cast<double>(f_[k].box[c]);
        total += score;
      }
      Found mean = f_[i];
      for (int c = 0; c < 4; ++c) mean.box[c] = static_cast<float>(sum[c] / total);
      if (!kept.push(mean)) return false;
    }
    f_.swap(kept);
    return true;
  }

  double gaussian(double iou) const { return exp(-iou * iou / how_.sigma); }

  bool above(const Found& f) const { return static_cast<double>(f.score) > threshold_; }

  // Each best box lowers the scores of those that are left.
  bool soft() {
    Array<Found> kept;
    f_.cut(kMost);
    while (!f_.empty()) {
      size_t best = 0;
      for (size_t i = 1; i < f_.size(); ++i)
        if (f_[i].score > f_[best].score) best = i;
      const Found chosen = f_[best];
      if (!above(chosen)) break;
      if (!kept.push(chosen)) return false;
      size_t left = 0;
      for (size_t i = 0; i < f_.size(); ++i) {
        if (i == best) continue;
        Found f = f_[i];
        if (meet(chosen, f)) {
          const double iou = Shared(chosen.box, f.box).ratio();
          const bool linear = how_.kind == Nms::kSoftLinear;
          f.score *= static_cast<float>(!linear ? gaussian(iou) : iou > how_.overlap ? 1 - iou : 1);
        }
        if (above(f)) f_[left++] = f;
      }
      f_.cut(left);
    }
    f_.swap(kept);
    return true;
  }

  // All scores are lowered at once: by the better box that lowers most, less what that box is covered itself.
  bool matrix() {
    f_.cut(kMost);
    Array<double> covered;  // how much of each a better one covers at most
    Array<float> lowered;
    if (!covered.resize(f_.size()) || !lowered.resize(f_.size())) return false;
    const auto factor = [&](double iou) { return how_.kind == Nms::kMatrixLinear ? 1 - iou : gaussian(iou); };
    for (size_t k = 0; k < f_.size(); ++k) {
      double least = 1, most = 0;
      for (size_t i = 0; i < k; ++i) {
        if (!meet(f_[i], f_[k])) continue;
        const double iou = Shared(f_[i].box, f_[k].box).ratio(), own = factor(covered[i]);
        most = std::max(most, iou);
        if (own > 0) least = std::min(least, factor(iou) / own);  // a copy of a better box lowers nothing more
      }
      covered[k] = most;
      lowered[k] = f_[k].score * static_cast<float>(least);
    }
    size_t left = 0;
    for (size_t k = 0; k < f_.size(); ++k) {
      f_[k].score = lowered[k];
      if (above(f_[k])) f_[left++] = f_[k];
    }
    f_.cut(left);
    best_first(&f_, left);
    return true;
  }
};

}  // namespace

const char* Nms::read(Json::Value from) {
  overlap = from["overlap"].number(overlap);
  if (!(overlap >= 0 && overlap <= 1)) return "read: `overlap` is not a number from 0 to 1";
  sigma = from["sigma"].number(sigma);
  if (!(sigma >= 0.001 && sigma <= 1000)) return "read: `sigma` is not a number from 0.001 to 1000";
  agnostic = from["agnostic"].yes();
  const char* name = from["nms"].text(kNames[kHard]);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i)
    if (strcmp(kNames[i], name) == 0) return kind = static_cast<Kind>(i), nullptr;
  return "read: `nms` is not hard, diou, weighted, soft-linear, soft-gaussian, matrix-linear or matrix-gaussian";
}

bool Nms::apply(Array<Found>* found, double threshold, const Placement& placed) const {
  return Suppression(*this, threshold, placed, found).run();
}

}  // namespace lite::app
