// What ends an SSD detector: boxes decoded, those that overlap a better one dropped, the best put into
// slots of a fixed number. TFLite_Detection_PostProcess, Caffe's DetectionOutput with keep_top_k and
// Paddle's multiclass_nms, padded.
//
// One thread does it: some thousand boxes, of which a threshold leaves few. Equal scores keep their
// order, so that every machine gives the same rows; a NaN score is no candidate.
#include <cmath>

#include "lite_kernel.h"

namespace lite {

namespace {

struct Found {
  float score;
  int32_t label, box;
  int64_t order;  // when it was found
};

struct State {
  int64_t boxes, classes, columns;  // columns: scores of a box, the last `classes` count
  int64_t slots;
  // TFLite
  int64_t most, per_class, classes_per_box;
  bool regular;
  float scales[4];
  // Caffe
  int64_t images, candidates, background, code;
  bool shared, encoded;
  float iou, threshold;
  // Paddle
  float extra;  // of a box in whole pixels, which includes its last one
  double overlap, eta;
};

// Of one thread, in its scratch.
struct Room {
  float* corners;  // (boxes, 4)
  float* scores;   // (boxes)
  int32_t* order;  // boxes by falling score
  int32_t* kept;
  Found* found;  // the best so far, at most `slots`
  int64_t count;
};

// Slots that nothing can fill need no room.
bool room_bytes(State* s, size_t* bytes) {
  if (s->slots > s->boxes * s->classes) s->slots = s->boxes * s->classes;
  size_t boxes, found;
  return mul_size(static_cast<size_t>(s->boxes), 7 * 4, &boxes) &&
         mul_size(static_cast<size_t>(s->slots), sizeof(Found), &found) &&
         add_size(boxes, found, bytes);
}

Room room_in(const State& s, void* scratch) {
  Room r;
  r.found = static_cast<Found*>(scratch);
  r.corners = reinterpret_cast<float*>(r.found + s.slots);
  r.scores = r.corners + 4 * s.boxes;
  r.order = reinterpret_cast<int32_t*>(r.scores + s.boxes);
  r.kept = r.order + s.boxes;
  r.count = 0;
  return r;
}

bool is_floats(const Tensor* t) { return t && t->dtype == DType::kF32; }
bool holds(const Tensor* t, int64_t size) { return !t || (is_floats(t) && t->size == size); }

// ---- candidates by falling score: heap sort, whose memory is the order itself

bool before(const float* scores, int32_t a, int32_t b) {
  return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

void sift(const float* scores, int32_t* heap, int64_t root, int64_t n) {
  for (;;) {
    int64_t child = 2 * root + 1;
    if (child >= n) return;
    if (child + 1 < n && before(scores, heap[child], heap[child + 1])) ++child;
    if (!before(scores, heap[root], heap[child])) return;
    const int32_t swap = heap[root];
    heap[root] = heap[child];
    heap[child] = swap;
    root = child;
  }
}

int64_t by_score(const float* scores, int64_t boxes, bool (*passes)(float, float), float threshold,
                 int32_t* order) {
  int64_t n = 0;
  for (int64_t i = 0; i < boxes; ++i)
    if (passes(scores[i], threshold)) order[n++] = static_cast<int32_t>(i);
  for (int64_t root = n / 2; root-- > 0;) sift(scores, order, root, n);
  for (int64_t last = n; last-- > 1;) {
    const int32_t swap = order[0];
    order[0] = order[last];
    order[last] = swap;
    sift(scores, order, 0, last);
  }
  return n;
}

bool reaches(float score, float threshold) { return score >= threshold; }
bool exceeds(float score, float threshold) { return score > threshold; }

// ---- suppression

float area(const float* box) { return (box[2] - box[0]) * (box[3] - box[1]); }

// As np.maximum and np.minimum: NaN of either wins.
float larger(float a, float b) { return a > b || a != a ? a : b; }
float smaller(float a, float b) { return a < b || a != a ? a : b; }

bool overlaps(const float* a, const float* b, float iou) {
  const float area_a = area(a), area_b = area(b);
  if (!(area_a > 0) || !(area_b > 0)) return !(0 <= iou);
  const float first = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), 0.0f);
  const float second = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), 0.0f);
  const float shared = first * second;
  return !(shared / (area_a + area_b - shared) <= iou);
}

