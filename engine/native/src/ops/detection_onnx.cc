// ONNX's NonMaxSuppression, padded to the rows that there can be: boxes (B,N,4), scores (B,C,N) → rows
// batch, class, box; −1 in those that are not used, which come last; and how many are used.
#include <cmath>

#include "suppression.h"

namespace lite {

namespace {

struct State : Candidates {
  int64_t images, limit;
  bool centred, every;  // every: no score is too low
  float iou, threshold;
};

bool prepare(Step& step, Env& env) {
  const Tensor *boxes = input_of(step, 0), *scores = input_of(step, 1), *y = output_of(step, 0);
  if (!is_floats(boxes) || !is_floats(scores) || boxes->rank != 3 || scores->rank != 3 || !y ||
      y->dtype != DType::kI64 || !attr_int(step, "padded", 0))
    return env.fail("needs f32 boxes (B,N,4) and scores (B,C,N), and padded i64 rows");
  State* s = state_of<State>(step, env, *scores);
  if (!s) return env.out_of_memory();
  if (boxes->dims[0] != s->images || boxes->dims[1] != s->boxes || boxes->dims[2] != 4 ||
      s->boxes >= INT32_MAX)
    return env.fail("boxes and scores do not fit each other");
  s->limit = attr_int(step, "max_output_boxes_per_class", 0);
  if (s->limit < 0) s->limit = 0;
  if (s->limit > s->boxes) s->limit = s->boxes;
  s->iou = static_cast<float>(attr_float(step, "iou_threshold", 0));
  s->every = !find_attr(step, "score_threshold");
  s->threshold = static_cast<float>(attr_float(step, "score_threshold", -INFINITY));
  s->centred = attr_int(step, "center_point_box", 0) != 0;
  int64_t rows;
  size_t bytes;
  if (__builtin_mul_overflow(s->images, s->classes, &rows) ||
      __builtin_mul_overflow(rows, 3 * s->limit, &rows) || y->size != rows)
    return env.fail("the output does not fit max_output_boxes_per_class");
  const Tensor* used = output_of(step, 1);
  if (used && (used->dtype != DType::kI64 || used->size != 1))
    return env.fail("the number of rows is one i64");
  if (!room_bytes(s, &bytes)) return env.fail("too many boxes");
  step.scratch_bytes = bytes;
  return true;
}

// As low, low, high, high.
void to_corners(const State& s, const float* boxes, float* corners) {
  for (int64_t i = 0; i < 4 * s.boxes; i += 4)
    for (int axis = 0; axis < 2; ++axis) {
      const float a = boxes[i + axis], b = boxes[i + axis + 2];
      corners[i + axis] = s.centred ? a - b / 2 : smaller(a, b);
      corners[i + axis + 2] = s.centred ? a + b / 2 : larger(a, b);
    }
}

void run(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const Room r = room_in(s, scratch);
  const float* scores = step.inputs[1]->as<float>();
  int64_t *row = step.outputs[0]->as<int64_t>(), *end = row + step.outputs[0]->size;
  for (int64_t image = 0; image < s.images; ++image) {
    to_corners(s, step.inputs[0]->as<float>() + image * s.boxes * 4, r.corners);
    for (int64_t c = 0; c < s.classes; ++c, scores += s.boxes) {
      const auto passes = s.every ? reaches : exceeds;
      const int64_t n = by_score(scores, s.boxes, passes, s.threshold, r.order);
      const int64_t kept = suppress(r, n, s.iou, s.limit);
      for (int64_t k = 0; k < kept; ++k, row += 3) {
        row[0] = image;
        row[1] = c;
        row[2] = r.kept[k];
      }
    }
  }
  if (const Tensor* used = output_of(step, 1))
    used->as<int64_t>()[0] = (row - step.outputs[0]->as<int64_t>()) / 3;
  for (; row < end; ++row) *row = -1;
}

const Kernel kDetection[] = {
    {"NonMaxSuppression", "f32_non_max_suppression", prepare, run, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(detection_onnx, kDetection)
