// i8_attention: softmax(scale q kᵀ + mask)·v per head, on bytes. Both products are of integers:
//
//   s = Σ (q − q_zero)(k − k_zero)                    int32, exact
//   t = float(s − max s) · m + mask;  t −= max t      m = q_scale · k_scale · scale; −max t with a mask only
//   p = round(255 · e^(−i / 512)), i = round(−512 t)  0 ... 255, from a table; the highest score has 255
//   y = clamp(round(float(Σ p (v − v_zero)) · (v_scale / y_scale / Σ p)) + y_zero)
//
// Weights that are not divided by their sum before they are rounded use all of their 256 steps, and the sum that
// divides is that of the rounded ones. All instruction sets give the same integers.
//
// Tiles of rows meet all keys of their head at once: the scores of a tile stay in the cache. k_zero adds the same
// number to all scores of a row, which no softmax sees.
#include <math.h>

#include "int8_lanes.h"
#include "int8_tile.h"
#include "ops/attention_shape.h"
#include "ops/quant_scalars.h"

namespace lite::LITE_ISA {
namespace {

constexpr int kSteps = 512, kLast = 3200;  // of e^-1, and where the weights are all 0: 255 e^(−3200 / 512) < 0.5
constexpr int64_t kMostKeys = 1 << 16, kMostSize = 1 << 15;  // sums of products of bytes fit int32
constexpr int64_t kAlign = 64;
// Weights 0 ... 255 as the products take them: see int8_tile.h.
constexpr bool kFlipWeights = kBytes && kDotSigned;
constexpr bool kMovedWeights = kFlipWeights && !kEitherSign;  // multiplied as p − 128

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Offsets of a thread's scratch, in bytes.
struct Layout {
  int64_t keys, key_bias, values, value_bias, scores, weights, queries, ones;
};

struct Attention : AttentionShape {
  int64_t chunks, chunk_rows;      // of one head's rows
  int64_t depth, key_depth;        // size and keys in whole groups of kDepth
  int64_t ld;                      // scores and weights of a row
  Layout at;
  bool flip_q;                     // for kIntTile
  int32_t q_zero;                  // of q as it is multiplied
  int32_t q_shift, q_flip;         // what makes operands of copied bytes
  uint8_t k_flip, v_flip;          // what makes signed bytes
  int32_t v_zero;                  // of v as a signed byte
  float unit;                      // of a score
  float ratio;                     // v_scale / y_scale
  int32_t y_zero, low, high;
  uint8_t table[kLast + 1];
};

bool is_byte(const Tensor* t) { return t && (t->dtype == DType::kI8 || t->dtype == DType::kU8); }

void choose_chunks(Step& step, Env& env, Attention* s) {
  const int64_t packing = 2 * kLanes;  // as for floats
  s->chunk_rows = unit_rows(*s, threads_of(step, env), kTileRows, packing);
  s->chunks = (s->rows + s->chunk_rows - 1) / s->chunk_rows;
  s->depth = round_up(s->size, kDepth);
  s->key_depth = round_up(s->keys, kDepth);
  s->ld = round_up(s->keys, kTileColumns);
  const int64_t v_width = round_up(s->v_size, kTileColumns), w = sizeof(IntWeight);
  const int64_t longest = s->depth > s->key_depth ? s->depth : s->key_depth;
  const int64_t bytes[] = {s->ld * s->depth * w, s->ld * 4, v_width * s->key_depth * w, v_width * 4,
                           kTileRows * s->ld * 4, kTileRows * s->ld * kOperandBytes,
                           kTileRows * s->depth * kOperandBytes, longest * kOperandBytes};
  int64_t* offsets[] = {&s->at.keys, &s->at.key_bias, &s->at.values, &s->at.value_bias,
                        &s->at.scores, &s->at.weights, &s->at.queries, &s->at.ones};
  int64_t total = kAlign;
  for (int i = 0; i < 8; ++i) {
    *offsets[i] = total - kAlign;
    total += round_up(bytes[i], kAlign);
  }
  step.scratch_bytes = static_cast<size_t>(total);
}

bool prepare(Step& step, Env& env) {
  const Tensor *q = input_of(step, 0), *k = input_of(step, 3), *v = input_of(step, 6);
  const Tensor* y = output_of(step, 0);
  if (!is_byte(q) || !is_byte(k) || !is_byte(v) || !is_byte(y))
    return env.fail("needs q, k, v and y of bytes");
  if (step.num_outputs != 1) return env.fail("has one output");
  Attention* s = static_cast<Attention*>(env.allocate(sizeof(Attention)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_attention(step, env, *q, *k, *v, *y, s)) return false;
  if (s->keys > kMostKeys || s->size > kMostSize || s->v_size > kMostSize)
    return env.fail("takes up to 65536 keys and heads of up to 32768 numbers");
  if (!read_attention_mask(input_of(step, 11), env, s)) return false;
  QuantScalars of_q, of_k, of_v, of_y;
  if (!read_scalars(step, env, 1, q->dtype, &of_q) || !read_scalars(step, env, 4, k->dtype, &of_k) ||
      !read_scalars(step, env, 7, v->dtype, &of_v) || !read_scalars(step, env, 9, y->dtype, &of_y))
    return false;
  const bool q_signed = q->dtype == DType::kI8, v_signed = v->dtype == DType::kI8;
  s->flip_q = kBytes && q_signed != kDotSigned;
  s->q_zero = kBytes ? of_q.zero : 0;
  if (s->flip_q && !kEitherSign) s->q_zero += kDotSigned ? -128 : 128;
  s->q_flip = !kBytes && q_signed ? 0x80 : 0;
  s->q_shift = kBytes ? 0 : q_signed ? of_q.zero + 128 : of_q.zero;
  s->k_flip = k->dtype == DType::kI8 ? 0 : 0x80;
  s->v_flip = v_signed ? 0 : 0x80;
  s->v_zero = v_signed ? of_v.zero : of_v.zero - 128;
  s->unit = of_q.scale * of_k.scale * s->scale;
  s->ratio = of_v.scale / of_y.scale;
  s->y_zero = of_y.zero;
  s->low = y->dtype == DType::kI8 ? -128 : 0;
  s->high = s->low + 255;
  for (int i = 0; i <= kLast; ++i)
    s->table[i] = static_cast<uint8_t>(rint(255 * ::exp(-i / static_cast<double>(kSteps))));
  choose_chunks(step, env, s);
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, kTileRows, kTileColumns);
  return true;
}

// One head: where its operands begin.
struct Head {
  const uint8_t *q, *k, *v, *mask;  // no mask: nullptr
  uint8_t* y;
};

Head head_of(const Attention& s, const Step& step, int64_t unit) {
  const int64_t b = unit / s.heads, h = unit % s.heads, kv = h / s.group;
  const Tensor* mask = input_of(step, 11);
  return {step.inputs[0]->data + b * s.q.batch + h * s.q.head,
          step.inputs[3]->data + b * s.k.batch + kv * s.k.head,
          step.inputs[6]->data + b * s.v.batch + kv * s.v.head,
          mask ? mask->data + mask_offset(s, b, h) : nullptr,
          step.outputs[0]->data + b * s.y.batch + h * s.y.head};
}

IntWeight as_weight(uint8_t byte, uint8_t flip) { return static_cast<int8_t>(byte ^ flip); }

// Columns of the panel at `at`, of `total` columns, as whole vectors.
int64_t width_of(int64_t total, int64_t at) { return tile_vectors(total - at) * kLanes; }

// Keys as panels [panel][group of the size][key][kDepth].
void pack_keys(const Attention& s, const uint8_t* k, IntWeight* out) {
  for (int64_t first = 0; first < s.keys; first += kTileColumns) {
    const int64_t width = width_of(s.keys, first);
    const int64_t here = s.keys - first < width ? s.keys - first : width;
    IntWeight* panel = out + first * s.depth;
    for (int64_t n = 0; n < here; ++n) {
      const uint8_t* from = k + (first + n) * s.k.row;
      int64_t c = 0;
      if (kBytes) {  // one group at a time
        const uint64_t flip = s.k_flip * 0x0101010101010101u;
        for (; c + kDepth <= s.size; c += kDepth) {
          uint64_t group = 0;
          memcpy(&group, from + c, kDepth);
          group ^= flip;
          memcpy(panel + c * width + n * kDepth, &group, kDepth);
        }
      }
      for (; c < s.depth; ++c)
        panel[c / kDepth * kDepth * width + n * kDepth + c % kDepth] =
            c < s.size ? as_weight(from[c], s.k_flip) : IntWeight{0};
    }
    for (int64_t n = here; n < width; ++n)
      for (int64_t c = 0; c < s.depth; ++c)
        panel[c / kDepth * kDepth * width + n * kDepth + c % kDepth] = 0;
  }
}

// `columns` values, at most kLanes, of the first `keys` of kDepth keys: those of each column side by side.
LITE_INLINE void pack_values(const Attention& s, const uint8_t* from, int64_t columns, int64_t keys,
                             IntWeight* to) {
  if (kBytes && kDepth == 4 && columns == kLanes) {
    I all{};
    for (int64_t i = 0; i < keys; ++i)
      all |= widen(from + i * s.v.row, s.v_flip) << static_cast<int32_t>(8 * i);
    memcpy(to, &all, sizeof all);
    return;
  }
  memset(to, 0, kLanes * kDepth * sizeof *to);
  for (int64_t i = 0; i < keys; ++i)
    for (int64_t n = 0; n < columns; ++n)
      to[n * kDepth + i] = as_weight(from[i * s.v.row + n], s.v_flip);
}

// Values as panels [panel][group of keys][column][kDepth].
void pack_all_values(const Attention& s, const uint8_t* v, IntWeight* out) {
  for (int64_t first = 0; first < s.v_size; first += kTileColumns) {
    const int64_t width = width_of(s.v_size, first);
    IntWeight* to = out + first * s.key_depth;
    for (int64_t key = 0; key < s.keys; key += kDepth) {
      const int64_t keys = s.keys - key < kDepth ? s.keys - key : kDepth;
      for (int64_t n = 0; n < width; n += kLanes, to += kLanes * kDepth) {
        const int64_t left = s.v_size - first - n, columns = left < kLanes ? left : kLanes;
        pack_values(s, v + key * s.v.row + first + n, columns, keys, to);
      }
    }
  }
}

// A tile whose sums are kept as they are.
IntTile plain_tile(int64_t depth, const int32_t* bias) {
  IntTile t{};
  t.taps_y = t.taps_x = 1;
  t.groups = depth / kDepth;
  t.bias = bias;
  return t;
}

void set_rows(IntTile* t, const void* a, int64_t lda) {
  t->a = static_cast<const uint8_t*>(a);
  t->lda = lda;
  t->half_a = kHalfRows * lda;
}

// out[n] = factor · (the sum of column n's weights).
void column_sums(const Operand* ones, const IntWeight* w, int64_t depth, int64_t columns,
                 int32_t factor, int32_t* out) {
  const int32_t none[kTileColumns] = {};
  IntTile t = plain_tile(depth, none);
  set_rows(&t, ones, 0);
  for (int64_t n = 0; n < columns; n += kTileColumns) {
    t.w = w + n * depth;
    t.sums = out + n;
    kIntTile[0][tile_vectors(columns - n) - 1][0](t);
  }
  for (int64_t n = 0; n < columns; ++n) out[n] *= factor;
}

// Places in the table of weights for n scores, where they lie; the row's highest score has place 0. False where the
// mask hides all of them.
bool find_places(const Attention& s, int32_t* x, int64_t n, const uint8_t* mask) {
  const int64_t whole = n / kLanes * kLanes;
  int32_t most = x[0];
  if (whole) {
    I top = load(x);
    for (int64_t i = kLanes; i < whole; i += kLanes) {
      const I v = load(x + i);
      top = v > top ? v : top;
    }
    for (int i = 0; i < kLanes; ++i) most = top[i] > most ? top[i] : most;
  }
  for (int64_t i = whole; i < n; ++i) most = x[i] > most ? x[i] : most;
  const F unit = splat(s.unit), steps = splat(-static_cast<float>(kSteps));
  const F last = splat(static_cast<float>(kLast)), zero = splat(0.0f);
  if (!mask) {
    for (int64_t i = 0; i < n; i += kLanes) {
      const F t = rounded(to_float(load(x + i) - most) * unit);
      store(x + i, to_int(min(last, at_least(zero, t * steps))));
    }
    return true;
  }
  float* masked = reinterpret_cast<float*>(x);
  float highest = -INFINITY;
  const float* floats = s.bytes_mask ? nullptr : reinterpret_cast<const float*>(mask);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int here = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    F t = rounded(to_float(load(x + i) - most) * unit);
    if (floats) t += here == kLanes ? load(floats + i) : load_part(floats + i, here);
    for (int j = 0; j < here; ++j) {
      const float one = floats || mask[i + j] ? t[j] : -INFINITY;
      t[j] = one;
      highest = one > highest ? one : highest;
    }
    memcpy(masked + i, &t, sizeof t);
  }
  if (highest == -INFINITY) return false;
  for (int64_t i = 0; i < n; i += kLanes) {
    F t;
    memcpy(&t, masked + i, sizeof t);
    store(x + i, to_int(min(last, at_least(zero, (t - splat(highest)) * steps))));
  }
  return true;
}

// Weights of the places, 0 behind them up to `ld`; returns their sum.
int32_t look_up(const Attention& s, const int32_t* places, int64_t n, Operand* p) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t one = s.table[places[i]];
    p[i] = one;
    sum += one;
  }
  for (int64_t i = n; i < s.ld; ++i) p[i] = 0;
  return sum;
}

