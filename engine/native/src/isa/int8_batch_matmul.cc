// QLinearBatchMatMul, batches of products of two computed matrices: i8_batch_matmul of bytes, whose sums are
// int32, and i16_batch_matmul, whose sums are int64. LiteRT's fixed point (ops/fixed_point.h) brings them to
// the scale of the result.
#include "ops/fixed_point.h"
#include "ops/quant_scalars.h"

namespace lite::LITE_ISA {

namespace {

constexpr int kRows = 4, kColumns = 64;  // sums of a block stay in registers or the first cache

struct State {
  int64_t m, n, k, batches, row_blocks;
  int batch_rank;
  int64_t dims[kMaxRank], a_step[kMaxRank], b_step[kMaxRank];
  int32_t a_zero, b_zero, y_zero, low, high;
  Fraction ratio;
};

bool prepare(Step& step, Env& env) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 3), *y = output_of(step, 0);
  if (!a || !b || !y || a->dtype != y->dtype || b->dtype != y->dtype ||
      (y->dtype != DType::kI8 && y->dtype != DType::kU8 && y->dtype != DType::kI16))
    return env.fail("needs two inputs and an output of one type, i8, u8 or i16");
  if (a->rank < 2 || b->rank < 2) return env.fail("takes matrices");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->m = a->dims[a->rank - 2], s->k = a->dims[a->rank - 1], s->n = b->dims[b->rank - 1];
  if (b->dims[b->rank - 2] != s->k) return env.fail("inner dims of a and b differ");
  const bool is_wide = y->dtype == DType::kI16;
  if (s->k > (is_wide ? 1 << 17 : INT32_MAX / (255 * 255))) return env.fail("sums of %lld products do not fit",
                                                      static_cast<long long>(s->k));
  const int rank = a->rank > b->rank ? a->rank : b->rank;
  s->batch_rank = rank - 2;
  if (y->rank != rank || y->dims[rank - 2] != s->m || y->dims[rank - 1] != s->n)
    return env.fail("the output has another shape");
  s->batches = 1;
  int64_t a_size = s->m * s->k, b_size = s->k * s->n;
  for (int i = s->batch_rank - 1; i >= 0; --i) {
    const int ia = i - (rank - a->rank), ib = i - (rank - b->rank);
    const int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
    if (y->dims[i] != (da == 1 ? db : da) || (da != db && da != 1 && db != 1))
      return env.fail("batch dims of a and b do not broadcast");
    s->dims[i] = y->dims[i];
    s->a_step[i] = da > 1 ? a_size : 0;
    s->b_step[i] = db > 1 ? b_size : 0;
    a_size *= da, b_size *= db;
    s->batches *= y->dims[i];
  }
  s->row_blocks = (s->m + kRows - 1) / kRows;
  QuantScalars qa, qb, qy;
  if (!read_scalars(step, env, 1, y->dtype, &qa) || !read_scalars(step, env, 4, y->dtype, &qb) ||
      !read_scalars(step, env, 6, y->dtype, &qy))
    return false;
  s->a_zero = qa.zero, s->b_zero = qb.zero, s->y_zero = qy.zero;
  if (is_wide && (qa.zero || qb.zero || qy.zero)) return env.fail("zero points of i16 must be 0");
  s->low = is_wide ? INT16_MIN : y->dtype == DType::kI8 ? -128 : 0;
  s->high = is_wide ? INT16_MAX : s->low + 255;
  const float product = qa.scale * qb.scale;
  s->ratio = fraction_of(static_cast<double>(product) / qy.scale);
  return true;
}

int64_t rescaled(int32_t sum, Fraction f) { return rescale(sum, f); }
int64_t rescaled(int64_t sum, Fraction f) { return rescale_wide(sum, f); }

template <class Byte, class Sum>
void block(const State& s, const Byte* a, const Byte* b, Byte* y, int rows, int columns) {
  Sum sums[kRows][kColumns] = {};
  for (int64_t k = 0; k < s.k; ++k) {
    Sum line[kColumns];
    for (int j = 0; j < columns; ++j) line[j] = b[k * s.n + j] - s.b_zero;
    for (int r = 0; r < rows; ++r) {
      const Sum x = a[r * s.k + k] - s.a_zero;
      for (int j = 0; j < columns; ++j) sums[r][j] += x * line[j];
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < columns; ++j) {
      const int64_t v = rescaled(sums[r][j], s.ratio) + s.y_zero;
      y[r * s.n + j] = static_cast<Byte>(v < s.low ? s.low : v > s.high ? s.high : v);
    }
}

template <class Byte, class Sum>
void run_blocks(const State& s, const Step& step, int thread, int threads) {
  int64_t begin, end;
  share(s.batches * s.row_blocks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / s.row_blocks, row = unit % s.row_blocks * kRows;
    const Byte *a = step.inputs[0]->as<Byte>(), *b = step.inputs[3]->as<Byte>();
    int64_t rest = batch;
    for (int i = s.batch_rank - 1; i >= 0; --i) {
      a += rest % s.dims[i] * s.a_step[i];
      b += rest % s.dims[i] * s.b_step[i];
      rest /= s.dims[i];
    }
    Byte* y = step.outputs[0]->as<Byte>() + (batch * s.m + row) * s.n;
    const int rows = static_cast<int>(s.m - row < kRows ? s.m - row : kRows);
    for (int64_t j = 0; j < s.n; j += kColumns)
      block<Byte, Sum>(s, a + row * s.k, b + j, y + j, rows,
            static_cast<int>(s.n - j < kColumns ? s.n - j : kColumns));
  }
}

void run(const Step& step, int, int thread, int threads, void*) {
  const State& s = *static_cast<const State*>(step.state);
  const DType type = step.outputs[0]->dtype;
  if (type == DType::kI8) run_blocks<int8_t, int32_t>(s, step, thread, threads);
  else if (type == DType::kU8) run_blocks<uint8_t, int32_t>(s, step, thread, threads);
  else run_blocks<int16_t, int64_t>(s, step, thread, threads);
}

const Kernel kMatMul[] = {{"QLinearBatchMatMul", "i8_batch_matmul", prepare, run, 0},
                          {"QLinearBatchMatMul", "i16_batch_matmul", prepare, run, 0}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_batch_matmul, kMatMul)