// Greedy: of the first n in `order` those that overlap no better one, at most `limit`.
int64_t suppress(const Room& r, int64_t n, float iou, int64_t limit) {
  int64_t count = 0;
  for (int64_t i = 0; i < n && count < limit; ++i) {
    const float* box = r.corners + 4 * static_cast<int64_t>(r.order[i]);
    bool free = true;
    for (int64_t k = 0; k < count && free; ++k)
      free = !overlaps(box, r.corners + 4 * static_cast<int64_t>(r.kept[k]), iou);
    if (free) r.kept[count++] = r.order[i];
  }
  return count;
}

// Puts what was found into the order in which it was: by label, then by falling score.
void in_order(Room* r) {
  for (int64_t i = 1; i < r->count; ++i) {
    const Found f = r->found[i];
    int64_t at = i;
    for (; at > 0 && r->found[at - 1].order > f.order; --at) r->found[at] = r->found[at - 1];
    r->found[at] = f;
  }
}

// Keeps the best `slots`; the first found of equals.
void offer(const State& s, Room* r, const Found& f) {
  if (r->count == s.slots && (!s.slots || r->found[s.slots - 1].score >= f.score)) return;
  int64_t at = r->count < s.slots ? r->count++ : s.slots - 1;
  for (; at > 0 && r->found[at - 1].score < f.score; --at) r->found[at] = r->found[at - 1];
  r->found[at] = f;
}

// ---- TFLite_Detection_PostProcess: boxes (1,A,4) y,x,h,w; scores (1,A,C); anchors (A,4) alike

bool prepare_tflite(Step& step, Env& env) {
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

void decode_tflite(const State& s, const float* boxes, const float* anchors, float* corners) {
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
    for (int64_t k = 0; k < kept; ++k) offer(s, r, {r->scores[r->kept[k]], c, r->kept[k], 0});
  }
}

