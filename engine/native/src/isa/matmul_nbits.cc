// MatMulNBits: y[M,N] = activation(a[M,K] W[N,K]^T + bias), W of 4 bits with a scale and a zero
// point for each group of neighbouring k.
//
// W is repacked once, at the same size, in panels of kTileColumns columns: one byte holds the
// numbers of column l (low) and column kLanes + l (high) for one k. A few rows multiply the small
// integers and scale the sums of each group. More rows pay for widening a panel to floats in the
// thread's scratch, which the tile of every other matrix product then reads.
#include <math.h>

#include "activation.h"
#include "int8_lanes.h"
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

// Rows that are multiplied without widening a panel.
constexpr int kFewRows = 4;

struct MatMulNBits {
  int64_t m, k, n, lda, ldc, group, groups, panels;
  const uint8_t* weights;  // [panel][k][kLanes]
  const float* scales;     // [panel][group][kTileColumns]
  const float* offsets;    // the same: -zero_point * scale
  const float* bias;       // [panel][kTileColumns]
  Activation activation;
  float lo, hi;
  ThreadGrid grid;
};

struct Widened {
  F low, high;
};
LITE_INLINE Widened widen_pair(const uint8_t* p) {
  const I both = widen<false>(p);
  return {to_float(both & 15), to_float(both >> 4)};
}

bool check(Step& step, Env& env, MatMulNBits* s) {
  const Tensor* a = input_of(step, 0);
  const Tensor* b = input_of(step, 1);
  const Tensor* scales = input_of(step, 2);
  const Tensor* zeros = input_of(step, 3);
  const Tensor* bias = input_of(step, 5);
  const Tensor* y = output_of(step, 0);
  if (!a || !b || !scales || !y) return env.fail("needs inputs a, b and scales and an output");
  if (input_of(step, 4)) return env.fail("takes no g_idx");
  if (a->dtype != DType::kF32 || y->dtype != DType::kF32 || scales->dtype != DType::kF32 ||
      b->dtype != DType::kU8 || (zeros && zeros->dtype != DType::kU8) ||
      (bias && bias->dtype != DType::kF32))
    return env.fail("takes f32 with weights and zero points of u8");
  if (!is_weight(*b) || !is_weight(*scales) || (zeros && !is_weight(*zeros)) ||
      (bias && !is_weight(*bias)))
    return env.fail("weights, scales, zero points and bias must be constants");
  if (!is_dense(*b) || !is_dense(*scales) || (zeros && !is_dense(*zeros)) ||
      (bias && !is_dense(*bias)))
    return env.fail("weights must be dense");
  if (attr_int(step, "bits", 4) != 4) return env.fail("takes weights of 4 bits");
  if (a->rank < 1 || a->rank != y->rank) return env.fail("a and y must have one rank");
  s->k = last_dim(*a);
  s->n = last_dim(*y);
  s->m = row_count(*a);
  s->group = attr_int(step, "block_size", 0);
  if (s->k < 1 || s->n < 1 || attr_int(step, "K", 0) != s->k || attr_int(step, "N", 0) != s->n)
    return env.fail("K and N are not the sizes of a and y");
  for (int i = 0; i + 1 < a->rank; ++i)
    if (a->dims[i] != y->dims[i]) return env.fail("axis %d of a and y differ", i);
  if (s->group < 2 || s->group % 2 || s->group > (1 << 20))
    return env.fail("block_size must be even");
  s->groups = (s->k + s->group - 1) / s->group;
  if (b->size / s->groups / (s->group / 2) != s->n || b->size % (s->groups * (s->group / 2)))
    return env.fail("weights have the wrong size");
  if (scales->size / s->groups != s->n || scales->size % s->groups)
    return env.fail("scales have the wrong size");
  const int64_t zero_bytes = (s->groups + 1) / 2;
  if (zeros && (zeros->size / zero_bytes != s->n || zeros->size % zero_bytes))
    return env.fail("zero points have the wrong size");
  if (bias && bias->size != s->n) return env.fail("bias has the wrong size");
  s->lda = a->pitch;
  s->ldc = y->pitch;
  return true;
}

