// Paddle's multiclass_nms and matrix_nms, padded to the rows that there can be: boxes (N,M,4), for
// multiclass_nms (N,M,C,4) too, and scores (N,C,M) → rows label, score, corners; indices; rows of
// each image.
#include <cmath>

#include "suppression.h"

namespace lite {

namespace {

struct State : Candidates {
  int64_t images, candidates, background;
  bool shared, matrix;
  float threshold;
  float extra;  // of a box in whole pixels, which includes its last one
  // multiclass_nms
  double overlap, eta;
  // matrix_nms
  bool gaussian;
  float sigma, least;
};

bool prepare(Step& step, Env& env) {
  const Tensor *boxes = input_of(step, 0), *scores = input_of(step, 1);
  if (!is_floats(boxes) || !is_floats(scores) || scores->rank != 3 || boxes->rank < 3 ||
      boxes->rank > 4 || !attr_int(step, "padded", 0))
    return env.fail("needs f32 boxes (N,M,4) and scores (N,C,M), and padded rows");
  State* s = state_of<State>(step, env, *scores);
  if (!s) return env.out_of_memory();
  s->shared = boxes->rank == 3;
  s->matrix = strcmp(step.op, "matrix_nms") == 0;
  if (boxes->dims[0] != s->images || boxes->dims[1] != s->boxes || last_dim(*boxes) != 4 ||
      (!s->shared && (s->matrix || boxes->dims[2] != s->classes)) || s->boxes >= INT32_MAX ||
      s->classes > INT32_MAX)
    return env.fail("boxes and scores do not fit each other");
  s->background = attr_int(step, "background_label", 0);
  s->candidates = attr_int(step, "nms_top_k", -1);
  s->threshold = static_cast<float>(attr_float(step, "score_threshold", 0));
  s->overlap = attr_float(step, "nms_threshold", 0.3);
  s->eta = attr_float(step, "nms_eta", 1);
  s->gaussian = attr_int(step, "use_gaussian", 0) != 0;
  s->sigma = static_cast<float>(attr_float(step, "gaussian_sigma", 2));
  s->least = static_cast<float>(attr_float(step, "post_threshold", 0));
  s->extra = attr_int(step, "normalized", 1) ? 0.0f : 1.0f;
  int64_t most = s->candidates > -1 && s->candidates < s->boxes ? s->candidates : s->boxes;
  most *= s->classes - (s->background >= 0 && s->background < s->classes);
  const int64_t keep = attr_int(step, "keep_top_k", -1);
  s->slots = keep > -1 && keep < most ? keep : most;
  const Tensor *rows = output_of(step, 0), *index = output_of(step, 1), *count = output_of(step, 2);
  int64_t total;
  if (__builtin_mul_overflow(s->images, 6 * s->slots, &total)) return env.fail("too many rows");
  if (!holds(rows, total) ||
      (index && (index->dtype != DType::kI32 || index->size != total / 6)) ||
      (count && (count->dtype != DType::kI32 || count->size != s->images)))
    return env.fail("outputs do not fit the rows that there can be");
  size_t bytes;
  if (!room_bytes(s, &bytes)) return env.fail("too many boxes");
  step.scratch_bytes = bytes;
  return true;
}

float area(const float* b, float extra) {
  const float w = b[2] - b[0], h = b[3] - b[1];
  return w < 0 || h < 0 ? 0.0f : (w + extra) * (h + extra);
}

float overlap_of(const float* a, const float* b, float extra) {
  const float x0 = larger(a[0], b[0]), y0 = larger(a[1], b[1]);
  const float x1 = smaller(a[2], b[2]), y1 = smaller(a[3], b[3]);
  float inner = larger(x1 - x0 + extra, 0.0f) * larger(y1 - y0 + extra, 0.0f);
  if (x1 < x0 || y1 < y0) inner = 0;
  const float whole = area(a, extra) + area(b, extra) - inner;
  return whole > 0 ? inner / whole : 0.0f;
}

// The boxes of one class among those of an image.
const float* of_class(const State& s, const float* boxes, int32_t label) {
  return boxes + (s.shared ? 0 : 4 * int64_t{label});
}

// The candidates of one class, best first, into `order`; returns how many.
int64_t candidates_of(const State& s, const float* scores, const Room& r) {
  const int64_t n = by_score(scores, s.boxes, exceeds, s.threshold, r.order);
  return s.candidates > -1 && s.candidates < n ? s.candidates : n;
}

// Greedy; the threshold shrinks by eta while it is above one half.
int64_t thin_out(const State& s, const Room& r, const float* boxes, int64_t stride, int64_t n) {
  double threshold = s.overlap;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    float worst = -INFINITY;
    for (int64_t k = 0; k < count; ++k)
      worst = larger(worst, overlap_of(boxes + stride * r.kept[k], boxes + stride * r.order[i],
                                       s.extra));
    if (worst > static_cast<float>(threshold)) continue;
    r.kept[count++] = r.order[i];
    if (s.eta < 1 && threshold > 0.5) threshold *= s.eta;
  }
  return count;
}

// By label, then by falling score.
void find_multiclass(const State& s, const float* boxes, int64_t stride, const float* scores,
                     Room* r) {
  int64_t order = 0;
  for (int32_t c = 0; c < s.classes; ++c) {
    if (c == s.background) continue;
    const float* own = scores + c * s.boxes;
    const int64_t n = candidates_of(s, own, *r);
    const int64_t kept = thin_out(s, *r, of_class(s, boxes, c), stride, n);
    for (int64_t k = 0; k < kept; ++k) offer(r, {own[r->kept[k]], c, r->kept[k], order++});
  }
  in_order(r);
}

// By falling score, which overlap with better boxes of the class lowers: by the box that lowers it
// most, each the less the more a better one overlaps it itself. Their worst overlaps are in `scores`.
void find_matrix(const State& s, const float* boxes, const float* scores, Room* r) {
  for (int32_t c = 0; c < s.classes; ++c) {
    if (c == s.background) continue;
    const float* own = scores + c * s.boxes;
    const int64_t n = candidates_of(s, own, *r);
    for (int64_t i = 0; i < n; ++i) {
      float decay = 1, worst = 0;
      for (int64_t k = 0; k < i; ++k) {
        const float shared = overlap_of(boxes + 4 * int64_t{r->order[i]},
                                        boxes + 4 * int64_t{r->order[k]}, s.extra);
        const float other = r->scores[k];
        worst = larger(worst, shared);
        decay = smaller(decay, s.gaussian ? expf((other * other - shared * shared) * s.sigma)
                                          : (1 - shared) / (1 - other));
      }
      r->scores[i] = worst;
      const float score = own[r->order[i]] * decay;
      if (score > s.least) offer(r, {score, c, r->order[i], 0});
    }
  }
}

void run(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor *rows = output_of(step, 0), *index = output_of(step, 1), *count = output_of(step, 2);
  const int64_t stride = 4 * (s.shared ? 1 : s.classes);
  int64_t at = 0;
  for (int64_t image = 0; image < s.images; ++image) {
    const float* boxes = step.inputs[0]->as<float>() + image * s.boxes * stride;
    const float* scores = step.inputs[1]->as<float>() + image * s.classes * s.boxes;
    Room r = room_in(s, scratch);
    if (s.matrix)
      find_matrix(s, boxes, scores, &r);
    else
      find_multiclass(s, boxes, stride, scores, &r);
    for (int64_t i = 0; i < r.count; ++i, ++at) {
      const Found& f = r.found[i];
      if (rows) {
        float* row = rows->as<float>() + 6 * at;
        row[0] = static_cast<float>(f.label);
        row[1] = f.score;
        memcpy(row + 2, of_class(s, boxes, f.label) + stride * f.box, 16);
      }
      if (index) index->as<int32_t>()[at] = static_cast<int32_t>(image * s.boxes + f.box);
    }
    if (count) count->as<int32_t>()[image] = static_cast<int32_t>(r.count);
  }
  for (int64_t i = at; rows && i < rows->size / 6; ++i) {
    memset(rows->as<float>() + 6 * i, 0, 24);
    rows->as<float>()[6 * i] = -1;
  }
  for (int64_t i = at; index && i < index->size; ++i) index->as<int32_t>()[i] = -1;
}

const Kernel kDetection[] = {
    {"multiclass_nms", "f32_multiclass_nms", prepare, run, kOneThread},
    {"matrix_nms", "f32_matrix_nms", prepare, run, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(detection_paddle, kDetection)
