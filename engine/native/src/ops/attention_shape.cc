#include "ops/attention_shape.h"

#include <math.h>

namespace lite {

bool read_heads(const Tensor& t, int64_t heads, HeadShape* out) {
  if (t.rank != 3 && t.rank != 4) return false;
  int64_t s[kMaxRank];
  strides_of(t, s);
  if (t.rank == 4) {
    *out = {t.dims[0], t.dims[1], t.dims[2], t.dims[3], {s[0], s[1], s[2]}};
    return true;
  }
  if (heads < 1 || t.dims[2] % heads) return false;
  const int64_t size = t.dims[2] / heads;
  *out = {t.dims[0], heads, t.dims[1], size, {s[0], size, s[1]}};
  return true;
}

bool read_attention(const Step& step, Env& env, const Tensor& tq, const Tensor& tk, const Tensor& tv,
                    const Tensor& ty, AttentionShape* s) {
  HeadShape q{}, k{}, v{}, y{};
  const int64_t heads = attr_int(step, "q_num_heads", 0);
  const int64_t kv_heads = attr_int(step, "kv_num_heads", 0);
  if (!read_heads(tq, heads, &q) || !read_heads(tk, kv_heads, &k) || !read_heads(tv, kv_heads, &v) ||
      !read_heads(ty, heads, &y))
    return env.fail("needs q, k, v and y of rank 3 (with numbers of heads) or 4");
  if (k.batch != q.batch || v.batch != q.batch || y.batch != q.batch || v.heads != k.heads ||
      y.heads != q.heads || v.length != k.length || y.length != q.length || k.size != q.size ||
      y.size != v.size)
    return env.fail("shapes of q, k, v and y do not fit each other");
  if (k.heads < 1 || q.heads % k.heads) return env.fail("heads of q do not share those of k");
  if (q.size < 1 || v.size < 1 || k.length < 1 || q.length < 1)
    return env.fail("an axis has no elements");
  if (attr_int(step, "left_window_size", -1) >= 0 || attr_int(step, "right_window_size", -1) >= 0)
    return env.fail("has no windows");
  s->batches = q.batch;
  s->heads = q.heads;
  s->group = q.heads / k.heads;
  s->rows = q.length;
  s->keys = k.length;
  s->size = q.size;
  s->v_size = v.size;
  s->q = q.strides;
  s->k = k.strides;
  s->v = v.strides;
  s->y = y.strides;
  const double scale = attr_float(step, "scale", 0);
  s->scale = static_cast<float>(scale != 0 ? scale : 1 / ::sqrt(static_cast<double>(q.size)));
  s->causal = attr_int(step, "is_causal", 0) != 0;
  return true;
}

bool read_attention_mask(const Tensor* t, Env& env, AttentionShape* s) {
  if (!t) return true;
  s->bytes_mask = t->dtype == DType::kBool;
  if (!s->bytes_mask && t->dtype != DType::kF32) return env.fail("attn_mask must be f32 or bool");
  if (t->rank < 2 || t->rank > 4) return env.fail("attn_mask must have rank 2 to 4");
  int64_t strides[kMaxRank];
  strides_of(*t, strides);
  const int64_t want[4] = {s->batches, s->heads, s->rows, s->keys};
  int64_t* step[3] = {&s->mask.batch, &s->mask.head, &s->mask.row};
  for (int i = 0; i < t->rank; ++i) {
    const int axis = 4 - t->rank + i;
    if (axis == 3 ? t->dims[i] != want[3] : t->dims[i] != want[axis] && t->dims[i] != 1)
      return env.fail("attn_mask does not broadcast over the scores");
    if (axis < 3) *step[axis] = t->dims[i] == 1 ? 0 : strides[i];
  }
  return true;
}

int64_t unit_rows(const AttentionShape& s, int64_t threads, int64_t grain, int64_t packing) {
  constexpr int64_t kLeastGrains = 4, kMost = 8;  // of a unit, and units per thread
  int64_t most = s.rows / (kLeastGrains * grain) + 1, best = s.rows, least = INT64_MAX;
  if (most > kMost * threads) most = kMost * threads;
  for (int64_t units = 1; units <= most; ++units) {
    const int64_t share = (s.rows + units - 1) / units, rows = (share + grain - 1) / grain * grain;
    const int64_t all = s.batches * s.heads * ((s.rows + rows - 1) / rows);
    const int64_t cost = (all + threads - 1) / threads * (rows + packing);
    if (cost < least) best = rows, least = cost;
  }
  return best;
}

int64_t mask_offset(const AttentionShape& s, int64_t b, int64_t h) {
  return (b * s.mask.batch + h * s.mask.head) * (s.bytes_mask ? 1 : 4);
}

}  // namespace lite
