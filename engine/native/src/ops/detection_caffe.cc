// Caffe's DetectionOutput with keep_top_k: locations (N,P*L*4), confidences (N,P*C), priors (1,2,P*4)
// with variances.
#include <cmath>

#include "suppression.h"

namespace lite {

namespace {

struct State : Candidates {
  int64_t images, candidates, background, code;
  bool shared, encoded;
  float iou, threshold;
};

bool prepare(Step& step, Env& env) {
  const Tensor *moves = input_of(step, 0), *scores = input_of(step, 1), *priors = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!is_floats(moves) || !is_floats(scores) || !is_floats(priors) || !is_floats(y) ||
      scores->rank < 1 || priors->rank != 3 || priors->dims[0] != 1 || priors->dims[1] != 2)
    return env.fail("needs f32 locations, confidences and priors (1,2,P*4)");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->images = scores->dims[0];
  s->boxes = priors->dims[2] / 4;
  s->classes = attr_int(step, "num_classes", 0);
  s->slots = attr_int(step, "keep_top_k", -1);
  s->candidates = attr_int(step, "nms_top_k", -1);
  s->background = attr_int(step, "background_label", 0);
  s->code = attr_int(step, "code_type", 1);
  s->shared = attr_int(step, "share_location", 1) != 0;
  s->encoded = attr_int(step, "variance_encoded", 0) != 0;
  s->iou = static_cast<float>(attr_float(step, "nms_threshold", 0.3));
  s->threshold = static_cast<float>(attr_float(step, "confidence_threshold", -3e38));
  if (s->classes < 1 || s->classes > INT32_MAX || s->boxes >= INT32_MAX || s->code < 1 ||
      s->code > 3)
    return env.fail("num_classes or code_type is out of range");
  int64_t wanted_scores, wanted_moves, wanted_rows;
  const int64_t sets = s->shared ? 1 : s->classes;
  int64_t boxes;
  if (__builtin_mul_overflow(s->images, s->boxes, &boxes) ||
      __builtin_mul_overflow(boxes, s->classes, &wanted_scores) ||
      __builtin_mul_overflow(boxes, 4 * sets, &wanted_moves) || wanted_scores != scores->size ||
      wanted_moves != moves->size || 4 * s->boxes != priors->dims[2])
    return env.fail("locations, confidences, priors and num_classes do not fit each other");
  size_t bytes;
  if (s->slots < 0 || s->slots > INT32_MAX ||
      __builtin_mul_overflow(s->images, 7 * s->slots, &wanted_rows) || wanted_rows != y->size)
    return env.fail("the output does not fit keep_top_k");
  if (!room_bytes(s, &bytes)) return env.fail("too many boxes");
  step.scratch_bytes = bytes;
  return true;
}

// Code 1: corners moved; 2: centre and logarithm of the size; 3: corners moved by parts of the size.
void decode(const State& s, const float* moves, int64_t stride, const float* priors,
                  float* corners) {
  const float* variances = priors + 4 * s.boxes;
  for (int64_t i = 0; i < s.boxes; ++i) {
    const float *prior = priors + 4 * i, *given = moves + i * stride;
    float move[4], *corner = corners + 4 * i;
    for (int e = 0; e < 4; ++e) move[e] = s.encoded ? given[e] : given[e] * variances[4 * i + e];
    for (int axis = 0; axis < 2; ++axis) {
      const float low = prior[axis], high = prior[axis + 2], size = high - low;
      if (s.code == 2) {
        const float centre = move[axis] * size + (low + high) / 2;
        const float half = expf(move[axis + 2]) * size / 2;
        corner[axis] = centre - half;
        corner[axis + 2] = centre + half;
      } else {
        corner[axis] = low + (s.code == 1 ? move[axis] : move[axis] * size);
        corner[axis + 2] = high + (s.code == 1 ? move[axis + 2] : move[axis + 2] * size);
      }
    }
  }
}

// The rows of one image; returns where the next ones go.
float* image_rows(const State& s, const float* moves, const float* scores, const float* priors,
                  int64_t image, Room r, float* row) {
  const int64_t sets = s.shared ? 1 : s.classes;
  int64_t order = 0;
  if (s.shared) decode(s, moves, 4, priors, r.corners);
  for (int32_t c = 0; c < s.classes; ++c) {
    if (c == s.background) continue;
    if (!s.shared) decode(s, moves + 4 * c, 4 * sets, priors, r.corners);
    for (int64_t i = 0; i < s.boxes; ++i) r.scores[i] = scores[i * s.classes + c];
    int64_t n = by_score(r.scores, s.boxes, exceeds, s.threshold, r.order);
    if (s.candidates > -1 && s.candidates < n) n = s.candidates;
    const int64_t kept = suppress(r, n, s.iou, n);
    for (int64_t k = 0; k < kept; ++k) offer(&r, {r.scores[r.kept[k]], c, r.kept[k], order++});
  }
  in_order(&r);
  int32_t decoded = -1;
  for (int64_t i = 0; i < r.count; ++i, row += 7) {
    const Found& f = r.found[i];
    if (!s.shared && decoded != f.label) {
      decode(s, moves + 4 * static_cast<int64_t>(f.label), 4 * sets, priors, r.corners);
      decoded = f.label;
    }
    row[0] = static_cast<float>(image);
    row[1] = static_cast<float>(f.label);
    row[2] = f.score;
    memcpy(row + 3, r.corners + 4 * static_cast<int64_t>(f.box), 16);
  }
  return row;
}

void run(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const int64_t sets = s.shared ? 1 : s.classes;
  const Tensor& y = *step.outputs[0];
  memset(y.data, 0, y.bytes);
  float* row = y.as<float>();
  for (int64_t image = 0; image < s.images; ++image)
    row = image_rows(s, step.inputs[0]->as<float>() + image * s.boxes * sets * 4,
                     step.inputs[1]->as<float>() + image * s.boxes * s.classes,
                     step.inputs[2]->as<float>(), image, room_in(s, scratch), row);
}

const Kernel kDetection[] = {
    {"DetectionOutput", "f32_detection_output", prepare, run, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(detection_caffe, kDetection)
