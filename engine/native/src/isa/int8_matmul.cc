// i8_matmul: QLinearMatMul of two computed operands, batches of matrices that broadcast as NumPy's do.
//
//   acc = Σ (a − a_zero)(b − b_zero);   y = clamp(round(float(acc) · a_scale b_scale / y_scale) + y_zero)
//
// Phase 0 packs every matrix of b as the tiles read weights, with the part of a_zero as their bias; phase 1
// multiplies blocks of rows with one panel after the other, so that both stay in the cache.
#include "int8_lanes.h"
#include "int8_tile.h"
#include "ops/quant_params.h"

namespace lite::LITE_ISA {
namespace {

constexpr int64_t kBlockTiles = 8, kBlockRows = kBlockTiles * kTileRows;

struct State {
  QuantParams quant;
  int64_t m, n, k;
  int64_t depth, panels;                    // k in whole groups of kDepth; panels of columns
  int64_t batches, b_matrices, matrix;      // packed weights of one matrix of b
  int batch_rank;
  int64_t dims[kMaxRank], a_step[kMaxRank], b_step[kMaxRank];  // in matrices
  int64_t row_blocks, block_rows, column_blocks, block_panels;
  bool copied;                              // rows of a go into scratch, as operands in whole groups
  bool flip;                                // for kIntTile
  int32_t a_zero;                           // of a as it is multiplied
  uint8_t b_flip;                           // what makes signed bytes, or unsigned ones without kBytes
  size_t bias_at;                           // in shared memory: sums of columns, behind the weights
};

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool read_batches(Env& env, const Tensor& a, const Tensor& b, const Tensor& y, State* s) {
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  if (a.rank < 2 || b.rank < 2 || y.rank != rank) return env.fail("takes matrices");
  s->m = a.dims[a.rank - 2], s->k = a.dims[a.rank - 1], s->n = b.dims[b.rank - 1];
  if (b.dims[b.rank - 2] != s->k || y.dims[rank - 2] != s->m || y.dims[rank - 1] != s->n)
    return env.fail("dims of a, b and y do not agree");
  s->batch_rank = rank - 2;
  s->batches = s->b_matrices = 1;
  int64_t a_matrices = 1;
  for (int i = s->batch_rank - 1; i >= 0; --i) {
    const int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
    const int64_t da = ia >= 0 ? a.dims[ia] : 1, db = ib >= 0 ? b.dims[ib] : 1;
    if (y.dims[i] != (da == 1 ? db : da) || (da != db && da != 1 && db != 1))
      return env.fail("batch dims of a and b do not broadcast");
    s->dims[i] = y.dims[i];
    s->a_step[i] = da > 1 ? a_matrices : 0;
    s->b_step[i] = db > 1 ? s->b_matrices : 0;
    a_matrices *= da, s->b_matrices *= db;
    s->batches *= y.dims[i];
  }
  return true;
}

// Blocks of rows, and of columns where rows alone are fewer than shares of the threads.
void choose_blocks(const Step& step, const Env& env, State* s) {
  const int64_t threads = threads_of(step, env), enough = threads > 1 ? 4 * threads : 1;
  const int64_t batches = s->batches > 0 ? s->batches : 1;
  int64_t blocks = (enough + batches - 1) / batches;
  const int64_t least = (s->m + kBlockRows - 1) / kBlockRows, most = (s->m + kTileRows - 1) / kTileRows;
  blocks = blocks < least ? least : blocks > most ? most : blocks;
  s->block_rows = blocks > 0 ? round_up((s->m + blocks - 1) / blocks, kTileRows) : kTileRows;
  s->row_blocks = (s->m + s->block_rows - 1) / s->block_rows;
  const int64_t units = batches * (s->row_blocks > 0 ? s->row_blocks : 1);
  int64_t columns = units < threads ? (enough + units - 1) / units : 1;
  if (columns > s->panels) columns = s->panels;
  s->block_panels = columns > 0 ? (s->panels + columns - 1) / columns : 1;
  s->column_blocks = (s->panels + s->block_panels - 1) / s->block_panels;
}

bool prepare(Step& step, Env& env) {
  const Tensor *a = input_of(step, 0), *b = input_of(step, 3), *y = output_of(step, 0);
  if (!a || !b || !y) return env.fail("needs inputs a and b and an output");
  State* s = static_cast<State*>(env.allocate(sizeof(State)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_batches(env, *a, *b, *y, s)) return false;
  if (!read_quant_params(step, env, *a, *b, *y, nullptr, "a", "b", s->n, s->k, &s->quant)) return false;
  const QuantParams& q = s->quant;
  s->depth = round_up(s->k, kDepth);
  s->panels = (s->n + kTileColumns - 1) / kTileColumns;
  s->matrix = s->depth * s->panels * kTileColumns;
  s->flip = kBytes && q.x_signed != kDotSigned;
  s->a_zero = kBytes ? q.x_zero : 0;
  if (s->flip && !kEitherSign) s->a_zero += kDotSigned ? -128 : 128;
  s->b_flip = kBytes == q.w_unsigned ? 0x80 : 0;
  s->copied = !kBytes || s->depth != s->k;
  choose_blocks(step, env, s);
  size_t matrices, weights, biases, rows;
  if (!mul_size(static_cast<size_t>(s->b_matrices), static_cast<size_t>(s->matrix), &matrices) ||
      !mul_size(matrices, sizeof(IntWeight), &weights) ||
      !mul_size(static_cast<size_t>(s->b_matrices * s->panels), 4 * kTileColumns, &biases) ||
      !mul_size(static_cast<size_t>(s->depth), kBlockRows * kOperandBytes, &rows))
    return env.fail("operands too large");
  s->bias_at = weights + 64;
  step.shared_bytes = s->bias_at + biases;
  step.scratch_bytes = (s->copied ? rows : 0) + static_cast<size_t>(s->depth) * kOperandBytes + 64;
  step.phases = 2;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

// kLanes columns, or the first of them, of up to kDepth rows of b: those of each column side by side.
LITE_INLINE void pack_group(const uint8_t* from, int64_t ld, int64_t rows, int columns, uint8_t flip,
                            const int32_t* zeros, IntWeight* to) {
  const auto row = [&](int64_t i) __attribute__((always_inline)) {
    if (i >= rows) return I{};
    const uint8_t* p = from + i * ld;
    const I v = columns == kLanes ? widen(p, flip) : widen_part(p, columns, flip);
    return kBytes ? v : v - load(zeros);
  };
  if constexpr (kDepth == 1) {
    const I v = row(0);
    for (int n = 0; n < kLanes; ++n) to[n] = static_cast<IntWeight>(v[n]);
  } else if constexpr (kDepth == 2) {
    const I v = (row(0) & 0xffff) | (row(1) << 16);
    memcpy(to, &v, sizeof v);
  } else {
    I fours[kDepth / 4];
    for (int i = 0; i < kDepth / 4; ++i)
      fours[i] = row(4 * i) | (row(4 * i + 1) << 8) | (row(4 * i + 2) << 16) | (row(4 * i + 3) << 24);
    for (int n = 0; n < kLanes; ++n)
      for (int i = 0; i < kDepth / 4; ++i) {
        const int32_t four = fours[i][n];  // clang takes no address of an element
        memcpy(to + n * kDepth + 4 * i, &four, sizeof four);
      }
  }
}

// k rows of up to kTileColumns columns.
void pack_panel(const uint8_t* from, int64_t k, int64_t ld, int64_t columns, uint8_t flip,
                const int32_t* zeros, IntWeight* to) {
  for (int64_t left = k; left > 0; left -= kDepth, from += kDepth * ld)
    for (int64_t n = 0; n < columns; n += kLanes, to += kLanes * kDepth) {
      const int64_t rest = columns - n;
      if (left >= kDepth && rest >= kLanes) pack_group(from + n, ld, kDepth, kLanes, flip, zeros + n, to);
      else
        pack_group(from + n, ld, left, static_cast<int>(rest < kLanes ? rest : kLanes), flip, zeros + n,
                   to);
    }
}

// −a_zero · (the sum of b − b_zero) of every column of a packed panel.
void find_bias(const State& s, const IntWeight* w, const Operand* ones, int64_t column, int64_t columns,
               int32_t* bias) {
  const int32_t none[kTileColumns] = {};
  IntTile t{};
  t.taps_y = t.taps_x = 1;
  t.groups = s.depth / kDepth;
  t.a = reinterpret_cast<const uint8_t*>(ones);
  t.w = w, t.bias = none, t.sums = bias;
  kIntTile[0][tile_vectors(columns) - 1][0](t);
  for (int64_t n = 0; n < columns; ++n) {
    const int64_t zeros = s.quant.w_zero ? s.k * s.quant.w_zero[column + n] : 0;
    bias[n] = static_cast<int32_t>(-s.a_zero * (bias[n] - zeros));  // wraps, as the sums do
  }
}

void pack(const State& s, const Step& step, int thread, int threads, void* scratch) {
  Operand* ones = static_cast<Operand*>(scratch);
  for (int64_t i = 0; i < s.depth; ++i) ones[i] = 1;
  IntWeight* weights = static_cast<IntWeight*>(step.shared);
  int32_t* biases = reinterpret_cast<int32_t*>(static_cast<char*>(step.shared) + s.bias_at);
  int64_t begin, end;
  share(s.b_matrices * s.panels, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t matrix = unit / s.panels, panel = unit % s.panels, column = panel * kTileColumns;
    const int64_t left = s.n - column, columns = left < kTileColumns ? left : kTileColumns;
    IntWeight* w = weights + matrix * s.matrix + panel * kTileColumns * s.depth;
    int32_t zeros[kTileColumns] = {};  // of b as it is packed
    for (int64_t n = 0; !kBytes && n < columns; ++n)
      zeros[n] = (s.quant.w_zero ? s.quant.w_zero[column + n] : 0) + 128;
    pack_panel(step.inputs[3]->data + matrix * s.k * s.n + column, s.k, s.n, columns, s.b_flip, zeros, w);
    int32_t* bias = biases + unit * kTileColumns;
    if (s.a_zero) find_bias(s, w, ones, column, columns, bias);
    else memset(bias, 0, kTileColumns * 4);
  }
}

// Rows of a as operands in whole groups. A byte that is flipped as it is read stands for 0.
void copy_rows(const State& s, const uint8_t* a, int64_t rows, Operand* out) {
  const uint8_t flip = !kBytes && s.quant.x_signed ? 0x80 : 0;
  const int32_t zero = kBytes ? 0 : s.quant.x_zero + flip;
  const Operand none = s.flip && !kEitherSign ? Operand{0x80} : Operand{0};
  const int64_t k = s.k, depth = s.depth;
  for (int64_t m = 0; m < rows; ++m, a += k, out += depth) {
    if (kBytes) memcpy(out, a, static_cast<size_t>(k));
    else
      for (int64_t i = 0; i < k; ++i) out[i] = static_cast<Operand>((a[i] ^ flip) - zero);
    for (int64_t i = k; i < depth; ++i) out[i] = none;
  }
}

IntTile tile_of(const State& s) {
  IntTile t{};
  t.taps_y = t.taps_x = 1;
  t.groups = s.depth / kDepth;
  t.zero = s.quant.y_zero + (s.quant.y_signed ? 128 : 0);
  t.flip = s.quant.y_signed ? 0x80 : 0;
  t.low = static_cast<uint8_t>(s.quant.low + t.flip);
  t.high = static_cast<uint8_t>(s.quant.high + t.flip);
  t.lda = s.copied ? s.depth * kOperandBytes : s.k;
  t.ldc = s.n;
  t.half_a = kHalfRows * t.lda;
  t.half_c = kHalfRows * t.ldc;
  return t;
}

// Rows of one product, by the panels from `first` to `last`.
void multiply(const State& s, const uint8_t* a, int64_t rows, const IntWeight* weights,
              const int32_t* biases, int64_t first, int64_t last, uint8_t* y, void* scratch) {
  if (s.copied) {
    copy_rows(s, a, rows, static_cast<Operand*>(scratch));
    a = static_cast<const uint8_t*>(scratch);
  }
  IntTile t = tile_of(s);
  const TileSplit split = split_rows(rows);
  int32_t row_sums[kBlockRows];
  const bool summed = kBytes && s.quant.w_zero;
  for (int j = 0; summed && j < split.tiles; ++j) {
    t.a = a + tile_begin(split, j) * t.lda;
    kRowSums[s.flip](t, tile_rows(split, j), row_sums + tile_begin(split, j));
  }
  for (int64_t panel = first; panel < last; ++panel) {
    const int64_t column = panel * kTileColumns, left = s.n - column;
    int32_t zeros[kTileColumns] = {};
    t.columns = static_cast<int32_t>(left < kTileColumns ? left : kTileColumns);
    t.w = weights + column * s.depth;
    t.bias = biases + column;
    t.scale = s.quant.scale + column;
    if (summed) {
      memcpy(zeros, s.quant.w_zero + column, static_cast<size_t>(t.columns) * 4);
      t.w_zero = zeros;
    }
    for_each_height(split, [&](int64_t row, int height, int tiles) {
      t.a = a + row * t.lda;
      t.c = y + row * s.n + column;
      t.row_sums = row_sums + row;
      t.count = tiles;
      kIntTile[s.flip][tile_vectors(t.columns) - 1][height - 1](t);
    });
  }
}

void run(const Step& step, int phase, int thread, int threads, void* scratch) {
  const State& s = *static_cast<const State*>(step.state);
  if (phase == 0) return pack(s, step, thread, threads, scratch);
  const IntWeight* weights = static_cast<const IntWeight*>(step.shared);
  const int32_t* biases =
      reinterpret_cast<const int32_t*>(static_cast<const char*>(step.shared) + s.bias_at);
  int64_t begin, end;
  share(s.batches * s.row_blocks * s.column_blocks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t batch = unit / s.column_blocks / s.row_blocks;
    const int64_t row = unit / s.column_blocks % s.row_blocks * s.block_rows;
    const int64_t first = unit % s.column_blocks * s.block_panels;
    int64_t rest = batch, of_a = 0, of_b = 0;
    for (int i = s.batch_rank - 1; i >= 0; --i) {
      of_a += rest % s.dims[i] * s.a_step[i];
      of_b += rest % s.dims[i] * s.b_step[i];
      rest /= s.dims[i];
    }
    const int64_t rows = s.m - row < s.block_rows ? s.m - row : s.block_rows;
    const int64_t last = first + s.block_panels < s.panels ? first + s.block_panels : s.panels;
    multiply(s, step.inputs[0]->data + (of_a * s.m + row) * s.k, rows, weights + of_b * s.matrix,
             biases + of_b * s.panels * kTileColumns, first, last,
             step.outputs[0]->data + (batch * s.m + row) * s.n, scratch);
  }
}

const Kernel kMatMul[] = {{"QLinearMatMul", "i8_matmul", prepare, run, kDivisible}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_matmul, kMatMul)
