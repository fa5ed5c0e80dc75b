// Convolution of bytes as an implicit GEMM for GPUs: a work-group makes BM pixels times BN channels through local
// memory, a work-item TM x TN of them in registers. Four numbers of depth are a word of signed bytes: w (K, OP) with
// k = ((ky·KW + kx)·C + c) / 4, OP a multiple of BN, K one of BK, zeros beyond. Bytes of x become signed, or with
// -DDOT_QCOM unsigned, by `x_flip`; `x_fill` stands for what lies outside the image. Group axis 2 splits K: each part
// writes its own plane of `partial`, and `sum` adds them up. -DW_ZERO: weights have zero points.
//
// Pixels of x and y lie XP and YP elements apart, the first x_at and y_at from the start; the residual is dense.
//@ options QUADS SPLIT W_ZERO DOT_KHR DOT_ARM DOT_ARM_ADD DOT_QCOM DOT_PTX
//@ options BM=4..256 BN=4..256 TM=4,8 TN=4,8 BK=1..64
#define ONES 0x01010101u
#define WX (BN / TN)
#define WY (BM / TM)
#define ITEMS (WX * WY)
#define A_LOADS (BM * BK / ITEMS)
#define B_LOADS (BK * BN / ITEMS)
// Rows and columns of an item come in fours, one four from each stripe of the tile: neighbouring items
// then read neighbouring words of local memory.
#define ROW(i) ((i) / 4 * (WY * 4) + ty * 4 + (i) % 4)
#define COLUMN(j) ((j) / 4 * (WX * 4) + tx * 4 + (j) % 4)

//@ kernel tile
//@ let items = BN / TN * (BM / TM)
//@ let taps = (K + BK) * 4 / (C * KW)
//@ group items, 1, 1
//@ items up(O, BN) * items, up(M, BM), g2
//@ local BK * (BM + BN + 4) * 4
//@ need BM % TM + BN % TN == 0, BM * BK % items == 0, BN * BK % items == 0, items % BK == 0
//@ need min(M, C, O, OH, OW, KH, KW, K) > 0, min(H, W, SH, SW, DH, DW, part) >= 0, K % BK == 0
//@ need C % 4 + XP % 4 + x_at % 4 == 0 when QUADS
//@ need part % BK == 0, part * g2 >= K, part * (g2 - 1) < K
//@ need g2 == 1 when SPLIT == 0
//@ need (taps * DH * W + KW * DW) * XP + C <= INT_MAX, O + BN <= INT_MAX, M + BM <= INT_MAX
//@ need (K + BK) * 4 <= INT_MAX
//@ need OH * SH + (taps + 1) * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ need (max(PT, -PT) * W + max(PL, -PL)) * XP <= INT_MAX
//@ reads x[x_at, up(M, OH * OW) * H * W, XP, C]
//@ reads w[(K - 1) * OP + up(O, BN) * BN]
//@ reads bias[O], scale[O] when SPLIT == 0
//@ reads w_zero[O] when W_ZERO
//@ reads residual[M * O] when adding * (SPLIT == 0)
//@ writes partial[g2 * M * O] when SPLIT
//@ writes y[y_at, M, YP, O] when SPLIT == 0
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void tile(global const uchar *x, global const uint *w, global const int *bias, global const float *scale,
          global const int *w_zero, global const uchar *residual, global uchar *y, global int *partial, int M, int H,
          int W, int C, int OH, int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW, int OP,
          int K, int part, int XP, int x_at, int YP, int y_at, int x_flip, int x_fill, REQUANTIZE) {
  local uint a_tile[BK][BM + 4], b_tile[BK][BN];
  const int id = get_local_id(0), tx = id % WX, ty = id / WX;
  const int n0 = get_group_id(0) * BN, m0 = get_group_id(1) * BM;
  const int first = get_group_id(2) * part, last = min(first + part, K);
  x += x_at;
  y += y_at;
  // What this item loads of A: rows fixed, a word at a time, the same k in every row.
  int row_y[A_LOADS], row_x[A_LOADS], row_at[A_LOADS];
  for (int i = 0; i < A_LOADS; ++i) {
    const int m = min(m0 + (id + i * ITEMS) / BK, M - 1);
    row_y[i] = m / OW % OH * SH - PT;
    row_x[i] = m % OW * SW - PL;
    row_at[i] = ((m / OW / OH * H + row_y[i]) * W + row_x[i]) * XP;
  }
  const int start = (first + id % BK) * 4;
  int k_c = start % C, k_y = start / C / KW, k_x = start / C % KW;
  uint a_next[A_LOADS], b_next[B_LOADS];
  int acc[TM][TN];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) acc[i][j] = 0;