bool pack(const Step& step, Env& env, MatMulNBits* s) {
  s->panels = panel_count(s->n);
  size_t bytes, floats, biases;
  if (!mul_size(static_cast<size_t>(s->panels) * kLanes, static_cast<size_t>(s->k), &bytes) ||
      !mul_size(static_cast<size_t>(s->panels) * kTileColumns * sizeof(float),
                static_cast<size_t>(s->groups), &floats) ||
      !mul_size(static_cast<size_t>(s->panels), kTileColumns * sizeof(float), &biases))
    return env.fail("weights too large");
  const Tensor& b = *step.inputs[1];
  const Recipe recipe{LITE_ISA_NAME " nibbles", b.data, b.bytes, {s->n, s->k, s->group}};
  bool made;
  uint8_t* weights = static_cast<uint8_t*>(env.allocate_packed(recipe, bytes, &made));
  float* scales = static_cast<float*>(env.allocate(floats));
  float* offsets = static_cast<float*>(env.allocate(floats));
  float* bias = static_cast<float*>(env.allocate(biases));
  if (!weights || !scales || !offsets || !bias) return env.out_of_memory();
  const uint8_t* from = b.as<uint8_t>();
  const float* from_scales = step.inputs[2]->as<float>();
  const Tensor* zeros = input_of(step, 3);
  const Tensor* from_bias = input_of(step, 5);
  const int64_t row_bytes = s->groups * (s->group / 2), zero_bytes = (s->groups + 1) / 2;
  for (int64_t n = 0; n < s->n; ++n) {
    const int64_t panel = n / kTileColumns, column = n % kTileColumns;
    const int shift = column < kLanes ? 0 : 4;
    uint8_t* to = weights + panel * s->k * kLanes + column % kLanes;
    const uint8_t* row = from + n * row_bytes;
    for (int64_t k = 0; k < s->k && !made; ++k)
      to[k * kLanes] |= static_cast<uint8_t>(((row[k / 2] >> (k % 2 * 4)) & 15) << shift);
    for (int64_t g = 0; g < s->groups; ++g) {
      const int zero =
          zeros ? (zeros->as<uint8_t>()[n * zero_bytes + g / 2] >> (g % 2 * 4)) & 15 : 8;
      const int64_t at = (panel * s->groups + g) * kTileColumns + column;
      scales[at] = from_scales[n * s->groups + g];
      offsets[at] = -static_cast<float>(zero) * scales[at];
    }
    if (from_bias) bias[n] = from_bias->as<float>()[n];
  }
  s->weights = weights;
  s->scales = scales;
  s->offsets = offsets;
  s->bias = bias;
  return true;
}

bool prepare(Step& step, Env& env) {
  MatMulNBits* s = static_cast<MatMulNBits*>(env.allocate(sizeof(MatMulNBits)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!check(step, env, s) || !parse_activation(step, env, &s->activation) || !pack(step, env, s))
    return false;
  const bool clip = s->activation.act == Act::kClip;
  s->lo = clip ? s->activation.a : -INFINITY;
  s->hi = clip ? s->activation.b : INFINITY;
  const bool few = s->m <= kFewRows;
  if (!few && !mul_size(static_cast<size_t>(s->k), kTileColumns * sizeof(float),
                        &step.scratch_bytes))
    return env.fail("inner dim too large");
  // Widening a panel costs about as much as the products of three rows.
  const double panel = 3.0 * kTileRows * static_cast<double>(s->k);
  s->grid = few ? ThreadGrid{1, env.threads}
                : choose_grid(env.threads, split_rows(s->m).tiles, s->panels,
                              static_cast<double>(kTileRows * s->k) + 60, 0,
                              panel * static_cast<double>(s->panels));
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name,
              few ? static_cast<int>(s->m) : kTileRows, kTileColumns);
  return true;
}

