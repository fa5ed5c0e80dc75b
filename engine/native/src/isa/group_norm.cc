// Normalisations with statistics of the input, channels last.
//   f32_instance_norm  per sample and channel
//   f32_group_norm     per sample and group of channels
//
// Phase 0 takes the mean of each channel, and the squares of the distances from it, over blocks of
// pixels that stay in the first-level cache; phase 1 joins them (Chan, Golub, LeVeque 1983) and
// normalises. The blocks, and so what is rounded, do not depend on the number of threads.
#include <cmath>

#include "activation.h"
#include "norm_operands.h"

namespace lite::LITE_ISA {

namespace {

struct GroupState {
  int64_t images, pixels, channels, groups;
  double epsilon;
  int64_t block, blocks;  // pixels of a block; blocks of an image
  int64_t columns;        // of a row: channels or, where those would not fill a vector, kLanes pixels
  Activation activation;
};

constexpr int64_t kBlockElems = 6144;

bool prepare_group(Step& step, Env& env) {
  if (!float_in_out(step, env)) return false;
  const Tensor& x = *step.inputs[0];
  const int64_t c = last_dim(x);
  if (x.rank < 3) return env.fail("needs batch, spatial axes and channels");
  if (!is_vector(input_of(step, 1), c) || !is_vector(input_of(step, 2), c))
    return env.fail("scale and bias must have %lld values", static_cast<long long>(c));
  GroupState* s = static_cast<GroupState*>(env.allocate(sizeof(GroupState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  const bool instance = strcmp(step.op, "InstanceNormalization") == 0;
  *s = {x.dims[0], 1, c, instance ? c : attr_int(step, "num_groups", 1),
        attr_float(step, "epsilon", 1e-5), kLanes, 0, c < kLanes ? c * kLanes : c, {}};
  if (!parse_activation(step, env, &s->activation)) return false;
  for (int i = 1; i + 1 < x.rank; ++i) s->pixels *= x.dims[i];
  if (s->groups < 1 || c % s->groups != 0)
    return env.fail("num_groups does not divide the channels");
  while (2 * s->block * c <= kBlockElems) s->block *= 2;
  s->blocks = (s->pixels + s->block - 1) / s->block;
  size_t elems;
  if (!mul_size(static_cast<size_t>(s->images * s->blocks), static_cast<size_t>(2 * c), &elems) ||
      !mul_size(elems, sizeof(float), &step.shared_bytes))
    return env.fail("input too large");
  step.shared_bytes += 64;
  step.scratch_bytes = 2 * c * sizeof(double) + 3 * s->columns * sizeof(float);
  step.phases = 2;
  return true;
}

// Up to kLanes columns of `rows` rows.
template <class Read>
LITE_INLINE void column_statistics(const float* x, int64_t rows, int64_t columns, Read read, F* mean,
                                   F* squares) {
  constexpr int kChains = 4;
  F sums[kChains], parts[kChains];
  LITE_UNROLL for (int i = 0; i < kChains; ++i) sums[i] = parts[i] = splat(0.0f);
  const auto each = [&](auto add) __attribute__((always_inline)) {
    int64_t row = 0;
    for (; row + kChains <= rows; row += kChains)
      LITE_UNROLL for (int i = 0; i < kChains; ++i) add(i, read(x + (row + i) * columns));
    for (; row < rows; ++row) add(0, read(x + row * columns));
  };
  each([&](int i, F v) __attribute__((always_inline)) { sums[i] += v; });
  const F average = (sums[0] + sums[1] + (sums[2] + sums[3])) * splat(1.0f / static_cast<float>(rows));
  each([&](int i, F v) __attribute__((always_inline)) {
    const F d = v - average;
    parts[i] = fma(d, d, parts[i]);
  });
  *mean = average;
  *squares = parts[0] + parts[1] + (parts[2] + parts[3]);
}

void rows_statistics(const float* x, int64_t rows, int64_t columns, float* mean, float* squares) {
  F m, q;
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    column_statistics(x + c, rows, columns,
                      [](const float* p) __attribute__((always_inline)) { return load(p); }, &m, &q);
    store(mean + c, m);
    store(squares + c, q);
  }
  if (c == columns) return;
  const int n = static_cast<int>(columns - c);
  column_statistics(x + c, rows, columns,
                    [n](const float* p) __attribute__((always_inline)) { return load_part(p, n); },
                    &m, &q);
  store_part(mean + c, m, n);
  store_part(squares + c, q, n);
}

// Joins the statistics of parts, in two turns: first every part's mean, then its squares.
struct Joined {
  double count = 0, total = 0, squares = 0;
  void add_mean(double n, double mean) { count += n, total += n * mean; }
  double mean() const { return count > 0 ? total / count : 0; }
  void add_squares(double n, double mean, double squares_of) {
    const double d = mean - this->mean();
    squares += squares_of + n * d * d;
  }
};

// Of a block of pixels: [mean, squares][channel].
void block_statistics(const GroupState& s, const float* x, int64_t pixels, float* scratch,
                      float* out) {
  const int64_t c = s.channels;
  if (s.columns == c) return rows_statistics(x, pixels, c, out, out + c);
  const int64_t rows = pixels / kLanes;
  float *mean = scratch, *squares = scratch + s.columns;
  if (rows) rows_statistics(x, rows, s.columns, mean, squares);
  for (int64_t channel = 0; channel < c; ++channel) {
    Joined all;
    const double n = static_cast<double>(rows);
    for (int64_t i = channel; rows && i < s.columns; i += c) all.add_mean(n, mean[i]);
    for (int64_t i = rows * kLanes; i < pixels; ++i) all.add_mean(1, x[i * c + channel]);
    for (int64_t i = channel; rows && i < s.columns; i += c) all.add_squares(n, mean[i], squares[i]);
    for (int64_t i = rows * kLanes; i < pixels; ++i) all.add_squares(1, x[i * c + channel], 0);
    out[channel] = static_cast<float>(all.mean());
    out[c + channel] = static_cast<float>(all.squares);
  }
}

int64_t pixels_of(const GroupState& s, int64_t block) {
  const int64_t left = s.pixels - block * s.block;
  return left < s.block ? left : s.block;
}

// Of an image's channels, from those of its blocks.
void join_blocks(const GroupState& s, const float* statistics, double* mean, double* squares) {
  const int64_t c = s.channels;
  const auto each = [&](auto add) __attribute__((always_inline)) {
    for (int64_t block = 0; block < s.blocks; ++block) {
      const double n = static_cast<double>(pixels_of(s, block));
      const float* of = statistics + block * 2 * c;
      for (int64_t i = 0; i < c; ++i) add(i, n, of[i], of[c + i]);
    }
  };
  for (int64_t i = 0; i < c; ++i) mean[i] = squares[i] = 0;
  each([&](int64_t i, double n, double m, double) __attribute__((always_inline)) { mean[i] += n * m; });
  for (int64_t i = 0; i < c; ++i) mean[i] /= static_cast<double>(s.pixels);
  each([&](int64_t i, double n, double m, double q) __attribute__((always_inline)) {
    const double d = m - mean[i];
    squares[i] += q + n * d * d;
  });
}

// What an image's channels are multiplied with: [mean, factor, bias][column]. The doubles are scratch.
void find_factors(const GroupState& s, const float* statistics, const float* scale, const float* bias, float* out,
                  double* doubles) {
  const int64_t c = s.channels, width = c / s.groups;
  const double pixels = static_cast<double>(s.pixels), *means = doubles, *squares = doubles + c;
  join_blocks(s, statistics, doubles, doubles + c);
  float *mean = out, *factor = out + s.columns, *shift = factor + s.columns;
  for (int64_t first = 0; first < c; first += width) {
    Joined all;
    for (int64_t i = first; i < first + width; ++i) all.add_mean(pixels, means[i]);
    for (int64_t i = first; i < first + width; ++i) all.add_squares(pixels, means[i], squares[i]);
    const double deviation = ::sqrt(all.squares / all.count + s.epsilon);
    for (int64_t i = first; i < first + width; ++i)
      for (int64_t column = i; column < s.columns; column += c) {
        mean[column] = static_cast<float>(all.mean());
        factor[column] = static_cast<float>(scale[i] / deviation);
        shift[column] = bias[i];
      }
  }
}

// The mean is subtracted first: in one shift with the bias, its rounding would remain where it is larger
// than the deviations.
void normalise_row(const float* x, const float* mean, const float* factor, const float* bias,
                   float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, fma(load(x + i) - load(mean + i), load(factor + i), load(bias + i)));
  const int rest = static_cast<int>(n - i);
  if (rest == 0) return;
  const F d = load_part(x + i, rest) - load_part(mean + i, rest);
  store_part(y + i, fma(d, load_part(factor + i, rest), load_part(bias + i, rest)), rest);
}

void run_group(const Step& step, int phase, int thread, int threads, void* scratch) {
  const GroupState& s = *static_cast<const GroupState*>(step.state);
  double* doubles = static_cast<double*>(scratch);
  float *statistics = static_cast<float*>(step.shared), *own = reinterpret_cast<float*>(doubles + 2 * s.channels);
  const float *x = step.inputs[0]->as<float>(), *scale = step.inputs[1]->as<float>();
  float* y = step.outputs[0]->as<float>();
  int64_t begin, end, joined = -1;
  share(s.images * s.blocks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / s.blocks, block = unit % s.blocks;
    const int64_t at = (image * s.pixels + block * s.block) * s.channels;
    const int64_t pixels = pixels_of(s, block);
    if (phase == 0) {
      block_statistics(s, x + at, pixels, own, statistics + unit * 2 * s.channels);
      continue;
    }
    if (image != joined)
      find_factors(s, statistics + image * s.blocks * 2 * s.channels, scale,
                   step.inputs[2]->as<float>(), own, doubles);
    joined = image;
    const int64_t elems = pixels * s.channels;
    for (int64_t i = 0; i < elems; i += s.columns)
      normalise_row(x + at + i, own, own + s.columns, own + 2 * s.columns, y + at + i,
                    elems - i < s.columns ? elems - i : s.columns);
    if (s.activation.act != Act::kNone) activate(y + at, elems, s.activation);
  }
}

const Kernel kGroupNorm[] = {
    {"InstanceNormalization", "f32_instance_norm", prepare_group, run_group, kInPlace},
    {"GroupNormalization", "f32_group_norm", prepare_group, run_group, kInPlace},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(group_norm, kGroupNorm)