void run_tflite(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const float* scores = step.inputs[1]->as<float>();
  Room r = room_in(s, scratch);
  decode_tflite(s, step.inputs[0]->as<float>(), step.inputs[2]->as<float>(), r.corners);
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

// ---- DetectionOutput: locations (N,P*L*4), confidences (N,P*C), priors (1,2,P*4) with variances

bool prepare_caffe(Step& step, Env& env) {
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
  s->columns = s->classes = attr_int(step, "num_classes", 0);
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
void decode_caffe(const State& s, const float* moves, int64_t stride, const float* priors,
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
float* caffe_rows(const State& s, const float* moves, const float* scores, const float* priors,
                  int64_t image, Room r, float* row) {
  const int64_t sets = s.shared ? 1 : s.classes;
  int64_t order = 0;
  if (s.shared) decode_caffe(s, moves, 4, priors, r.corners);
  for (int32_t c = 0; c < s.classes; ++c) {
    if (c == s.background) continue;
    if (!s.shared) decode_caffe(s, moves + 4 * c, 4 * sets, priors, r.corners);
    for (int64_t i = 0; i < s.boxes; ++i) r.scores[i] = scores[i * s.classes + c];
    int64_t n = by_score(r.scores, s.boxes, exceeds, s.threshold, r.order);
    if (s.candidates > -1 && s.candidates < n) n = s.candidates;
    const int64_t kept = suppress(r, n, s.iou, n);
    for (int64_t k = 0; k < kept; ++k) offer(s, &r, {r.scores[r.kept[k]], c, r.kept[k], order++});
  }
  in_order(&r);
  int32_t decoded = -1;
  for (int64_t i = 0; i < r.count; ++i, row += 7) {
    const Found& f = r.found[i];
    if (!s.shared && decoded != f.label) {
      decode_caffe(s, moves + 4 * static_cast<int64_t>(f.label), 4 * sets, priors, r.corners);
      decoded = f.label;
    }
    row[0] = static_cast<float>(image);
    row[1] = static_cast<float>(f.label);
    row[2] = f.score;
    memcpy(row + 3, r.corners + 4 * static_cast<int64_t>(f.box), 16);
  }
  return row;
}

void run_caffe(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const int64_t sets = s.shared ? 1 : s.classes;
  const Tensor& y = *step.outputs[0];
  memset(y.data, 0, y.bytes);
  float* row = y.as<float>();
  for (int64_t image = 0; image < s.images; ++image)
    row = caffe_rows(s, step.inputs[0]->as<float>() + image * s.boxes * sets * 4,
                     step.inputs[1]->as<float>() + image * s.boxes * s.classes,
                     step.inputs[2]->as<float>(), image, room_in(s, scratch), row);
}

// ---- multiclass_nms: boxes (N,M,4) or (N,M,C,4), scores (N,C,M); rows label, score, corners

bool prepare_paddle(Step& step, Env& env) {
  const Tensor *boxes = input_of(step, 0), *scores = input_of(step, 1);
  if (!is_floats(boxes) || !is_floats(scores) || scores->rank != 3 || boxes->rank < 3 ||
      boxes->rank > 4 || !attr_int(step, "padded", 0))
    return env.fail("needs f32 boxes (N,M,4) and scores (N,C,M), and padded rows");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->images = scores->dims[0];
  s->classes = scores->dims[1];
  s->boxes = scores->dims[2];
  s->shared = boxes->rank == 3;
  if (boxes->dims[0] != s->images || boxes->dims[1] != s->boxes || last_dim(*boxes) != 4 ||
      (!s->shared && boxes->dims[2] != s->classes) || s->boxes >= INT32_MAX ||
      s->classes > INT32_MAX)
    return env.fail("boxes and scores do not fit each other");
  s->background = attr_int(step, "background_label", 0);
  s->candidates = attr_int(step, "nms_top_k", -1);
  s->threshold = static_cast<float>(attr_float(step, "score_threshold", 0));
  s->overlap = attr_float(step, "nms_threshold", 0.3);
  s->eta = attr_float(step, "nms_eta", 1);
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

float paddle_area(const float* b, float extra) {
  const float w = b[2] - b[0], h = b[3] - b[1];
  return w < 0 || h < 0 ? 0.0f : (w + extra) * (h + extra);
}

float paddle_overlap(const float* a, const float* b, float extra) {
  const float x0 = larger(a[0], b[0]), y0 = larger(a[1], b[1]);
  const float x1 = smaller(a[2], b[2]), y1 = smaller(a[3], b[3]);
  float inner = larger(x1 - x0 + extra, 0.0f) * larger(y1 - y0 + extra, 0.0f);
  if (x1 < x0 || y1 < y0) inner = 0;
  const float whole = paddle_area(a, extra) + paddle_area(b, extra) - inner;
  return whole > 0 ? inner / whole : 0.0f;
}

// Greedy; the threshold shrinks by eta while it is above one half.
int64_t suppress_paddle(const State& s, const Room& r, const float* boxes, int64_t stride,
                        int64_t n) {
  double threshold = s.overlap;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    float worst = -INFINITY;
    for (int64_t k = 0; k < count; ++k)
      worst = larger(worst, paddle_overlap(boxes + stride * r.kept[k], boxes + stride * r.order[i],
                                           s.extra));
    if (worst > static_cast<float>(threshold)) continue;
    r.kept[count++] = r.order[i];
    if (s.eta < 1 && threshold > 0.5) threshold *= s.eta;
  }
  return count;
}

void run_paddle(const Step& step, int, int, int, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  const Tensor *rows = output_of(step, 0), *index = output_of(step, 1), *count = output_of(step, 2);
  const int64_t sets = s.shared ? 1 : s.classes, stride = 4 * sets;
  int64_t at = 0;
  for (int64_t image = 0; image < s.images; ++image) {
    const float* boxes = step.inputs[0]->as<float>() + image * s.boxes * stride;
    const float* scores = step.inputs[1]->as<float>() + image * s.classes * s.boxes;
    Room r = room_in(s, scratch);
    int64_t order = 0;
    for (int32_t c = 0; c < s.classes; ++c) {
      if (c == s.background) continue;
      const float* own = scores + c * s.boxes;
      int64_t n = by_score(own, s.boxes, exceeds, s.threshold, r.order);
      if (s.candidates > -1 && s.candidates < n) n = s.candidates;
      const int64_t kept = suppress_paddle(s, r, boxes + (s.shared ? 0 : 4 * c), stride, n);
      for (int64_t k = 0; k < kept; ++k) offer(s, &r, {own[r.kept[k]], c, r.kept[k], order++});
    }
    in_order(&r);
    for (int64_t i = 0; i < r.count; ++i, ++at) {
      const Found& f = r.found[i];
      if (rows) {
        float* row = rows->as<float>() + 6 * at;
        row[0] = static_cast<float>(f.label);
        row[1] = f.score;
        memcpy(row + 2, boxes + stride * f.box + (s.shared ? 0 : 4 * int64_t{f.label}), 16);
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
    {"multiclass_nms", "f32_multiclass_nms", prepare_paddle, run_paddle, kOneThread},
    {"TFLite_Detection_PostProcess", "f32_detection_postprocess", prepare_tflite, run_tflite,
     kOneThread},
    {"DetectionOutput", "f32_detection_output", prepare_caffe, run_caffe, kOneThread},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(detection, kDetection)
