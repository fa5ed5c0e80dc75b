// GridSample of images: x (N,C,H,W), positions (N,h,w,2) of -1 to 1 as x, y → (N,C,h,w). Each value is a weighted
// sum of the pixels near its position: one (nearest), 2x2 (linear) or 4x4 (cubic, a = -0.75).
#include <math.h>

#include "lite_kernel.h"

namespace lite {

namespace {

constexpr int kPixels = 32;  // of the output, whose taps are found before any channel is read
constexpr int kMostTaps = 4;  // along an axis
constexpr float kFar = 1 << 24;  // a position beyond is none that float32 can place

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct State {
  int64_t channels, height, width, pixels, blocks;
  Mode mode;
  Padding padding;
  bool corners;
};

// Along one axis: places and their weights.
struct Taps {
  int64_t at[kMostTaps];
  float weight[kMostTaps];
};

struct Block {
  int64_t at[kPixels][kMostTaps * kMostTaps];
  float weight[kPixels][kMostTaps * kMostTaps];
};

bool read_modes(const Step& step, State* s) {
  const char* const mode = attr_string(step, "mode", "linear");
  const char* const padding = attr_string(step, "padding_mode", "zeros");
  if (!strcmp(mode, "nearest")) s->mode = Mode::kNearest;
  else if (!strcmp(mode, "linear") || !strcmp(mode, "bilinear")) s->mode = Mode::kLinear;
  else if (!strcmp(mode, "cubic") || !strcmp(mode, "bicubic")) s->mode = Mode::kCubic;
  else return false;
  if (!strcmp(padding, "zeros")) s->padding = Padding::kZeros;
  else if (!strcmp(padding, "border")) s->padding = Padding::kBorder;
  else if (!strcmp(padding, "reflection")) s->padding = Padding::kReflection;
  else return false;
  return true;
}

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *grid = input_of(step, 1), *y = output_of(step, 0);
  if (!x || !grid || !y || x->dtype != DType::kF32 || grid->dtype != DType::kF32 ||
      y->dtype != DType::kF32 || x->rank != 4 || grid->rank != 4 || y->rank != 4)
    return env.fail("needs f32 images (N,C,H,W) and f32 positions (N,h,w,2)");
  if (grid->dims[3] != 2 || grid->dims[0] != x->dims[0] || y->dims[0] != x->dims[0] ||
      y->dims[1] != x->dims[1] || y->dims[2] != grid->dims[1] || y->dims[3] != grid->dims[2])
    return env.fail("images, positions and output do not fit each other");
  if (x->dims[2] < 1 || x->dims[3] < 1) return env.fail("an image has no pixels");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->channels = x->dims[1];
  s->height = x->dims[2];
  s->width = x->dims[3];
  s->pixels = y->dims[2] * y->dims[3];
  s->blocks = (s->pixels + kPixels - 1) / kPixels;
  s->corners = attr_int(step, "align_corners", 0) != 0;
  if (!read_modes(step, s)) return env.fail("the mode or padding mode is not known");
  step.scratch_bytes = sizeof(Block);
  return true;
}

float clamped(float p, float low, float high) { return p > low ? (p < high ? p : high) : low; }

int64_t inside(int64_t i, int64_t size) { return i < 0 ? 0 : i < size ? i : size - 1; }

// Mirrored back between the middles of the outer pixels, or (without corners) their outer edges.
float reflected(const State& s, float p, int64_t size) {
  const float low = s.corners ? 0.0f : -0.5f;
  const float span = static_cast<float>(s.corners ? size - 1 : size);
  if (!(span > 0)) return 0.0f;
  float folded = fmodf(p - low, 2 * span);
  if (folded < 0) folded += 2 * span;
  return low + (folded > span ? 2 * span - folded : folded);
}

// What pixel `i` of an axis is read as; its weight becomes 0 where there is nothing.
int64_t place(const State& s, int64_t i, int64_t size, float* weight) {
  if (s.padding == Padding::kZeros && (i < 0 || i >= size)) *weight = 0.0f;
  if (s.padding == Padding::kReflection && (i < 0 || i >= size))
    i = static_cast<int64_t>(rintf(reflected(s, static_cast<float>(i), size)));
  return inside(i, size);
}

float cubic(float d) {  // Keys 1981
  constexpr float a = -0.75f;
  d = fabsf(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0f;
}

int taps_of(Mode mode) { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }

Taps find_taps(const State& s, float g, int64_t size) {
  const float n = static_cast<float>(size);
  // NaN and far positions become outer ones, which are whole numbers.
  float p = clamped(s.corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2, -kFar, kFar);
  if (s.mode != Mode::kCubic) {
    if (s.padding == Padding::kReflection) p = reflected(s, p, size);
    if (s.padding != Padding::kZeros) p = clamped(p, 0.0f, n - 1);
  }
  const float low = s.mode == Mode::kNearest ? rintf(p) : floorf(p);
  const int64_t first = static_cast<int64_t>(low) - (s.mode == Mode::kCubic);
  Taps taps;
  for (int i = 0; i < taps_of(s.mode); ++i) {
    const float d = p - static_cast<float>(first + i);
    taps.weight[i] = s.mode == Mode::kNearest ? 1.0f : s.mode == Mode::kLinear ? 1 - fabsf(d) : cubic(d);
    taps.at[i] = place(s, first + i, size, &taps.weight[i]);
  }
  return taps;
}

void sum_taps(const State& s, const Block& block, const float* x, int count, int taps, float* y) {
  const int64_t plane = s.height * s.width;
  for (int64_t c = 0; c < s.channels; ++c, x += plane, y += s.pixels)
    for (int i = 0; i < count; ++i) {
      float sum = 0.0f;
      for (int t = 0; t < taps; ++t) sum += block.weight[i][t] * x[block.at[i][t]];
      y[i] = sum;
    }
}

void run(const Step& step, int, int thread, int threads, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  Block& block = *static_cast<Block*>(scratch);
  const int taps = taps_of(s.mode);
  int64_t begin, end;
  share(step.inputs[0]->dims[0] * s.blocks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / s.blocks, first = unit % s.blocks * kPixels;
    const int count = static_cast<int>(s.pixels - first < kPixels ? s.pixels - first : kPixels);
    const float* grid = step.inputs[1]->as<float>() + (image * s.pixels + first) * 2;
    for (int i = 0; i < count; ++i) {
      const Taps across = find_taps(s, grid[2 * i], s.width);
      const Taps down = find_taps(s, grid[2 * i + 1], s.height);
      for (int t = 0; t < taps * taps; ++t) {
        block.at[i][t] = down.at[t / taps] * s.width + across.at[t % taps];
        block.weight[i][t] = down.weight[t / taps] * across.weight[t % taps];
      }
    }
    const float* x = step.inputs[0]->as<float>() + image * s.channels * s.height * s.width;
    float* y = step.outputs[0]->as<float>() + image * s.channels * s.pixels + first;
    sum_taps(s, block, x, count, taps * taps, y);
  }
}

const Kernel kGridSample[] = {
    {"GridSample", "f32_grid_sample", prepare, run, kDivisible},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(grid_sample, kGridSample)
