// MatMul: batches of y[M,N] = activation(a[M,K] b[K,N]), either side constant or computed.
//
// A constant matrix b is packed once and all rows of a, whatever their batch, are one tall GEMM.
// Otherwise each thread copies one panel of b at a time into its scratch: cheap as soon as several
// tiles of rows use it, and the copy ends the panel where the matrix ends.
#include <math.h>

#include "activation.h"
#include "tap_gemm.h"

namespace lite::LITE_ISA {
namespace {

struct MatMul {
  bool packed;
  TapGemm gemm;                            // when packed
  int64_t m, k, n, batches, panels;
  int64_t lda, ldb, ldc;
  int32_t batch_rank;
  int64_t dims[kMaxRank], a_step[kMaxRank], b_step[kMaxRank], y_step[kMaxRank];
  int64_t block_rows;
  Activation activation;
  float lo, hi;
  ThreadGrid grid;
};

// Dims and strides of an operand as [batch..., rows, columns]; a vector gets a row or column of 1.
struct Operand {
  int64_t dims[kMaxRank + 1], strides[kMaxRank + 1];
  int rank;
};

Operand operand_of(const Tensor& t, bool row_vector) {
  Operand o{};
  strides_of(t, o.strides);
  o.rank = t.rank;
  for (int i = 0; i < t.rank; ++i) o.dims[i] = t.dims[i];
  if (t.rank == 1) {
    o.rank = 2;
    if (row_vector) {
      o.dims[1] = o.dims[0];
      o.strides[1] = o.strides[0];
      o.dims[0] = 1;
      o.strides[0] = o.dims[1];
    } else {
      o.dims[1] = 1;
      o.strides[1] = 1;
    }
  }
  return o;
}

bool all_rows_evenly_spaced(const Operand& o) {
  for (int i = 0; i + 2 < o.rank; ++i)
    if (o.dims[i] > 1 && o.strides[i] != o.strides[i + 1] * o.dims[i + 1]) return false;
  return true;
}

bool read_operands(Step& step, Env& env, MatMul* s, Operand* a, Operand* b, Operand* y) {
  const Tensor* ta = input_of(step, 0);
  const Tensor* tb = input_of(step, 1);
  const Tensor* ty = output_of(step, 0);
  if (!ta || !tb || !ty) return env.fail("needs inputs a and b and an output");
  if (ta->dtype != DType::kF32 || tb->dtype != DType::kF32 || ty->dtype != DType::kF32)
    return env.fail("takes f32 only");
  if (ta->rank < 1 || tb->rank < 1) return env.fail("takes matrices, got a scalar");
  *a = operand_of(*ta, true);
  *b = operand_of(*tb, false);
  s->m = a->dims[a->rank - 2];
  s->k = a->dims[a->rank - 1];
  s->n = b->dims[b->rank - 1];
  if (b->dims[b->rank - 2] != s->k) return env.fail("inner dims of a and b differ");
  s->batch_rank = (a->rank > b->rank ? a->rank : b->rank) - 2;
  // The output's dims without the ones that vectors do not have.
  int64_t expected[kMaxRank + 1];
  int rank = 0;
  s->batches = 1;
  for (int i = 0; i < s->batch_rank; ++i) {
    const int ia = i - (s->batch_rank - (a->rank - 2)), ib = i - (s->batch_rank - (b->rank - 2));
    const int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
    if (da != db && da != 1 && db != 1) return env.fail("batch dims of a and b do not broadcast");
    s->dims[i] = expected[rank++] = da == 1 ? db : da;
    s->a_step[i] = ia >= 0 && da > 1 ? a->strides[ia] : 0;
    s->b_step[i] = ib >= 0 && db > 1 ? b->strides[ib] : 0;
    s->batches *= s->dims[i];
  }
  if (ta->rank > 1) expected[rank++] = s->m;
  if (tb->rank > 1) expected[rank++] = s->n;
  if (ty->rank != rank) return env.fail("output has rank %d, expected %d", ty->rank, rank);
  for (int i = 0; i < rank; ++i)
    if (ty->dims[i] != expected[i]) return env.fail("output axis %d has the wrong size", i);
  *y = Operand{};
  int64_t strides[kMaxRank];
  strides_of(*ty, strides);
  y->rank = s->batch_rank + 2;
  for (int i = 0; i < s->batch_rank; ++i) {
    y->dims[i] = s->dims[i];
    y->strides[i] = s->y_step[i] = strides[i];
  }
  y->dims[y->rank - 2] = s->m;
  y->dims[y->rank - 1] = s->n;
  y->strides[y->rank - 1] = 1;
  // With a vector operand one of the two last axes is missing, and of size 1.
  y->strides[y->rank - 2] = ta->rank == 1 ? s->n : strides[s->batch_rank];
  s->lda = a->strides[a->rank - 2];
  s->ldb = b->strides[b->rank - 2];
  s->ldc = y->strides[y->rank - 2];
  return true;
}

bool prepare(Step& step, Env& env) {
  MatMul* s = static_cast<MatMul*>(env.allocate(sizeof(MatMul)));
  if (!s) return env.out_of_memory();
  step.state = s;
  Operand a{}, b{}, y{};
  if (!read_operands(step, env, s, &a, &b, &y)) return false;
  if (!parse_activation(step, env, &s->activation)) return false;
  const bool clip = s->activation.act == Act::kClip;
  s->lo = clip ? s->activation.a : -INFINITY;
  s->hi = clip ? s->activation.b : INFINITY;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);

