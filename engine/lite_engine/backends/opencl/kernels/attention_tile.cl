// attention.cl for GPUs, without a matrix of scores (Dao et al., "FlashAttention", 2022): a work-group makes BQ rows
// times BV columns of one head from BK keys at a time, and shrinks its sums when a block has a larger score. An
// item has 2 rows times 4 keys, and 4 columns; q, k and v come through local memory.
//@ options HALF PACKED MASK
#define ITEMS 128
#define BQ 16
#define BK 64
#define BV 64
#define DEEP 32  // of a step of q·k, and keys of a step of v
#define EACH_ROW UNROLL for (int i = 0; i < 2; ++i)
#define EACH_COLUMN UNROLL for (int j = 0; j < 4; ++j)
#define EACH_SUM EACH_ROW EACH_COLUMN

//@ kernel attention_tile
//@ let shared = heads / group
//@ let row_heads = 1 + PACKED * (heads - 1)
//@ let row_shared = 1 + PACKED * (shared - 1)
//@ let blocks = up(v_size, 64)
//@ group 128, 1, 1
//@ items up(rows, 16) * 128, heads, g2
//@ local 15808
//@ need min(rows, keys, heads, group) > 0, min(size, v_size) > 0, heads % group == 0
//@ need min(mask_batch, mask_head, mask_row) >= 0, g2 % blocks == 0
//@ need rows + 16 <= INT_MAX, keys + 64 <= INT_MAX, max(size, v_size) + 64 <= INT_MAX
//@ need g2 / blocks * heads * max(rows, keys) * max(QP, max(KP, VP)) <= INT_MAX
//@ reads q[q_at, g2 / blocks * heads * rows / row_heads, QP, row_heads * size]
//@ reads k[k_at, g2 / blocks * shared * keys / row_shared, KP, row_shared * size]
//@ reads v[v_at, g2 / blocks * shared * keys / row_shared, VP, row_shared * v_size]
//@ reads mask[(g2 / blocks - 1) * mask_batch + (heads - 1) * mask_head + (rows - 1) * mask_row + keys] when MASK
//@ writes y[g2 / blocks * heads * rows * v_size]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void attention_tile(global const T *q, global const T *k, global const T *v, global const T *mask,
                    global T *y, int rows, int keys, int heads, int group, int size, int v_size,
                    int mask_batch, int mask_head, int mask_row, int QP, int q_at, int KP, int k_at, int VP,
                    int v_at, int causal, float scale, float cap) {
  local float q_tile[BQ * (DEEP + 1)], tile[BK * (DEEP + 1)], chances[BQ * (BK + 1)], tops[BQ * 17];
  const int id = get_local_id(0), tx = id % 16, ty = id / 16 * 2;
  const int first = get_group_id(0) * BQ, h = get_group_id(1);
  const int blocks = (v_size + BV - 1) / BV, b = get_group_id(2) / blocks;
  const int column = get_group_id(2) % blocks * BV;
  const int y_row = ROW_HEADS(heads) * v_size;
  q += q_at + HEAD(b, h, heads, rows, QP, size);
  k += k_at + HEAD(b, h / group, heads / group, keys, KP, size);
  v += v_at + HEAD(b, h / group, heads / group, keys, VP, v_size);
  y += HEAD(b, h, heads, rows, y_row, v_size);
#ifdef MASK
  mask += (size_t)b * mask_batch + (size_t)h * mask_head;
#endif
  float acc[2][4], top[2], sum[2];
  EACH_SUM acc[i][j] = 0;
  EACH_ROW {
    top[i] = -INFINITY;
    sum[i] = 0;
  }
  const int seen = causal ? min(keys, first + BQ) : keys;
  for (int key0 = 0; key0 < seen; key0 += BK) {
    float score[2][4];
    EACH_SUM score[i][j] = 0;
    for (int s0 = 0; s0 < size; s0 += DEEP) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int e = id; e < BQ * DEEP; e += ITEMS) {
        const int r = e / DEEP, s = e % DEEP, row = first + r;
        q_tile[r * (DEEP + 1) + s] = row < rows && s0 + s < size ? LD(q, row * QP + s0 + s) : 0;
      }
      for (int e = id; e < BK * DEEP; e += ITEMS) {
        const int r = e / DEEP, s = e % DEEP, key = key0 + r;
        tile[r * (DEEP + 1) + s] = key < keys && s0 + s < size ? LD(k, key * KP + s0 + s) : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int s = 0; s < DEEP; ++s) {
        float mine[2], other[4];
        EACH_ROW mine[i] = q_tile[(ty + i) * (DEEP + 1) + s];
        EACH_COLUMN other[j] = tile[(tx + j * 16) * (DEEP + 1) + s];
        EACH_SUM score[i][j] = mad(mine[i], other[j], score[i][j]);
      }
    }
    EACH_ROW {
      const int row = first + ty + i;
      float most = -INFINITY;
      EACH_COLUMN {
        const int key = key0 + tx + j * 16;
        float s = score[i][j] * scale;
        if (cap != 0) s = cap * tanh(s / cap);
#ifdef MASK
        if (row < rows && key < keys) s += LD(mask, (size_t)row * mask_row + key);
#endif
        score[i][j] = key < keys && (!causal || key <= row) ? s : -INFINITY;
        most = fmax(most, score[i][j]);
      }
      tops[(ty + i) * 17 + tx] = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH_ROW {
      float most = top[i];
      for (int e = 0; e < 16; ++e) most = fmax(most, tops[(ty + i) * 17 + e]);
      const float base = most == -INFINITY ? 0 : most, shrink = exp(top[i] - base);
      top[i] = most;
      sum[i] *= shrink;
      EACH_COLUMN {
        const float chance = exp(score[i][j] - base);
        acc[i][j] *= shrink;
        sum[i] += chance;
        chances[(ty + i) * (BK + 1) + tx + j * 16] = chance;
      }
    }
    for (int part = 0; part < BK; part += DEEP) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int e = id; e < DEEP * BV; e += ITEMS) {
        const int key = key0 + part + e / BV, c = column + e % BV;
        tile[e] = key < keys && c < v_size ? LD(v, key * VP + c) : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int r = 0; r < DEEP; ++r) {
        float mine[2];
        EACH_ROW mine[i] = chances[(ty + i) * (BK + 1) + part + r];
        EACH_SUM acc[i][j] = mad(mine[i], tile[r * BV + tx + j * 16], acc[i][j]);
      }
    }
  }
  EACH_ROW tops[(ty + i) * 17 + tx] = sum[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_ROW {
    const int row = first + ty + i;
    float whole = 0;
    for (int e = 0; e < 16; ++e) whole += tops[(ty + i) * 17 + e];
    const float part = whole == 0 ? 0 : 1 / whole;
    EACH_COLUMN {
      const int c = column + tx + j * 16;
      if (row < rows && c < v_size) ST(y, row * y_row + c, acc[i][j] * part);
    }
  }
}
