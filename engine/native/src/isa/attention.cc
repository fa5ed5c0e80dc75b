// f32_attention: softmax(scale q kᵀ + bias) v per head, in blocks that stay in the cache. bf16_attention is the
// same, with both products of bf16 where there are products of pairs: q, k, v and the weights are rounded,
// and each of q, k, v and y may lie in memory in bf16.
//
// Keys and values of one head are packed a block at a time. Each tile of rows meets every block with
// its scores in the cache: softmax runs over the blocks with the highest score so far and a sum that
// is rescaled when it grows (Milakov, Gimelshein 2018; Dao et al. 2022, FlashAttention). The matrix
// of all scores never exists. Few rows (a decoder's step) read keys and values where they lie.
#include <math.h>

#include "lite_kernel.h"
#include "attention_mask.h"
#include "attention_pack.h"
#include "core_kind.h"
#include "transcendental.h"
#include "transpose.h"

namespace lite::LITE_ISA {
namespace {

struct Attention : AttentionShape {
  float softcap;                   // 0: none
  bool few_rows, copies_rows;
  bool short_q, short_k, short_v, short_y;  // bf16
  int64_t block;                   // keys packed at a time
  int64_t score_row;               // from one row of scores to the next
  int64_t chunks, chunk_rows;      // of one head's rows
  // Of the scratch, in its order; a_elems: rows that are packed, or copied where they lie apart; y_elems:
  // results that become bf16 behind the last block.
  int64_t k_elems, v_elems, score_elems, a_elems, y_elems;
};

constexpr int kFewRows = 3;  // packing keys pays from here on
constexpr int64_t kSetsBytes = 4096;  // rows so far apart lie in one set of the first-level cache

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool choose_blocks(Step& step, Env& env, Attention* s) {
  s->few_rows = s->rows <= kFewRows;
  // Half of L2 holds a block of keys and values, and scores where they are packed.
  const int64_t key_elems = s->size + s->v_size + (kPacks ? 2 * kProductRows : 0);
  const int64_t fit = static_cast<int64_t>(env.l2_bytes) / 2 / (4 * key_elems + 1);
  s->block = round_up(fit < 64 ? 64 : fit, kTileColumns);
  const int64_t most = round_up(s->keys, kTileColumns);
  if (s->block > most) s->block = most;
  const int64_t packing = 2 * kLanes;  // as long as about 15 rows take with AVX2
  s->chunk_rows = unit_rows(*s, threads_of(step, env), kProductRows, packing);
  s->chunks = (s->rows + s->chunk_rows - 1) / s->chunk_rows;
  const int64_t v_width = round_up(s->v_size, kTileColumns);
  s->k_elems = s->few_rows ? 0 : s->block * depth_of(s->size);
  s->v_elems = s->few_rows ? 0 : depth_of(s->block) * v_width;
  // One cache line more than the keys: rows of a power of two would share cache sets.
  s->score_row = s->block + 16;
  s->score_elems = s->few_rows ? round_up(s->keys, kTileColumns) : kProductRows * s->score_row;
  // A tile's rows of q are copied where they would evict each other, and to be rounded.
  s->copies_rows = kProducts > 1 || (!kPacks && s->q.row * sizeof(float) % kSetsBytes == 0);
  const int64_t deepest = s->block > s->size ? s->block : s->size;
  s->a_elems = s->few_rows      ? 0
               : s->copies_rows ? kProductRows * depth_of(s->size)
                                : product_floats(deepest);
  s->y_elems = s->few_rows || !s->short_y ? 0 : s->chunk_rows * s->v_size;
  const int64_t totals = s->few_rows ? 0 : 2 * s->chunk_rows;
  const int64_t parts[] = {s->k_elems, s->v_elems, s->score_elems, s->a_elems, s->y_elems, totals};
  size_t elems = 0;
  for (const int64_t part : parts)
    if (!add_size(elems, static_cast<size_t>(part), &elems)) return env.fail("too large");
  if (!mul_size(elems, sizeof(float), &step.scratch_bytes)) return env.fail("too large");
  return true;
}

bool is_short(const Tensor* t) { return t && t->dtype == DType::kBF16; }

// bf16.cc widens what is not packed, and masks.
bool suits(const Step& step, Env&) {
  const Tensor* q = input_of(step, 0);
  bool any = is_short(output_of(step, 0));
  for (int i = 0; i < 3; ++i) any = any || is_short(input_of(step, i));
  const bool packs = kProducts > 1 && q && q->rank > 1 && q->dims[q->rank - 2] > kFewRows;
  return (packs || !any) && !is_short(input_of(step, 3));
}

bool prepare(Step& step, Env& env) {
  const Tensor* operands[4] = {input_of(step, 0), input_of(step, 1), input_of(step, 2),
                               output_of(step, 0)};
  for (const Tensor* t : operands)
    if (!t || (t->dtype != DType::kF32 && !(kProducts > 1 && is_short(t))))
      return env.fail("needs f32 q, k, v and y");
  if (step.num_outputs != 1) return env.fail("has one output");
  for (int i = 4; i < step.num_inputs; ++i)
    if (input_of(step, i)) return env.fail("takes no past keys and no lengths");
  Attention* s = static_cast<Attention*>(env.allocate(sizeof(Attention)));
  if (!s) return env.out_of_memory();
  step.state = s;
  if (!read_attention(step, env, *operands[0], *operands[1], *operands[2], *operands[3], s))
    return false;
  s->short_q = is_short(operands[0]), s->short_k = is_short(operands[1]);
  s->short_v = is_short(operands[2]), s->short_y = is_short(operands[3]);
  s->softcap = static_cast<float>(attr_float(step, "softcap", 0));
  if (!read_attention_mask(input_of(step, 3), env, s) || !choose_blocks(step, env, s)) return false;
  set_variant(step, "%s__" LITE_ISA_NAME "_%dx%d", step.kernel->name, s->few_rows ? 1 : kProductRows,
              kTileColumns);
  return true;
}

// The highest score; those behind the keys that a row sees become -inf, up to the next whole vector.
float highest_score(float* x, int64_t n, int64_t seen) {
  constexpr int kChains = 4;  // a single maximum waits for the one before
  F tops[kChains];
  for (F& top : tops) top = splat(-INFINITY);
  int64_t i = 0;
  for (; i + kChains * kLanes <= seen; i += kChains * kLanes)
    LITE_UNROLL for (int j = 0; j < kChains; ++j) tops[j] = max(tops[j], load(x + i + j * kLanes));
  for (int64_t j = seen; j < round_up(n, kLanes); ++j) x[j] = -INFINITY;
  for (; i < n; i += kLanes) tops[0] = max(tops[0], load(x + i));
  return highest(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
}

// x[i] = scale x[i] + mask, i < n; -inf up to the next whole vector. Returns the highest one.
float score_row(const Attention& s, float* x, int64_t n, int64_t seen, const uint8_t* mask) {
  const F scale = splat(s.scale), cap = splat(s.softcap), least = splat(-INFINITY);
  const float* floats = mask && !s.bytes_mask ? reinterpret_cast<const float*>(mask) : nullptr;
  F top = least;
  for (int64_t i = 0; i < n; i += kLanes) {
    const int here = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    F a = (here == kLanes ? load(x + i) : load_part(x + i, here)) * scale;
    if (s.softcap != 0) a = cap * tanh(a / cap);
    if (floats) a += here == kLanes ? load(floats + i) : load_part(floats + i, here);
    store(x + i, a);
    if (mask && s.bytes_mask)
      for (int j = 0; j < here; ++j)
        if (!mask[i + j]) x[i + j] = -INFINITY;
    for (int64_t j = i + here < seen ? i + here : seen < i ? i : seen; j < i + kLanes; ++j)
      x[j] = -INFINITY;
    top = max(top, load(x + i));
  }
  return highest(top);
}

// x[i] = e^(factor x[i] - peak), where none is above the peak, in whole vectors; returns their sum.
float exp_row(float* x, int64_t n, float factor, float peak) {
  // Only -inf so far: all weights are 0, not the NaN of -inf less -inf.
  const F shift = splat(peak == -INFINITY ? 0.0f : -peak), f = splat(factor);
  F totals[2] = {F{}, F{}};
  const auto weigh = [&](float* at, F& total) __attribute__((always_inline)) {
    const F e = exp_or_zero(fma(load(at), f, shift));
    store(at, e);
    total += e;
  };
  int64_t i = 0;
  for (; i + kLanes < n; i += 2 * kLanes)
    LITE_UNROLL for (int j = 0; j < 2; ++j) weigh(x + i + j * kLanes, totals[j]);
  if (i < n) weigh(x + i, totals[0]);
  return sum(totals[0] + totals[1]);
}

void scale_row(float* y, int64_t n, float factor) {
  const F f = splat(factor);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, load(y + i) * f);
  if (i < n) store_part(y + i, load_part(y + i, static_cast<int>(n - i)) * f, static_cast<int>(n - i));
}

// One head: where its operands begin. Rows of results lie `y_row` floats apart, in y or, where that is bf16, in
// scratch memory.
struct Head {
  const float *q, *k, *v;
  const uint8_t* mask;  // or nullptr
  float* y;
  int64_t y_row;
};

Head head_of(const Attention& s, const Step& step, int64_t unit) {
  const int64_t b = unit / s.heads, h = unit % s.heads, kv = h / s.group;
  const Tensor* mask = input_of(step, 3);
  const auto at = [](const Tensor* t, int64_t i) { return element(t->as<float>(), i, is_short(t)); };
  return {at(step.inputs[0], b * s.q.batch + h * s.q.head),
          at(step.inputs[1], b * s.k.batch + kv * s.k.head),
          at(step.inputs[2], b * s.v.batch + kv * s.v.head),
          mask ? mask->data + mask_offset(s, b, h) : nullptr,
          at(step.outputs[0], b * s.y.batch + h * s.y.head),
          s.y.row};
}

// Row `row` of q as products take it.
void take_row(const Attention& s, const Head& head, int64_t row, float* to) {
#if defined(LITE_PAIRS)
  if (s.short_q)
    return to_products(reinterpret_cast<const uint16_t*>(head.q) + row * s.q.row, s.size, to);
#endif
  to_products(head.q + row * s.q.row, s.size, to);
}

// Keys and values [key, key + n).
void pack_block(const Attention& s, const Head& head, int64_t key, int64_t n, float* keys, float* values) {
  const float* const k = element(head.k, key * s.k.row, s.short_k);
  const float* const v = element(head.v, key * s.v.row, s.short_v);
#if defined(LITE_PAIRS)
  if (s.short_k) pack_keys(s, reinterpret_cast<const uint16_t*>(k), n, keys);
  if (s.short_v) pack_values(s, reinterpret_cast<const uint16_t*>(v), n, values);
#endif
  if (!s.short_k) pack_keys(s, k, n, keys);
  if (!s.short_v) pack_values(s, v, n, values);
}

const uint8_t* mask_row(const Attention& s, const Head& head, int64_t row, int64_t key) {
  return head.mask ? head.mask + (row * s.mask.row + key) * (s.bytes_mask ? 1 : 4) : nullptr;
}

// Where a thread keeps what it works on.
struct Room {
  float *keys, *values, *scores, *rows;
  bool reorders;                   // the core does
};

// Of the keys [key, key + n), those up to the last one that a mask lets any of these rows see: the others weigh
// nothing. All of them where a row has seen none yet: hidden by finite numbers, they weigh alike.
int64_t visible_keys(const Attention& s, const Head& head, int64_t row, int height, int64_t key, int64_t n,
                     const float* peaks) {
  if (!head.mask) return n;
  int64_t seen = 0;
  for (int m = 0; m < height; ++m) {
    const uint8_t* const mask = mask_row(s, head, row + m, key);
    const int64_t here = s.bytes_mask ? last_visible(mask, n)
                                      : last_visible(reinterpret_cast<const float*>(mask), n);
    const bool saw = here > 0 || s.bytes_mask || (key > 0 && peaks[m] > kHidden);
    if (!saw) return n;
    if (here > seen) seen = here;
  }
  return seen > 0 || key > 0 ? seen : 1;  // the first block begins the sums
}

// One tile of rows against the packed block of keys [key, key + packed).
void run_tile(const Attention& s, const Head& head, int64_t row, int height, int64_t key,
              int64_t packed, const Room& room, float* peaks, float* sums) {
  float* const scores = room.scores;
  const int64_t ld = s.score_row, below = seen_keys(s, row + height - 1, key, packed);
  const int64_t n = visible_keys(s, head, row, height, key, below, peaks);
  if (n == 0) return;
  RowProduct p{head.q + row * s.q.row, s.q.row, height, product_length(s.size), room.keys,
               kTileColumns * depth_of(s.size), scores, ld, round_up(n, kTileColumns), false};
  if (s.copies_rows) {
    for (int m = 0; m < height; ++m) take_row(s, head, row + m, room.rows + m * p.k);
    p.a = room.rows;
    p.lda = p.k;
  }
  multiply_rows(p, room.reorders, room.rows);
  const bool plain = !head.mask && s.softcap == 0 && s.scale > 0;  // scaled in the exponent
  for (int m = 0; m < height; ++m) {
    float* x = scores + m * ld;
    const int64_t seen = seen_keys(s, row + m, key, n);
    const float top = plain ? s.scale * highest_score(x, n, seen)
                            : score_row(s, x, n, seen, mask_row(s, head, row + m, key));
    const bool first = key == 0;
    const float before = first ? -INFINITY : peaks[m];
    const float peak = before > top ? before : top;
    const float more = exp_row(x, n, plain ? s.scale : 1.0f, peak);
    if (!first && peak != before) {
      const float factor = before == -INFINITY ? 0.0f : exp(splat(before - peak))[0];
      scale_row(head.y + (row + m) * head.y_row, s.v_size, factor);
      sums[m] *= factor;
    }
    peaks[m] = peak;
    sums[m] = first ? more : sums[m] + more;
    if (kProducts > 1) to_products(x, n, x);
  }
  p = {scores, ld, height, depth_of(n), room.values, kTileColumns * depth_of(packed),
       head.y + row * head.y_row, head.y_row, s.v_size, key > 0};
  multiply_rows(p, room.reorders, room.rows);
}

// Rows [begin, end) of one head.
void run_rows(const Attention& s, Head head, int64_t begin, int64_t end, bool reorders,
              float* scratch) {
  float* const values = scratch + s.k_elems;
  float* const scores = values + s.v_elems;
  const Room room{scratch, values, scores, scores + s.score_elems, reorders};
  float* const results = room.rows + s.a_elems;
  [[maybe_unused]] float* const y = head.y;
  // As addresses: row 0 may lie before any memory of ours.
  if (s.short_y) {
    head.y = reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(results) -
                                      static_cast<uintptr_t>(begin * s.v_size) * sizeof(float));
    head.y_row = s.v_size;
  }
  float* peaks = results + s.y_elems;
  float* sums = peaks + s.chunk_rows;
  for (int64_t key = 0; key < s.keys; key += s.block) {
    const int64_t n = s.keys - key < s.block ? s.keys - key : s.block;
    pack_block(s, head, key, n, room.keys, room.values);
    for (int64_t row = begin; row < end;) {
      const int height = product_rows(end - row);
      run_tile(s, head, row, height, key, n, room, peaks + (row - begin), sums + (row - begin));
      row += height;
    }
  }
  for (int64_t m = 0; m < end - begin; ++m) {  // a row that sees nothing gives 0
    scale_row(head.y + (begin + m) * head.y_row, s.v_size, sums[m] == 0 ? 0.0f : 1 / sums[m]);
#if defined(LITE_PAIRS)
    if (s.short_y)
      round_floats(results + m * s.v_size, reinterpret_cast<uint16_t*>(y) + (begin + m) * s.y.row, s.v_size);
#endif
  }
}

// A vector whose lanes add up to the dot product.
LITE_INLINE F dot_lanes(const float* a, const float* b, int64_t n) {
  F totals[2] = {F{}, F{}};  // a single one waits for the one before
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes)
    LITE_UNROLL for (int j = 0; j < 2; ++j)
      totals[j] = fma(load(a + i + j * kLanes), load(b + i + j * kLanes), totals[j]);
  for (; i < n; i += kLanes) {
    const int here = n - i < kLanes ? static_cast<int>(n - i) : kLanes;
    totals[0] = fma(load_part(a + i, here), load_part(b + i, here), totals[0]);
  }
  return totals[0] + totals[1];
}

