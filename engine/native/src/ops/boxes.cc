// Boxes of Paddle's detectors from what their heads say: yolo_box, and box_coder's decoding.
#include <cmath>

#include "convert.h"

namespace lite {

namespace {

bool is_floats(const Tensor* t) { return t && t->dtype == DType::kF32; }
bool is_number(const Tensor* t) {
  return t && (is_float(t->dtype) || t->dtype == DType::kI32 || t->dtype == DType::kI64);
}

// ---- yolo_box: x (N, [A] + A*(5+C), H, W), img_size (N,2) height, width → boxes (N,A*H*W,4) in
// pixels, scores (N,A*H*W,C)

struct YoloState {
  int64_t images, anchors, classes, h, w, skipped;  // skipped: channels of the overlap, if aware
  const int64_t* sizes;                             // of the anchors: w, h, …
  float scale, bias, least, part, stride;
  bool clip;
};

bool prepare_yolo(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *size = input_of(step, 1);
  const Tensor *boxes = output_of(step, 0), *scores = output_of(step, 1);
  if (!is_floats(x) || x->rank != 4 || !is_number(size) || (boxes && !is_floats(boxes)) ||
      (scores && !is_floats(scores)))
    return env.fail("needs an f32 map of rank 4 and the images' sizes");
  YoloState* s = static_cast<YoloState*>(env.allocate(sizeof(YoloState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  int count;
  s->sizes = attr_ints(step, "anchors", &count);
  s->anchors = count / 2;
  s->classes = attr_int(step, "class_num", -1);
  s->images = x->dims[0];
  s->h = x->dims[2];
  s->w = x->dims[3];
  const bool aware = attr_int(step, "iou_aware", 0) != 0;
  s->skipped = aware ? s->anchors : 0;
  int64_t channels;
  if (s->anchors < 1 || s->classes < 0 || s->classes > x->dims[1] ||
      __builtin_mul_overflow(s->anchors, s->classes + (aware ? 6 : 5), &channels) ||
      channels != x->dims[1] || size->size != 2 * s->images)
    return env.fail("anchors, class_num and sizes do not fit the map");
  const int64_t total = s->images * s->anchors * s->h * s->w;  // fewer than x has numbers
  if ((boxes && boxes->size != 4 * total) || (scores && scores->size != s->classes * total))
    return env.fail("outputs do not fit the map");
  s->scale = static_cast<float>(attr_float(step, "scale_x_y", 1));
  s->bias = -0.5f * (s->scale - 1);
  s->least = static_cast<float>(attr_float(step, "conf_thresh", 0.01));
  s->part = static_cast<float>(attr_float(step, "iou_aware_factor", 0.5));
  s->stride = static_cast<float>(attr_int(step, "downsample_ratio", 32));
  s->clip = attr_int(step, "clip_bbox", 1) != 0;
  return true;
}

float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

void run_yolo(const Step& step, int, int thread, int threads, void*) {
  const YoloState& s = *static_cast<const YoloState*>(step.state);
  const Tensor &x = *step.inputs[0], &size = *step.inputs[1];
  const Tensor *boxes = output_of(step, 0), *scores = output_of(step, 1);
  const int64_t area = s.h * s.w;
  int64_t begin, end;
  share(s.images * s.anchors * area, 16, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t cell = i % area, a = i / area % s.anchors, n = i / area / s.anchors;
    const float* image = x.as<float>() + n * x.dims[1] * area + cell;
    const float* from = image + (s.skipped + a * (5 + s.classes)) * area;
    float confidence = sigmoid(from[4 * area]);
    if (s.skipped)
      confidence = powf(confidence, 1 - s.part) * powf(sigmoid(image[a * area]), s.part);
    const bool kept = confidence >= s.least;
    double pixels[2];  // height, width
    load_doubles(size.dtype, size.data + 2 * n * dtype_bytes(size.dtype), 1, 2, pixels);
    for (int axis = 0; axis < 2 && boxes; ++axis) {  // x, y
      const float whole = static_cast<float>(pixels[1 - axis]);
      const float cells = static_cast<float>(axis ? s.h : s.w);
      const float place = static_cast<float>(axis ? cell / s.w : cell % s.w);
      const float centre = (place + sigmoid(from[axis * area]) * s.scale + s.bias) * whole / cells;
      const float anchor = static_cast<float>(s.sizes[2 * a + axis]);
      const float extent = expf(from[(axis + 2) * area]) * anchor * whole / (s.stride * cells);
      float low = centre - extent / 2, high = centre + extent / 2;
      if (s.clip && low < 0) low = 0;
      if (s.clip && high > whole - 1) high = whole - 1;
      boxes->as<float>()[4 * i + axis] = kept ? low : 0;
      boxes->as<float>()[4 * i + axis + 2] = kept ? high : 0;
    }
    for (int64_t c = 0; c < s.classes && scores; ++c)
      scores->as<float>()[i * s.classes + c] =
          kept ? confidence * sigmoid(from[(5 + c) * area]) : 0;
  }
}

// ---- box_coder, decode_center_size: prior (M,4), variances (M,4), (4) or an attribute, target
// (N,M,4) with priors along `axis` 1 or, with axis 1, 0

struct CoderState {
  int64_t rows, columns;
  bool along_rows;
  float extra, scale[4];
};

bool prepare_coder(Step& step, Env& env) {
  const Tensor *prior = input_of(step, 0), *variance = input_of(step, 1);
  const Tensor *target = input_of(step, 2), *y = output_of(step, 0);
  if (!is_floats(prior) || (variance && !is_floats(variance)) || !is_floats(target) ||
      !is_floats(y) || prior->rank != 2 || target->rank != 3 || !same_dims(*target, *y) ||
      strcmp(attr_string(step, "code_type", ""), "decode_center_size") != 0)
    return env.fail("needs f32 priors (M,4) and a target (N,M,4) to decode");
  CoderState* s = static_cast<CoderState*>(env.allocate(sizeof(CoderState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->rows = target->dims[0];
  s->columns = target->dims[1];
  s->along_rows = attr_int(step, "axis", 0) == 1;
  s->extra = attr_int(step, "box_normalized", 1) ? 0.0f : 1.0f;
  int count;
  const double* scale = attr_floats(step, "variance", &count);
  for (int e = 0; e < 4; ++e) s->scale[e] = count == 4 ? static_cast<float>(scale[e]) : 1.0f;
  const bool each = variance && variance->rank == 2;
  if (prior->dims[0] != (s->along_rows ? s->rows : s->columns) || prior->dims[1] != 4 ||
      target->dims[2] != 4 || (variance && variance->size != (each ? prior->size : 4)))
    return env.fail("priors, variances and target do not fit each other");
  return true;
}

void run_coder(const Step& step, int, int thread, int threads, void*) {
  const CoderState& s = *static_cast<const CoderState*>(step.state);
  const float *priors = step.inputs[0]->as<float>(), *target = step.inputs[2]->as<float>();
  const Tensor* variance = step.inputs[1];
  float* y = step.outputs[0]->as<float>();
  int64_t begin, end;
  share(s.rows * s.columns, 16, thread, threads, &begin, &end);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = s.along_rows ? i / s.columns : i % s.columns;
    const float *p = priors + 4 * at, *t = target + 4 * i;
    const float* v = s.scale;
    if (variance) v = variance->as<float>() + (variance->rank == 2 ? 4 * at : 0);
    for (int axis = 0; axis < 2; ++axis) {
      const float size = p[axis + 2] - p[axis] + s.extra;
      const float middle = t[axis] * v[axis] * size + (p[axis] + size / 2);
      const float extent = expf(t[axis + 2] * v[axis + 2]) * size;
      y[4 * i + axis] = middle - extent / 2;
      y[4 * i + axis + 2] = middle + extent / 2 - s.extra;
    }
  }
}

const Kernel kBoxes[] = {
    {"yolo_box", "f32_yolo_box", prepare_yolo, run_yolo, 0},
    {"box_coder", "f32_box_coder", prepare_coder, run_coder, 0},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(boxes, kBoxes)
