// Attention: y = softmax(q·kᵀ·scale + mask)·v for each head, scores first bent by cap·tanh(s / cap) where cap
// is not 0. q and y (batch, heads, rows, size or v_size), k and v with `keys` rows and one head for `group` of q's;
// or (-DPACKED) heads inside rows, (batch, rows, heads·size); rows of q, k and v lie QP, KP and VP elements
// apart, the first q_at, k_at and v_at from the start. With -DMASK what is added to the score of a
// key lies b·mask_batch + h·mask_head + row·mask_row + key from the start; with `causal` a row sees keys up to
// its own number. A row that sees nothing is 0.
//
// An item makes a row: its scores in memory, then BLOCK vectors of columns at a time.
//@ options HALF HALF_TYPES ALIGNED FAST_FMA V=1,2,4,8,16 BLOCK=1,2,4 PACKED MASK
#define ADD(s, t) ((s) + (t))

//@ kernel attention
//@ let shared = heads / group
//@ let row_heads = 1 + PACKED * (heads - 1)
//@ let row_shared = 1 + PACKED * (shared - 1)
//@ need min(rows, keys, heads, group) > 0, min(size, v_size) > 0, heads % group == 0
//@ need min(mask_batch, mask_head, mask_row) >= 0, size % V == 0, v_size % (V * BLOCK) == 0
//@ need QP % V + KP % V + VP % V + q_at % V + k_at % V + v_at % V == 0 when ALIGNED
//@ need g2 * heads * max(rows, keys) * max(QP, max(KP, VP)) <= INT_MAX, g2 * heads * rows * keys <= INT_MAX
//@ items rows, heads, g2
//@ reads q[q_at, g2 * heads * rows / row_heads, QP, row_heads * size]
//@ reads k[k_at, g2 * shared * keys / row_shared, KP, row_shared * size]
//@ reads v[v_at, g2 * shared * keys / row_shared, VP, row_shared * v_size]
//@ reads mask[(g2 - 1) * mask_batch + (heads - 1) * mask_head + (rows - 1) * mask_row + keys] when MASK
//@ writes scores[g2 * heads * rows * keys], y[g2 * heads * rows * v_size]
kernel void attention(global const T *q, global const T *k, global const T *v, global const T *mask,
                      global T *y, global float *scores, int rows, int keys, int heads, int group, int size,
                      int v_size, int mask_batch, int mask_head, int mask_row, int QP, int q_at, int KP,
                      int k_at, int VP, int v_at, int causal, float scale, float cap) {
  const int row = get_global_id(0), h = get_global_id(1), b = get_global_id(2);
  if (row >= rows || h >= heads) return;
  const int seen = causal ? min(keys, row + 1) : keys;
  const int y_row = ROW_HEADS(heads) * v_size;
  q += q_at + HEAD(b, h, heads, rows, QP, size) + (size_t)row * QP;
  k += k_at + HEAD(b, h / group, heads / group, keys, KP, size);
  v += v_at + HEAD(b, h / group, heads / group, keys, VP, v_size);
  y += HEAD(b, h, heads, rows, y_row, v_size) + (size_t)row * y_row;
  scores += (((size_t)b * heads + h) * rows + row) * keys;
#ifdef MASK
  mask += (size_t)b * mask_batch + (size_t)h * mask_head + (size_t)row * mask_row;
#endif
  float top = -INFINITY, sum = 0;
  for (int key = 0; key < seen; ++key) {
    FV many = 0;
    for (int s = 0; s < size; s += V) many = FMA(LDV(q, s), LDV(k, key * KP + s), many);
    float score = 0;
    FOLD(many, score, ADD);
    score *= scale;
    if (cap != 0) score = cap * tanh(score / cap);
#ifdef MASK
    score += LD(mask, key);
#endif
    scores[key] = score;
    top = fmax(top, score);
  }
  if (top == -INFINITY) top = 0;
  for (int key = 0; key < seen; ++key) {
    scores[key] = exp(scores[key] - top);
    sum += scores[key];
  }
  const float part = sum == 0 ? 0 : 1 / sum;
  for (int c = 0; c < v_size; c += V * BLOCK) {
    FV many[BLOCK];
    UNROLL for (int i = 0; i < BLOCK; ++i) many[i] = 0;
    for (int key = 0; key < seen; ++key) {
      const FV chance = scores[key];
      UNROLL for (int i = 0; i < BLOCK; ++i)
        many[i] = FMA(chance, LDV(v, key * VP + c + i * V), many[i]);
    }
    UNROLL for (int i = 0; i < BLOCK; ++i) {
      const FV done = many[i] * part;
      STV(y, c + i * V, done);
    }
  }
}
