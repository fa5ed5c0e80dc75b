// Kernels that answer each byte from a table of 256: any function of one number, and QLinearConcat,
// which brings each input to the scale of the output.
//
//   y = clamp(round_half_even(f((x - x_zero_point) * x_scale) / y_scale) + y_zero_point)
//
// Entry 0 answers the lowest number of x's type. Functions are evaluated in double.
#include <math.h>

#include "broadcast.h"
#include "byte_table.h"
#include "quant_scalars.h"

namespace lite {

namespace {

bool is_byte(const Tensor* t) {
  return t && (t->dtype == DType::kI8 || t->dtype == DType::kU8);
}

// Answers by the byte as it is stored.
struct Table {
  uint8_t answer[256];
};

int32_t number_of(int byte, DType type) {
  return type == DType::kI8 ? static_cast<int8_t>(byte) : byte;
}

// ---- QLookup, QLinearSigmoid, QLinearLeakyRelu

struct TableState {
  Broadcast plan;
  Table table;
};

bool read_table(const Step& step, Env& env, const Tensor& x, const Tensor& y, Table* table) {
  int count;
  const int64_t* entries = attr_ints(step, "table", &count);
  if (count != 256) return env.fail("the table must have 256 entries");
  const int64_t low = y.dtype == DType::kI8 ? -128 : 0;
  for (int i = 0; i < 256; ++i) {
    if (entries[i] < low || entries[i] > low + 255)
      return env.fail("entry %d of the table is outside the output's type", i);
    table->answer[i ^ (x.dtype == DType::kI8 ? 0x80 : 0)] = static_cast<uint8_t>(entries[i]);
  }
  return true;
}

bool make_table(const Step& step, Env& env, DType type, Table* table) {
  QuantScalars x, y;
  if (!read_scalars(step, env, 1, type, &x) || !read_scalars(step, env, 3, type, &y)) return false;
  const bool sigmoid = strcmp(step.op, "QLinearSigmoid") == 0;
  const double alpha = static_cast<float>(attr_float(step, "alpha", 0.01));
  for (int i = 0; i < 256; ++i) {
    const double v = (number_of(i, type) - x.zero) * static_cast<double>(x.scale);
    const double f = sigmoid ? 1.0 / (1.0 + exp(-v)) : v < 0 ? alpha * v : v;
    table->answer[i] = static_cast<uint8_t>(quantise_exactly(f, y, type));
  }
  return true;
}

bool prepare_table(Step& step, Env& env) {
  const Tensor *x = input_of(step, 0), *y = output_of(step, 0);
  const bool lookup = strcmp(step.op, "QLookup") == 0;
  if (!is_byte(x) || !is_byte(y) || (!lookup && x->dtype != y->dtype))
    return env.fail("needs an 8-bit input and output");
  TableState* s = static_cast<TableState*>(env.allocate(sizeof(TableState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  return plan_broadcast(env, *y, &x, 1, &s->plan) &&
         (lookup ? read_table(step, env, *x, *y, &s->table)
                 : make_table(step, env, x->dtype, &s->table));
}

void run_table(const Step& step, int, int thread, int threads, void*) {
  const TableState& s = *static_cast<const TableState*>(step.state);
  const uint8_t* answer = s.table.answer;
  const int last = s.plan.rank - 1;
  const int64_t stride = s.plan.stride[1][last];
  const int64_t ldx = last ? s.plan.stride[1][last - 1] : 0;
  const int64_t ldy = last ? s.plan.stride[0][last - 1] : 0;
  BroadcastWalk walk;
  int64_t rows;
  for (start_walk(s.plan, thread, threads, &walk); next_rows(&walk, &rows);) {
    const uint8_t* x = step.inputs[0]->data + walk.at[1];
    uint8_t* y = step.outputs[0]->data + walk.at[0];
    if (stride == 1) map_rows(answer, x, ldx, y, ldy, walk.length, rows);
    else
      for (int64_t row = 0; row < rows; ++row) memset(y + row * ldy, answer[x[row * ldx]], walk.length);
  }
}

// ---- QLinearConcat: y_scale, y_zero_point, then x, its scale and zero point for every input

struct Piece {
  int64_t row, at;  // elements of one outer index, and where they start in the output's
  Table table;
};
struct ConcatState {
  int64_t outer, row;
  int32_t count;
  Piece* pieces;
};

bool prepare_concat(Step& step, Env& env) {
  const Tensor* y = output_of(step, 0);
  QuantScalars to, from;
  if (!is_byte(y) || step.num_inputs < 5 || step.num_inputs % 3 != 2)
    return env.fail("needs a scale, a zero point, and three inputs per part");
  if (!read_scalars(step, env, 0, y->dtype, &to)) return false;
  ConcatState* s = static_cast<ConcatState*>(env.allocate(sizeof(ConcatState)));
  if (!s) return env.out_of_memory();
  step.state = s;
  s->count = (step.num_inputs - 2) / 3;
  s->pieces = static_cast<Piece*>(env.allocate(static_cast<size_t>(s->count) * sizeof(Piece)));
  if (!s->pieces) return env.out_of_memory();
  int64_t axis = attr_int(step, "axis", 0);
  if (axis < 0) axis += y->rank;
  if (axis < 0 || axis >= y->rank) return env.fail("axis is outside rank %d", y->rank);
  s->outer = s->row = 1;
  for (int i = 0; i < y->rank; ++i) (i < axis ? s->outer : s->row) *= y->dims[i];
  int64_t at = 0;
  for (int i = 0; i < s->count; ++i) {
    const Tensor* x = input_of(step, 2 + 3 * i);
    if (!is_byte(x) || x->rank != y->rank) return env.fail("part %d is not 8-bit of y's rank", i);
    Piece& piece = s->pieces[i];
    piece.row = 1;
    for (int d = 0; d < y->rank; ++d) {
      if (d != axis && x->dims[d] != y->dims[d])
        return env.fail("part %d does not fit axis %d", i, d);
      if (d >= axis) piece.row *= x->dims[d];
    }
    piece.at = at;
    at += piece.row;
    if (!read_scalars(step, env, 3 + 3 * i, x->dtype, &from)) return false;
    const bool same = x->dtype == y->dtype && from.scale == to.scale && from.zero == to.zero;
    for (int byte = 0; byte < 256; ++byte) {
      // In float32, as a dequantisation followed by a quantisation.
      const float real = static_cast<float>(number_of(byte, x->dtype) - from.zero) * from.scale;
      const float q = rintf(real / to.scale);
      const int32_t moved = quantise_exactly(q, {1.0f, to.zero}, y->dtype);
      piece.table.answer[byte] = static_cast<uint8_t>(same ? byte : moved);
    }
  }
  return at == s->row || env.fail("the parts do not fill the output");
}

void run_concat(const Step& step, int, int thread, int threads, void*) {
  const ConcatState& s = *static_cast<const ConcatState*>(step.state);
  for (int32_t i = 0; i < s.count; ++i) {
    const Piece& piece = s.pieces[i];
    const uint8_t* x = step.inputs[2 + 3 * i]->data;
    int64_t begin, end;
    share(s.outer * piece.row, 64, thread, threads, &begin, &end);
    while (begin < end) {
      const int64_t outer = begin / piece.row, inner = begin % piece.row;
      const int64_t left = piece.row - inner, n = left < end - begin ? left : end - begin;
      map_rows(piece.table.answer, x + begin, 0,
               step.outputs[0]->data + outer * s.row + piece.at + inner, 0, n, 1);
      begin += n;
    }
  }
}

const Kernel kTable[] = {
    {"QLookup QLinearSigmoid QLinearLeakyRelu", "i8_table", prepare_table, run_table,
     kAcceptsPitch | kInPlace | kDivisible},
    {"QLinearConcat", "i8_concat", prepare_concat, run_concat, kDivisible},
};

}  // namespace
}  // namespace lite

LITE_BASE_KERNEL_TABLE(quant_table, kTable)