// Rows [0, kRows) of a times one panel; sums of a group are of integers times a, scaled at its end.
template <int kRows>
LITE_INLINE void few_rows(const MatMulNBits& s, const float* a, int64_t panel, float* y) {
  const uint8_t* w = s.weights + panel * s.k * kLanes;
  const float* scale = s.scales + panel * s.groups * kTileColumns;
  const float* offset = s.offsets + panel * s.groups * kTileColumns;
  const F bias[2] = {load(s.bias + panel * kTileColumns),
                     load(s.bias + panel * kTileColumns + kLanes)};
  F total[kRows][2];
  LITE_UNROLL for (int m = 0; m < kRows; ++m) total[m][0] = bias[0], total[m][1] = bias[1];
  for (int64_t begin = 0; begin < s.k; begin += s.group) {
    const int64_t end = begin + s.group < s.k ? begin + s.group : s.k;
    F sums[kRows][2] = {};
    float inputs[kRows] = {};
    for (int64_t k = begin; k < end; ++k) {
      const Widened q = widen_pair(w + k * kLanes);
      LITE_UNROLL for (int m = 0; m < kRows; ++m) {
        const float x = a[m * s.lda + k];
        sums[m][0] = fma(splat(x), q.low, sums[m][0]);
        sums[m][1] = fma(splat(x), q.high, sums[m][1]);
        inputs[m] += x;
      }
    }
    LITE_UNROLL for (int v = 0; v < 2; ++v) {
      const F by = load(scale + v * kLanes), shift = load(offset + v * kLanes);
      LITE_UNROLL for (int m = 0; m < kRows; ++m)
          total[m][v] = fma(sums[m][v], by, fma(splat(inputs[m]), shift, total[m][v]));
    }
    scale += kTileColumns;
    offset += kTileColumns;
  }
  const int64_t n0 = panel * kTileColumns;
  const int64_t columns = s.n - n0 < kTileColumns ? s.n - n0 : kTileColumns;
  LITE_UNROLL for (int m = 0; m < kRows; ++m) {
    float* out = y + m * s.ldc + n0;
    const int first = static_cast<int>(columns < kLanes ? columns : kLanes);
    const int second = static_cast<int>(columns - first);
    store_part(out, total[m][0], first);
    if (second > 0) store_part(out + kLanes, total[m][1], second);
    if (s.activation.act != Act::kNone) activate(out, columns, s.activation);
  }
}

void widen_panel(const MatMulNBits& s, int64_t panel, float* out) {
  const uint8_t* w = s.weights + panel * s.k * kLanes;
  const float* scale = s.scales + panel * s.groups * kTileColumns;
  const float* offset = s.offsets + panel * s.groups * kTileColumns;
  for (int64_t begin = 0; begin < s.k; begin += s.group) {
    const int64_t end = begin + s.group < s.k ? begin + s.group : s.k;
    const F by[2] = {load(scale), load(scale + kLanes)};
    const F shift[2] = {load(offset), load(offset + kLanes)};
    for (int64_t k = begin; k < end; ++k) {
      const Widened q = widen_pair(w + k * kLanes);
      store(out + k * kTileColumns, fma(q.low, by[0], shift[0]));
      store(out + k * kTileColumns + kLanes, fma(q.high, by[1], shift[1]));
    }
    scale += kTileColumns;
    offset += kTileColumns;
  }
}

void run_few(const MatMulNBits& s, const float* a, float* y, int thread) {
  const GridPart part = part_of(s.grid, 1, 1, s.panels, thread);
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    switch (s.m) {
      case 1: few_rows<1>(s, a, panel, y); break;
      case 2: few_rows<2>(s, a, panel, y); break;
      case 3: few_rows<3>(s, a, panel, y); break;
      case 4: few_rows<4>(s, a, panel, y); break;
    }
  }
}

void run_many(const MatMulNBits& s, const float* a, float* y, int thread, float* scratch) {
  const GridPart part = part_of(s.grid, s.m, kTileRows, s.panels, thread);
  if (part.begin >= part.end) return;
  const TileSplit split = split_rows(part.end - part.begin);
  const bool apply = s.activation.act != Act::kNone && s.activation.act != Act::kClip;
  Tile t{};
  t.lda = s.lda;
  t.taps_y = t.taps_x = 1;
  t.k = s.k;
  t.w = scratch;
  t.ldw = kTileColumns;
  t.ldc = s.ldc;
  t.lo = s.lo;
  t.hi = s.hi;
  for (int64_t panel = part.panel_begin; panel < part.panel_end; ++panel) {
    widen_panel(s, panel, scratch);
    const int64_t n0 = panel * kTileColumns;
    t.columns = static_cast<int32_t>(s.n - n0 < kTileColumns ? s.n - n0 : kTileColumns);
    t.bias = s.bias + n0;
    for_each_height(split, [&](int64_t row, int height, int tiles) {
      t.a = a + (part.begin + row) * s.lda;
      t.c = y + (part.begin + row) * s.ldc + n0;
      t.count = tiles;
      kTile[tile_vectors(t.columns) - 1][height - 1](t);
      if (apply) activate_rows(t.c, tiles * height, t.ldc, t.columns, s.activation);
    });
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const MatMulNBits& s = *static_cast<const MatMulNBits*>(step.state);
  const float* a = step.inputs[0]->as<float>();
  float* y = step.outputs[0]->as<float>();
  if (s.m <= kFewRows) run_few(s, a, y, thread);
  else run_many(s, a, y, thread, static_cast<float*>(scratch));
}

const Kernel kMatMulNBits[] = {
    {"MatMulNBits", "f32_matmul_nbits", prepare, run, kAcceptsPitch | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(matmul_nbits, kMatMulNBits)