  int64_t b_matrices = 1;
  for (int i = 0; i + 2 < b.rank; ++i) b_matrices *= b.dims[i];
  s->packed = is_weight(*step.inputs[1]) && b_matrices == 1 && all_rows_evenly_spaced(a) &&
              all_rows_evenly_spaced(y);
  if (s->packed) {
    const int64_t rows = s->batches * s->m;
    ConvShape c{};
    c.in = {1, 1, rows, s->k, rows * s->lda, rows * s->lda, s->lda, 0, {0, 0, 0, 0}};
    c.out = {1, 1, rows, s->n, rows * s->ldc, rows * s->ldc, s->ldc, 0, {0, 0, 0, 0}};
    c.groups = 1;
    c.group_in = s->k;
    c.group_out = s->n;
    for (int i = 0; i < 2; ++i) c.kernel[i] = c.stride[i] = c.dilation[i] = 1;
    c.activation = s->activation;
    const WeightView w{step.inputs[1]->as<float>(), 0, 1, s->ldb, 0, 0, 1.0f};
    if (!prepare_tap_gemm(c, w, nullptr, 1.0f, env, &s->gemm)) return false;
    step.scratch_bytes = s->gemm.scratch_bytes;
    set_variant(step, "%s__" LITE_ISA_NAME "%s_%dx%d", step.kernel->name, way_of(s->gemm),
                tile_height(s->gemm), kTileColumns);
    return true;
  }
  s->panels = panel_count(s->n);
  size_t panel_bytes;
  if (!mul_size(static_cast<size_t>(s->k) + 1, 4 * kTileColumns, &panel_bytes))
    return env.fail("inner dim too large");
  step.scratch_bytes = panel_bytes;
  const double rows = 0.4 * static_cast<double>(env.l2_bytes) / (4.0 * (s->k + kTileColumns));
  s->block_rows = rows < kTileRows ? kTileRows : static_cast<int64_t>(rows);
  s->grid = choose_grid(env.threads, split_rows(s->m).tiles, s->batches * s->panels,
                        static_cast<double>(kTileRows * s->k) + 60, 0,
                        static_cast<double>(s->batches * s->k * s->n));
  return true;
}

const float* copy_panel(const MatMul& s, const float* b, int64_t columns, float* out) {
  const int width = tile_vectors(columns) * kLanes;
  for (int64_t k = 0; k < s.k; ++k, b += s.ldb, out += width) {
    int64_t n = 0;
    for (; n + kLanes <= columns; n += kLanes) store(out + n, load(b + n));
    if (n < columns) store(out + n, load_part(b + n, static_cast<int>(columns - n)));
  }
  return out - s.k * width;
}

void run_dynamic(const MatMul& s, const float* a, const float* b, float* y, int thread,
                 float* scratch) {
  const auto [row_begin, row_end, begin, end] =
      part_of(s.grid, s.m, kTileRows, s.batches * s.panels, thread);
  const bool apply = s.activation.act != Act::kNone && s.activation.act != Act::kClip;
  const float zero_bias[kTileColumns] = {};
  Tile t{};
  t.lda = s.lda;
  t.taps_y = t.taps_x = 1;
  t.k = s.k;
  t.bias = zero_bias;
  t.ldc = s.ldc;
  t.lo = s.lo;
  t.hi = s.hi;
  for (int64_t block = row_begin; block < row_end; block += s.block_rows) {
    const int64_t rows = row_end - block < s.block_rows ? row_end - block : s.block_rows;
    const TileSplit split = split_rows(rows);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t batch = unit / s.panels, n0 = (unit - batch * s.panels) * kTileColumns;
      const float* ai = a + block * s.lda;
      const float* bi = b + n0;
      float* yi = y + block * s.ldc + n0;
      int64_t rest = batch;
      for (int i = s.batch_rank - 1; i >= 0; --i) {
        const int64_t index = rest % s.dims[i];
        rest /= s.dims[i];
        ai += index * s.a_step[i];
        bi += index * s.b_step[i];
        yi += index * s.y_step[i];
      }
      const int64_t columns = s.n - n0 < kTileColumns ? s.n - n0 : kTileColumns;
      const bool in_place = columns == kTileColumns && split.tiles == 1;
      t.columns = static_cast<int32_t>(columns);
      t.ldw = in_place ? s.ldb : tile_vectors(columns) * kLanes;
      t.w = in_place ? bi : copy_panel(s, bi, columns, scratch);
      for_each_height(split, [&](int64_t m0, int height, int tiles) {
        t.a = ai + m0 * s.lda;
        t.c = yi + m0 * s.ldc;
        t.count = tiles;
        multiply_tile(kTile[tile_vectors(columns) - 1][height - 1], t);
        if (apply) activate_rows(t.c, tiles * height, t.ldc, columns, s.activation);
      });
    }
  }
}

void run(const Step& step, int, int thread, int, void* scratch) {
  const MatMul& s = *static_cast<const MatMul*>(step.state);
  const float* a = step.inputs[0]->as<float>();
  float* y = step.outputs[0]->as<float>();
  if (s.packed) run_tap_gemm(s.gemm, a, y, nullptr, thread, scratch);
  else run_dynamic(s, a, step.inputs[1]->as<float>(), y, thread, static_cast<float*>(scratch));
}

const Kernel kMatMul[] = {
    {"MatMul", "f32_matmul", prepare, run, kAcceptsPitch | kDivisible},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(matmul, kMatMul)