// scores[j] = q k[j]; whole vectors of them are written. Lanes of as many keys are added up at once.
void score_keys(const float* q, const float* k, ptrdiff_t row, int64_t keys, int64_t size,
                float* scores) {
  for (int64_t j = 0; j < keys; j += kLanes) {
    F sums[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      sums[i] = dot_lanes(q, k + (j + i < keys ? j + i : j) * row, size);
    transpose(sums);
    for (int n = kLanes / 2; n > 0; n /= 2)
      LITE_UNROLL for (int i = 0; i < n; ++i) sums[i] += sums[i + n];
    store(scores + j, sums[0]);
  }
}

// y = the sum of weighted values, n elements of each, up to kValueVectors; whole: as many as that.
constexpr int kValueVectors = 4;
template <bool kWhole>
LITE_INLINE void weigh_values(const float* weights, int64_t keys, const float* v, ptrdiff_t row,
                              int n, float* y) {
  F totals[kValueVectors] = {};
  for (int64_t j = 0; j < keys; ++j, v += row) {
    const F weight = splat(weights[j]);
    LITE_UNROLL for (int i = 0; i < kValueVectors; ++i) {
      const int here = n - i * kLanes < kLanes ? n - i * kLanes : kLanes;
      if (kWhole) totals[i] = fma(weight, load(v + i * kLanes), totals[i]);
      else if (here > 0) totals[i] = fma(weight, load_part(v + i * kLanes, here), totals[i]);
    }
  }
  LITE_UNROLL for (int i = 0; i < kValueVectors; ++i) {
    const int here = n - i * kLanes < kLanes ? n - i * kLanes : kLanes;
    if (kWhole || here > 0) store_part(y + i * kLanes, totals[i], here);
  }
}

// One row without packing: keys and values are read once, where they lie.
void run_row(const Attention& s, const Head& head, int64_t row, float* scores) {
  const float* q = head.q + row * s.q.row;
  float* y = head.y + row * s.y.row;
  score_keys(q, head.k, s.k.row, s.keys, s.size, scores);
  const float peak = score_row(s, scores, s.keys, seen_keys(s, row, 0, s.keys),
                               mask_row(s, head, row, 0));
  const float total = exp_row(scores, s.keys, 1.0f, peak);
  for (int64_t e = 0; e < s.v_size; e += kValueVectors * kLanes) {
    const int64_t left = s.v_size - e;
    if (left >= kValueVectors * kLanes)
      weigh_values<true>(scores, s.keys, head.v + e, s.v.row, kValueVectors * kLanes, y + e);
    else
      weigh_values<false>(scores, s.keys, head.v + e, s.v.row, static_cast<int>(left), y + e);
  }
  scale_row(y, s.v_size, total == 0 ? 0.0f : 1 / total);
}

void run(const Step& step, int, int thread, int threads, void* scratch) {
  const Attention& s = *static_cast<const Attention*>(step.state);
  float* space = static_cast<float*>(scratch);
  const bool reorders = kPacks && !issues_in_order();
  int64_t begin, end;
  share(s.batches * s.heads * s.chunks, 1, thread, threads, &begin, &end);
  for (int64_t unit = begin; unit < end; ++unit) {
    const Head head = head_of(s, step, unit / s.chunks);
    const int64_t first = unit % s.chunks * s.chunk_rows;
    const int64_t last = first + s.chunk_rows < s.rows ? first + s.chunk_rows : s.rows;
    if (!s.few_rows) {
      run_rows(s, head, first, last, reorders, space);
      continue;
    }
    for (int64_t row = first; row < last; ++row) run_row(s, head, row, space);
  }
}

const Kernel kAttention[] = {
#if !defined(LITE_PAIRS)
    {"Attention", "f32_attention", prepare, run, kAcceptsPitch | kDivisible},
#endif
    {"Attention", "bf16_attention", prepare, run, kAcceptsPitch | kDivisible, suits},
};

}  // namespace
}  // namespace lite::LITE_ISA

LITE_KERNEL_TABLE(attention, kAttention)