#ifdef W_ZERO
  int total[TM];
  for (int i = 0; i < TM; ++i) total[i] = 0;
#endif

  for (int k0 = first; k0 < last + BK; k0 += BK) {
    if (k0 > first) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < A_LOADS; ++i) a_tile[id % BK][(id + i * ITEMS) / BK] = a_next[i];
      for (int i = 0; i < B_LOADS; ++i) b_tile[(id + i * ITEMS) / BN][(id + i * ITEMS) % BN] = b_next[i];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (k0 < last) {
      for (int i = 0; i < A_LOADS; ++i) {
#ifdef QUADS
        const int yy = row_y[i] + k_y * DH, xx = row_x[i] + k_x * DW;
        uint word = k_y < KH ? (uint)x_fill : 0;
        if (k_y < KH && yy >= 0 && yy < H && xx >= 0 && xx < W)
          word = *(global const uint *)(x + row_at[i] + (k_y * DH * W + k_x * DW) * XP + k_c) ^ (uint)x_flip;
        a_next[i] = word;
#else
        uchar v[4];
        int c = k_c, ky = k_y, kx = k_x;
        for (int e = 0; e < 4; ++e) {
          const int yy = row_y[i] + ky * DH, xx = row_x[i] + kx * DW;
          v[e] = ky < KH ? (uchar)x_fill : (uchar)0;
          if (ky < KH && yy >= 0 && yy < H && xx >= 0 && xx < W)
            v[e] = FLIP(x[row_at[i] + (ky * DH * W + kx * DW) * XP + c], x_flip);
          if (++c == C) { c = 0; if (++kx == KW) { kx = 0; ++ky; } }
        }
        a_next[i] = as_uint((uchar4)(v[0], v[1], v[2], v[3]));
#endif
      }
      for (k_c += BK * 4; k_c >= C; k_c -= C)
        if (++k_x == KW) { k_x = 0; ++k_y; }
      for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
        b_next[i] = w[(size_t)(k0 + q / BN) * OP + n0 + q % BN];
      }
    }
    if (k0 > first) {
      UNROLL for (int k = 0; k < BK; ++k) {
        uint a[TM], b[TN];
        UNROLL for (int i = 0; i < TM; ++i) a[i] = a_tile[k][ROW(i)];
        UNROLL for (int j = 0; j < TN; ++j) b[j] = b_tile[k][COLUMN(j)];
        UNROLL for (int i = 0; i < TM; ++i)
          UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = DOT(b[j], a[i], acc[i][j]);
#ifdef W_ZERO
        UNROLL for (int i = 0; i < TM; ++i) total[i] = DOT(ONES, a[i], total[i]);
#endif
      }
    }
  }

  for (int i = 0; i < TM; ++i) {
    const int m = m0 + ROW(i);
    if (m >= M) continue;
    for (int j = 0; j < TN; ++j) {
      const int n = n0 + COLUMN(j);
      if (n >= O) continue;
      int s = acc[i][j];
#ifdef W_ZERO
      s -= w_zero[n] * total[i];
#endif
      const size_t at = (size_t)m * O + n;
#ifdef SPLIT
      partial[(size_t)get_group_id(2) * M * O + at] = s;
#else
      const uchar old = adding ? residual[at] : (uchar)0;
      y[(size_t)m * YP + n] = requantized(s + bias[n], scale[n], old, REQUANTIZE_ARGS);
#endif
    }
  }
}

// The parts of K added up.
//@ kernel sum
//@ need total > 0, O > 0, total % O == 0, parts >= 0
//@ items total
//@ reads partial[parts * total], bias[O], scale[O]
//@ reads residual[total] when adding
//@ writes y[y_at, total / O, YP, O]
kernel void sum(global const int *partial, global const int *bias, global const float *scale,
                global const uchar *residual, global uchar *y, int total, int O, int parts, int YP, int y_at,
                REQUANTIZE) {
  const int i = get_global_id(0);
  if (i >= total) return;
  int s = bias[i % O];
  for (int p = 0; p < parts; ++p) s += partial[(size_t)p * total + i];
  const uchar old = adding ? residual[i] : (uchar)0;
  y[(size_t)(i / O) * YP + y_at + i % O] = requantized(s, scale[i % O], old, REQUANTIZE_ARGS);
}