// One row of sums to bytes of y.
void finish_row(const Attention& s, const int32_t* sums, int64_t columns, float factor, uint8_t* y) {
  const float zero = static_cast<float>(s.y_zero);
  const F low = splat(static_cast<float>(s.low) - zero);
  const F high = splat(static_cast<float>(s.high) - zero), f = splat(factor);
  for (int64_t n = 0; n < columns; n += kLanes) {
    const F real = min(high, at_least(low, to_float(load(sums + n)) * f));
    const I whole = to_int(real) + s.y_zero;
    if (columns - n >= kLanes) shorten(y + n, whole & 0xff, 0);
    else shorten_part(y + n, whole & 0xff, static_cast<int>(columns - n), 0);
  }
}

struct Scratch {
  IntWeight *keys, *values;
  int32_t *key_bias, *value_bias, *scores;
  Operand *weights, *queries, *ones;
};

Scratch scratch_of(const Attention& s, void* memory) {
  char* m = static_cast<char*>(memory);
  return {reinterpret_cast<IntWeight*>(m + s.at.keys),
          reinterpret_cast<IntWeight*>(m + s.at.values),
          reinterpret_cast<int32_t*>(m + s.at.key_bias),
          reinterpret_cast<int32_t*>(m + s.at.value_bias),
          reinterpret_cast<int32_t*>(m + s.at.scores),
          reinterpret_cast<Operand*>(m + s.at.weights),
          reinterpret_cast<Operand*>(m + s.at.queries),
          reinterpret_cast<Operand*>(m + s.at.ones)};
}

