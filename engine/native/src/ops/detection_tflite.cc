// TFLite_Detection_PostProcess: boxes (1,A,4) y,x,h,w against anchors (A,4) alike, scores (1,A,C).
#include <cmath>

#include "suppression.h"

namespace lite {

namespace {

struct State : Candidates {
  int64_t columns;  // scores of a box, the last `classes` count
  int64_t most, per_class, classes_per_box;
  bool regular;
  float scales[4];
  float iou, threshold;
};

bool prepare(Step& step, Env& env) {
  const Tensor *boxes = input_of(step, 0), *scores = input_of(step, 1), *anchors = input_of(step, 2);
  if (!is_floats(boxes) || !is_floats(scores) || !is_floats(anchors) || boxes->rank != 3 ||
      scores->rank != 3 || anchors->rank != 2)
    return env.fail("needs f32 boxes (1,A,4), scores (1,A,C) and anchors (A,4)");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->boxes = anchors->dims[0];
  s->columns = scores->dims[2];
  s->classes = attr_int(step, "num_classes", 0);
  const bool fits = s->boxes < INT32_MAX && boxes->dims[0] == 1 && boxes->dims[1] == s->boxes &&
                    boxes->dims[2] == 4 && scores->dims[0] == 1 && scores->dims[1] == s->boxes &&
                    anchors->dims[1] == 4;
  if (!fits || s->classes < 1 || s->classes > s->columns || s->columns > INT32_MAX)
    return env.fail("boxes, scores, anchors and num_classes do not fit each other");
  s->regular = attr_int(step, "use_regular_nms", 0) != 0;
  s->most = attr_int(step, "max_detections", -1);
  s->per_class = attr_int(step, "detections_per_class", 100);
  s->classes_per_box = s->regular ? 1 : attr_int(step, "max_classes_per_detection", 1);
  s->threshold = static_cast<float>(attr_float(step, "score_threshold", 0));
  s->iou = static_cast<float>(attr_float(step, "iou_threshold", 0));
  int count;
  const double* scales = attr_floats(step, "scales", &count);
  if (count != 4) return env.fail("needs four scales");
  for (int i = 0; i < 4; ++i) s->scales[i] = static_cast<float>(scales[i]);
  size_t bytes;
  if (s->most < 0 || s->classes_per_box < 0 ||
      __builtin_mul_overflow(s->most, s->classes_per_box, &s->slots) || s->slots > INT32_MAX)
    return env.fail("max_detections is out of range");
  const Tensor *out = output_of(step, 0), *labels = output_of(step, 1), *best = output_of(step, 2);
  if (!holds(out, 4 * s->slots) || !holds(labels, s->slots) || !holds(best, s->slots) ||
      !holds(output_of(step, 3), 1))
    return env.fail("outputs do not fit max_detections");
  if (!room_bytes(s, &bytes)) return env.fail("too many boxes");
  step.scratch_bytes = bytes;
  return true;
}

void decode(const State& s, const float* boxes, const float* anchors, float* corners) {
  for (int64_t i = 0; i < 4 * s.boxes; i += 4)
    for (int axis = 0; axis < 2; ++axis) {
      const float size = anchors[i + axis + 2];
      const float centre = boxes[i + axis] / s.scales[axis] * size + anchors[i + axis];
      const float half = 0.5f * expf(boxes[i + axis + 2] / s.scales[axis + 2]) * size;
      corners[i + axis] = centre - half;
      corners[i + axis + 2] = centre + half;
    }
}

// Suppression on each box's best score; then its best classes, in the order of the boxes.
void find_fast(const State& s, const float* scores, Room* r) {
  for (int64_t i = 0; i < s.boxes; ++i) {
    const float* row = scores + (i + 1) * s.columns - s.classes;
    r->scores[i] = row[0];
    for (int64_t c = 1; c < s.classes; ++c) r->scores[i] = larger(r->scores[i], row[c]);
  }
  const int64_t n = by_score(r->scores, s.boxes, reaches, s.threshold, r->order);
  const int64_t kept = suppress(*r, n, s.iou, s.most);
  for (int64_t k = 0; k < kept; ++k) {
    const int32_t box = r->kept[k];
    const float* row = scores + (box + int64_t{1}) * s.columns - s.classes;
    int32_t last = -1;
    for (int64_t j = 0; j < s.classes_per_box && j < s.classes; ++j) {
      int32_t best = -1;  // the best of those that come after `last`
      for (int32_t c = 0; c < s.classes; ++c)
        if ((last < 0 || before(row, last, c)) && (best < 0 || before(row, c, best))) best = c;
      r->found[r->count++] = {row[best], best, box, 0};
      last = best;
    }
  }
}

// Suppression in each class; then the best of all.
void find_regular(const State& s, const float* scores, Room* r) {
  for (int32_t c = 0; c < s.classes; ++c) {
    for (int64_t i = 0; i < s.boxes; ++i)
      r->scores[i] = scores[(i + 1) * s.columns - s.classes + c];
    const int64_t n = by_score(r->scores, s.boxes, reaches, s.threshold, r->order);
    const int64_t kept = suppress(*r, n, s.iou, s.per_class);
    for (int64_t k = 0; k < kept; ++k) offer(r, {r->scores[r->kept[k]], c, r->kept[k], 0});
  }
}

void run(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const float* scores = step.inputs[1]->as<float>();
  Room r = room_in(s, scratch);
  decode(s, step.inputs[0]->as<float>(), step.inputs[2]->as<float>(), r.corners);
  (s.regular ? find_regular : find_fast)(s, scores, &r);
  for (int i = 0; i < 3; ++i)
    if (const Tensor* y = output_of(step, i)) memset(y->data, 0, y->bytes);
  for (int64_t i = 0; i < r.count; ++i) {
    const Found& f = r.found[i];
    if (const Tensor* y = output_of(step, 0))
      memcpy(y->as<float>() + 4 * i, r.corners + 4 * static_cast<int64_t>(f.box), 16);
    if (const Tensor* y = output_of(step, 1)) y->as<float>()[i] = static_cast<float>(f.label);
    if (const Tensor* y = output_of(step, 2)) y->as<float>()[i] = f.score;
  }
  if (const Tensor* y = output_of(step, 3)) y->as<float>()[0] = static_cast<float>(r.count);
}

const Kernel kDetection[] = {
    {"TFLite_Detection_PostProcess", "f32_detection_postprocess", prepare, run, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(detection_tflite, kDetection)
