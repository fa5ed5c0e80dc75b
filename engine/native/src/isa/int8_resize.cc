// i8_resize_linear: QLinearResize on channels-last bytes, as XNNPACK interpolates:
//
//   top    = (left << 11) + (right - left) * x_weight, bottom alike
//   y      = ((top << 11) + (bottom - top) * y_weight + 2^21) >> 22, weights of 11 bits
//
// and i16_resize_linear as LiteRT does for 16 bits, with weights of 10 bits found in integers:
//
//   y      = (sum of the four neighbours times their two weights) / 2^20, ties away from 0
//
// ops/quant_fixed.py and ops/litert16.py have the same formulas.
#include <math.h>

#include "lite_kernel.h"

namespace lite::LITE_ISA {

namespace {

// One axis: output i lies weight[i] / 2048 behind low[i], towards high[i].
struct Line {
  int64_t out;
  int32_t *low, *high, *weight;
};
struct State {
  Line y, x;
};

bool make_fixed_line(bool aligned, bool centred, int64_t in, int64_t out, Line* line) {
  const int64_t cut = aligned && out > 1 ? 1 : 0;
  const int64_t step = (1024 * (in - cut) + (out - cut) / 2) / (out - cut), last = in - 1;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t at = i * step + (centred ? step / 2 - 512 : 0);
    const int64_t low = at >> 10, high = (at + 1023) >> 10;
    line->low[i] = static_cast<int32_t>(low < 0 ? 0 : low > last ? last : low);
    line->high[i] = static_cast<int32_t>(high < 0 ? 0 : high > last ? last : high);
    line->weight[i] = static_cast<int32_t>(at - line->low[i] * 1024);
  }
  return true;
}

// In float32. Products and sums are rounded one by one: double holds either without loss.
bool make_line(const Step& step, Env& env, int64_t in, int64_t out, Line* line) {
  const char* mode = attr_string(step, "coordinate_transformation_mode", "asymmetric");
  const bool aligned = strcmp(mode, "align_corners") == 0, centred = strcmp(mode, "half_pixel") == 0;
  if (!aligned && !centred && strcmp(mode, "asymmetric") != 0)
    return env.fail("coordinate_transformation_mode %s is not known", mode);
  if (in < 1 || out < 1 || in > INT32_MAX) return env.fail("an image without pixels");
  line->out = out;
  const size_t bytes = static_cast<size_t>(out) * sizeof(int32_t);
  line->low = static_cast<int32_t*>(env.allocate(bytes));
  line->high = static_cast<int32_t*>(env.allocate(bytes));
  line->weight = static_cast<int32_t*>(env.allocate(bytes));
  if (!line->low || !line->high || !line->weight) return env.out_of_memory();
  if (step.inputs[0]->dtype == DType::kI16) {
    if (in > 1 << 20 || out > 1 << 20) return env.fail("an axis of more than 2^20 pixels");
    return make_fixed_line(aligned, centred, in, out, line);
  }
  const int64_t cut = aligned && out != 1 ? 1 : 0;
  const float scale = static_cast<float>(in - cut) / static_cast<float>(out - cut);
  const float offset = static_cast<float>(0.5 * scale - 0.5), last = static_cast<float>(in - 1);
  for (int64_t i = 0; i < out; ++i) {
    float at = static_cast<float>(static_cast<double>(static_cast<float>(i)) * scale);
    if (centred) {
      at = static_cast<float>(static_cast<double>(at) + offset);
      at = at < 0 ? 0 : at > last ? last : at;
    }
    int64_t low = static_cast<int64_t>(at);
    if (low > in - 1) low = in - 1;
    line->low[i] = static_cast<int32_t>(low);
    line->high[i] = static_cast<int32_t>(low + 1 < in ? low + 1 : in - 1);
    line->weight[i] = static_cast<int32_t>(rintf((at - static_cast<float>(low)) * 2048.0f));
  }
  return true;
}

bool prepare(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  if (!x || !y || x->rank != 4 || y->rank != 4 || x->dims[0] != y->dims[0] ||
      x->dims[3] != y->dims[3] || x->dtype != y->dtype ||
      (x->dtype != DType::kI8 && x->dtype != DType::kU8 && x->dtype != DType::kI16))
    return env.fail("resizes the rows and columns of channels-last i8, u8 or i16");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  return make_line(step, env, x->dims[1], y->dims[1], &s->y) &&
         make_line(step, env, x->dims[2], y->dims[2], &s->x);
}

template <class Byte>
void run_rows(const State& s, const Step& step, int thread, int threads) {
  const Tensor &in = *step.inputs[0], &out = *step.outputs[0];
  int64_t from[kMaxRank], to[kMaxRank], begin, end;
  const int64_t in_origin = strides_of(in, from), out_origin = strides_of(out, to);
  const int64_t channels = in.dims[3];
  share(in.dims[0] * s.y.out, 1, thread, threads, &begin, &end);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t image = row / s.y.out, oy = row % s.y.out;
    const Byte* x = in.as<Byte>() + in_origin + image * from[0];
    const Byte *upper = x + s.y.low[oy] * from[1], *lower = x + s.y.high[oy] * from[1];
    Byte* y = out.as<Byte>() + out_origin + image * to[0] + oy * to[1];
    const int32_t down = s.y.weight[oy];
    for (int64_t ox = 0; ox < s.x.out; ++ox, y += to[2]) {
      const int64_t left = s.x.low[ox] * from[2], right = s.x.high[ox] * from[2];
      const int32_t along = s.x.weight[ox];
      const Byte *a = upper + left, *b = upper + right, *c = lower + left, *d = lower + right;
      for (int64_t i = 0; i < channels; ++i) {
        if (sizeof(Byte) == 2) {
          const int64_t rows[2] = {int64_t{a[i]} * (1024 - down) + int64_t{c[i]} * down,
                                   int64_t{b[i]} * (1024 - down) + int64_t{d[i]} * down};
          const int64_t sum = rows[0] * (1024 - along) + rows[1] * along;
          y[i] = static_cast<Byte>((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
          continue;
        }
        const int32_t top = a[i] * 2048 + (b[i] - a[i]) * along;
        const int32_t bottom = c[i] * 2048 + (d[i] - c[i]) * along;
        y[i] = static_cast<Byte>((top * 2048 + (bottom - top) * down + (1 << 21)) >> 22);
      }
    }
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const DType type = step.inputs[0]->dtype;
  if (type == DType::kI8) run_rows<int8_t>(s, step, thread, threads);
  else if (type == DType::kI16) run_rows<int16_t>(s, step, thread, threads);
  else run_rows<uint8_t>(s, step, thread, threads);
}

const Kernel kResize[] = {
    {"QLinearResize", "i8_resize_linear", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible},
    {"QLinearResize", "i16_resize_linear", prepare, run, kAcceptsPitch | kAcceptsHalo | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_resize, kResize)