// Rows of q for a tile: where they lie, or as operands in whole groups.
void take_queries(const Attention& s, const uint8_t* q, int height, Operand* copy, IntTile* t) {
  if (kBytes && s.size == s.depth) return set_rows(t, q, s.q.row);
  for (int m = 0; m < height; ++m)
    for (int64_t c = 0; c < s.depth; ++c)
      copy[m * s.depth + c] =
          c < s.size ? static_cast<Operand>((q[m * s.q.row + c] ^ s.q_flip) - s.q_shift) : Operand{0};
  set_rows(t, copy, s.depth * kOperandBytes);
}

void run_tile(const Attention& s, const Head& head, int64_t row, int height, const Scratch& to) {
  const int64_t n = seen_keys(s, row + height - 1, 0, s.keys);
  IntTile t = plain_tile(s.depth, nullptr);
  take_queries(s, head.q + row * s.q.row, height, to.queries, &t);
  t.ld_sums = s.ld;
  for (int64_t key = 0; key < n; key += kTileColumns) {
    t.w = to.keys + key * s.depth;
    t.bias = to.key_bias + key;
    t.sums = to.scores + key;
    kIntTile[s.flip_q][tile_vectors(s.keys - key) - 1][height - 1](t);
  }
  t = plain_tile(s.key_depth, nullptr);
  int32_t row_sums[kTileRows];
  float factors[kTileRows];
  for (int m = 0; m < height; ++m) {
    const int64_t seen = seen_keys(s, row + m, 0, s.keys);
    const int64_t mask_at = (row + m) * s.mask.row * (s.bytes_mask ? 1 : 4);
    int32_t* x = to.scores + m * s.ld;
    const bool any = find_places(s, x, seen, head.mask ? head.mask + mask_at : nullptr);
    const int32_t sum = look_up(s, x, any ? seen : 0, to.weights + m * s.ld);
    row_sums[m] = sum;
    factors[m] = sum ? s.ratio / static_cast<float>(sum) : 0.0f;
  }
  int32_t zeros[kTileColumns], sums[kTileRows * kTileColumns];
  for (int32_t& zero : zeros) zero = s.v_zero;
  set_rows(&t, to.weights, s.ld * kOperandBytes);
  t.w_zero = zeros;
  t.row_sums = row_sums;
  t.sums = sums;
  t.ld_sums = kTileColumns;
  for (int64_t column = 0; column < s.v_size; column += kTileColumns) {
    t.w = to.values + column * s.key_depth;
    t.bias = to.value_bias + column;
    kIntTile[kFlipWeights][tile_vectors(s.v_size - column) - 1][height - 1](t);
    const int64_t left = s.v_size - column, here = left < kTileColumns ? left : kTileColumns;
    for (int m = 0; m < height; ++m) {
      int32_t* from = sums + m * kTileColumns;
      if (!kBytes)  // whose tiles know no zero points of weights
        for (int64_t i = 0; i < here; ++i) from[i] -= s.v_zero * row_sums[m];
      finish_row(s, from, here, factors[m], head.y + (row + m) * s.y.row + column);
    }
  }
}

