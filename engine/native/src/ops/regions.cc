// RoiAlign: x (N,C,H,W), regions (R,4) of x1, y1, x2, y2 and their images (R) → (R,C,h,w), the mean or the
// maximum of bilinear samples in each cell. A region of an image that is not there gives zeros.
#include <cmath>

#include "lite_kernel.h"

namespace lite {

namespace {

constexpr int kSamples = 64;  // of a cell, weighed before any channel is read

struct State {
  int64_t channels, height, width, images, rows, columns, ratio;
  float scale, shift;
  bool clamped, largest;  // clamped: no region is smaller than a pixel
};

// One sample: four places of a plane and their weights.
struct Taps {
  int64_t at[4];
  float weight[4];
};

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *rois = input_of(step, 1), *image = input_of(step, 2);
  const Tensor* y = output_of(step, 0);
  if (!x || !rois || !image || !y || x->dtype != DType::kF32 || rois->dtype != DType::kF32 ||
      y->dtype != DType::kF32 || image->dtype != DType::kI64 || x->rank != 4 || rois->rank != 2 ||
      y->rank != 4)
    return env.fail("needs f32 images (N,C,H,W), f32 regions (R,4) and their i64 images (R)");
  const int64_t regions = rois->dims[0];
  if (rois->dims[1] != 4 || image->size != regions || y->dims[0] != regions ||
      y->dims[1] != x->dims[1] || y->dims[2] < 1 || y->dims[3] < 1)
    return env.fail("regions, images and output do not fit each other");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->images = x->dims[0];
  s->channels = x->dims[1];
  s->height = x->dims[2];
  s->width = x->dims[3];
  s->rows = y->dims[2];
  s->columns = y->dims[3];
  s->ratio = attr_int(step, "sampling_ratio", 0);
  if (s->ratio < 0 || s->ratio > (1 << 16)) return env.fail("sampling_ratio is out of range");
  s->scale = static_cast<float>(attr_float(step, "spatial_scale", 1));
  s->clamped = strcmp(attr_string(step, "coordinate_transformation_mode", "half_pixel"),
                      "half_pixel") != 0;
  s->shift = s->clamped ? 0.0f : 0.5f;
  s->largest = strcmp(attr_string(step, "mode", "avg"), "max") == 0;
  if (!mul_size(static_cast<size_t>(s->channels), sizeof(float), &step.scratch_bytes) ||
      !add_size(step.scratch_bytes, kSamples * sizeof(Taps), &step.scratch_bytes))
    return env.fail("too many channels");
  return true;
}

// The two neighbours of a position along an axis of `size` and the second one's weight; false where the
// position is more than a pixel outside.
bool neighbours(float p, int64_t size, int64_t* low, int64_t* high, float* part) {
  if (!(p >= -1.0f && p <= static_cast<float>(size))) return false;
  const float inner = p > 0.0f ? p : 0.0f;
  *low = static_cast<int64_t>(inner);
  if (*low >= size - 1) *low = size - 1;
  *high = *low + 1 < size ? *low + 1 : *low;
  *part = *high == *low ? 0.0f : inner - static_cast<float>(*low);
  return true;
}

Taps taps_of(const State& s, float y, float x) {
  Taps t = {};
  int64_t top, bottom, left, right;
  float down, across;
  if (!neighbours(y, s.height, &top, &bottom, &down) ||
      !neighbours(x, s.width, &left, &right, &across))
    return t;  // four times nothing
  t.at[0] = top * s.width + left;
  t.at[1] = top * s.width + right;
  t.at[2] = bottom * s.width + left;
  t.at[3] = bottom * s.width + right;
  t.weight[0] = (1 - down) * (1 - across);
  t.weight[1] = (1 - down) * across;
  t.weight[2] = down * (1 - across);
  t.weight[3] = down * across;
  return t;
}

// Adds `count` samples of every channel to its sum, or keeps the largest weighted corner.
void gather(const State& s, const float* image, const Taps* taps, int count, bool first, float* sums) {
  const int64_t plane = s.height * s.width;
  for (int64_t c = 0; c < s.channels; ++c, image += plane) {
    float sum = first ? (s.largest ? -INFINITY : 0.0f) : sums[c];
    for (int k = 0; k < count; ++k) {
      const Taps& t = taps[k];
      const float corner[4] = {t.weight[0] * image[t.at[0]], t.weight[1] * image[t.at[1]],
                               t.weight[2] * image[t.at[2]], t.weight[3] * image[t.at[3]]};
      if (s.largest)
        for (float value : corner) sum = value > sum ? value : sum;
      else
        sum += corner[0] + corner[1] + corner[2] + corner[3];
    }
    sums[c] = sum;
  }
}

// Samples of a cell along one axis; 0 for a region whose size is no number, or too large for one.
int64_t samples_along(const State& s, float cell) {
  if (s.ratio) return s.ratio;
  const float wanted = std::ceil(cell);
  return wanted > 0 && wanted < 65536.0f ? static_cast<int64_t>(wanted) : 0;
}

void align(const State& s, const float* image, const float* roi, float* y, Taps* taps, float* sums) {
  const float left = roi[0] * s.scale - s.shift, top = roi[1] * s.scale - s.shift;
  float width = roi[2] * s.scale - s.shift - left, height = roi[3] * s.scale - s.shift - top;
  if (s.clamped) {
    width = width > 1.0f ? width : 1.0f;
    height = height > 1.0f ? height : 1.0f;
  }
  const float down = height / static_cast<float>(s.rows), across = width / static_cast<float>(s.columns);
  const int64_t tall = samples_along(s, down), wide = samples_along(s, across);
  const int64_t cells = s.rows * s.columns, samples = tall * wide;
  for (int64_t cell = 0; cell < cells; ++cell) {
    const float y0 = top + static_cast<float>(cell / s.columns) * down;
    const float x0 = left + static_cast<float>(cell % s.columns) * across;
    gather(s, image, taps, 0, true, sums);
    for (int64_t k = 0; k < samples; k += kSamples) {
      const int count = static_cast<int>(samples - k < kSamples ? samples - k : kSamples);
      for (int i = 0; i < count; ++i) {
        const float iy = static_cast<float>((k + i) / wide) + 0.5f;
        const float ix = static_cast<float>((k + i) % wide) + 0.5f;
        taps[i] = taps_of(s, y0 + iy * down / static_cast<float>(tall),
                          x0 + ix * across / static_cast<float>(wide));
      }
      gather(s, image, taps, count, false, sums);
    }
    const float over = s.largest ? 1.0f : static_cast<float>(samples);
    for (int64_t c = 0; c < s.channels; ++c)
      y[c * cells + cell] = samples ? sums[c] / over : 0.0f;
  }
}

void run(const Step& step, int, int thread, int threads, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  Taps* taps = static_cast<Taps*>(scratch);
  float* sums = reinterpret_cast<float*>(taps + kSamples);
  const int64_t values = s.channels * s.rows * s.columns;
  int64_t begin, end;
  share(step.inputs[1]->dims[0], 1, thread, threads, &begin, &end);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t image = step.inputs[2]->as<int64_t>()[r];
    float* y = step.outputs[0]->as<float>() + r * values;
    if (image < 0 || image >= s.images || !s.height || !s.width) {
      memset(y, 0, static_cast<size_t>(values) * sizeof(float));
      continue;
    }
    align(s, step.inputs[0]->as<float>() + image * s.channels * s.height * s.width,
          step.inputs[1]->as<float>() + 4 * r, y, taps, sums);
  }
}

const Kernel kRegions[] = {
    {"RoiAlign", "f32_roi_align", prepare, run, 0},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(regions, kRegions)
