// How attention's operands lie, whatever their type: (batch, length, heads * size) or (batch, heads, length, size).
#pragma once

#include "lite_kernel.h"

namespace lite {

// Elements from one batch, head and row to the next.
struct HeadStrides {
  int64_t batch, head, row;
};

struct HeadShape {
  int64_t batch, heads, length, size;
  HeadStrides strides;
};

// Of a tensor whose type the caller has checked; `heads` counts for rank 3.
bool read_heads(const Tensor&, int64_t heads, HeadShape*);

struct AttentionShape {
  int64_t batches, heads, group;   // `group` query heads read the same keys
  int64_t rows, keys, size, v_size;
  HeadStrides q, k, v, y, mask;
  bool bytes_mask;                 // false hides a key
  bool causal;
  float scale;
};

// The four operands (all there, their types checked) and the step's attributes; fails for shapes that do not fit.
bool read_attention(const Step&, Env&, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& y, AttentionShape*);
// A mask of f32 or bool that broadcasts over the scores; none where `mask` is null.
bool read_attention_mask(const Tensor* mask, Env&, AttentionShape*);

// Bytes from the mask's begin to those of head h of batch b.
int64_t mask_offset(const AttentionShape&, int64_t b, int64_t h);

// Rows of a head that are one unit of work, all or a multiple of `grain`. Each unit packs the head's keys and
// values for itself, which takes as long as `packing` of its rows; the slowest of `threads` takes the least time.
int64_t unit_rows(const AttentionShape&, int64_t threads, int64_t grain, int64_t packing);

// Keys of [key, key + n) that a row sees, counted from `key`.
LITE_INLINE int64_t seen_keys(const AttentionShape& s, int64_t row, int64_t key, int64_t n) {
  if (!s.causal || row + 1 - key >= n) return n;
  return row + 1 > key ? row + 1 - key : 0;
}

}  // namespace lite