void run_rows(const Attention& s, const Head& head, int64_t begin, int64_t end, const Scratch& to) {
  pack_keys(s, head.k, to.keys);
  pack_all_values(s, head.v, to.values);
  column_sums(to.ones, to.keys, s.depth, s.keys, -s.q_zero, to.key_bias);
  if (kMovedWeights) column_sums(to.ones, to.values, s.key_depth, s.v_size, 128, to.value_bias);
  const TileSplit split = split_rows(end - begin);
  for (int j = 0; j < split.tiles; ++j)
    run_tile(s, head, begin + tile_begin(split, j), tile_rows(split, j), to);
}

void run(const Step& step, int, int thread, int threads, void* memory) {
  const Attention& s = *static_cast<const Attention*>(step.state);
  const Scratch to = scratch_of(s, memory);
  const int64_t longest = s.depth > s.key_depth ? s.depth : s.key_depth;
  for (int64_t i = 0; i < longest; ++i) to.ones[i] = 1;
  for (int64_t i = 0; i < round_up(s.v_size, kTileColumns); ++i) to.value_bias[i] = 0;
  int64_t begin, end;
  share(s.batches * s.heads * s.chunks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % s.chunks * s.chunk_rows;
    const int64_t last = first + s.chunk_rows < s.rows ? first + s.chunk_rows : s.rows;
    run_rows(s, head_of(s, step, unit / s.chunks), first, last, to);
  }
}

const Kernel kAttention[] = {{"QLinearAttention", "i8_attention", prepare, run, kAcceptsPitch | kDivisible}};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(int8_attention, kAttention)
