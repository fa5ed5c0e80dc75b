// PasteMasks: masks (N,C,h,w) and boxes (N,4) of whole x1, y1, x2, y2 → (N,H,W), the first channel of each
// mask stretched over its box, zeros around it. Boxes may be any numbers: only what lies inside the image
// is computed.
#include <cmath>

#include "lite_kernel.h"

namespace lite {

namespace {

constexpr int64_t kFar = int64_t{1} << 24;  // from the image: floats count whole numbers up to there

struct State {
  int64_t count, mask_elems, mask_h, mask_w, height, width;
};

bool prepare(Step& step, Env& env) {
  const Tensor *masks = input_of(step, 0), *boxes = input_of(step, 1), *y = output_of(step, 0);
  if (!masks || !boxes || !y || masks->dtype != DType::kF32 || boxes->dtype != DType::kI64 ||
      y->dtype != DType::kF32 || masks->rank != 4 || boxes->rank != 2 || y->rank != 3)
    return env.fail("needs f32 masks (N,C,h,w), i64 boxes (N,4) and an f32 output (N,H,W)");
  if (boxes->dims[1] != 4 || boxes->dims[0] != masks->dims[0] || y->dims[0] != masks->dims[0] ||
      masks->dims[1] < 1 || masks->dims[2] < 1 || masks->dims[3] < 1)
    return env.fail("masks, boxes and output do not fit each other");
  if (attr_int(step, "height", -1) != y->dims[1] || attr_int(step, "width", -1) != y->dims[2])
    return env.fail("height and width are not those of the output");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  *s = {masks->dims[0], masks->dims[1] * masks->dims[2] * masks->dims[3], masks->dims[2],
        masks->dims[3], y->dims[1], y->dims[2]};
  return true;
}

// One side of a box: where it begins, how long the mask becomes, and which pixels of the image it covers.
struct Side {
  int64_t start, length, begin, end;
};

Side side_of(int64_t low, int64_t high, int64_t size) {
  low = low < -kFar ? -kFar : low > kFar ? kFar : low;
  high = high < -kFar ? -kFar : high > kFar ? kFar : high;
  const int64_t length = high - low + 1 > 1 ? high - low + 1 : 1;
  return {low, length, low > 0 ? low : 0, high + 1 < size ? high + 1 : size};
}

// The two neighbours of a pixel along an axis of a mask, and the second one's weight.
void neighbours(const Side& s, int64_t pixel, int64_t size, int64_t* low, int64_t* high, float* part) {
  const float ratio = static_cast<float>(size) / static_cast<float>(s.length);
  float at = (static_cast<float>(pixel - s.start) + 0.5f) * ratio - 0.5f;
  at = at < 0 ? 0 : at > static_cast<float>(size - 1) ? static_cast<float>(size - 1) : at;
  *low = static_cast<int64_t>(at);
  *high = *low + 1 < size ? *low + 1 : *low;
  *part = at - static_cast<float>(*low);
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  int64_t begin, end;
  share(s.count * s.height, 1, thread, threads, &begin, &end);
  for (int64_t line = begin; line < end; ++line) {
    const int64_t n = line / s.height, row = line % s.height;
    float* y = step.outputs[0]->as<float>() + line * s.width;
    memset(y, 0, static_cast<size_t>(s.width) * sizeof(float));
    const int64_t* box = step.inputs[1]->as<int64_t>() + 4 * n;
    const Side down = side_of(box[1], box[3], s.height), along = side_of(box[0], box[2], s.width);
    if (row < down.begin || row >= down.end) continue;
    int64_t top, bottom, left, right;
    float fall, part;
    neighbours(down, row, s.mask_h, &top, &bottom, &fall);
    const float* mask = step.inputs[0]->as<float>() + n * s.mask_elems;
    const float *upper = mask + top * s.mask_w, *lower = mask + bottom * s.mask_w;
    for (int64_t x = along.begin; x < along.end; ++x) {
      neighbours(along, x, s.mask_w, &left, &right, &part);
      const float above = upper[left] + (upper[right] - upper[left]) * part;
      const float below = lower[left] + (lower[right] - lower[left]) * part;
      y[x] = above + (below - above) * fall;
    }
  }
}

const Kernel kPasteMasks[] = {
    {"PasteMasks", "f32_paste_masks", prepare, run, 0},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(paste_masks, kPasteMasks)
