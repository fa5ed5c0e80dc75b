// Convolution as an implicit GEMM for GPUs: a work-group makes BM pixels times BN channels through local
// memory, a work-item TM x TN of them in registers. w (K, OP) with k = (ky·KW + kx)·C + c, OP a
// multiple of BN, K a multiple of BK, zeros beyond. Group axis 2 splits K: each part writes its own
// plane of `partial` and conv_sum adds them up; or (-DBATCHED) it numbers independent products, or
// (-DGROUPED) groups of C channels of x and O of y.
//
// Pixels of x and y lie XP and YP elements apart, the first x_at and y_at from the start; the residual is
// dense, as y is with -DGROUPED.
//
// -DMATMUL: product of two computed matrices, x (planes, M, C) and w (planes, C, O) as they lie; `part` and
// OP are the elements from plane to plane, 0 where all share one. With -DSPLIT, group axis 2 has all PLANES
// for each part of K, PART deep.
//
// -DHALF_MATH: values stay half through local memory and are multiplied as half2; sums of BK products
// are added up in float, so that the error does not grow with K.
//@ options HALF HALF_MATH POINTWISE QUADS OCTS SPLIT BATCHED GROUPED MATMUL RESIDUAL WIDE_OUT
//@ options BM=4..256 BN=4..256 TM=4,8 TN=4,8 BK=4..64 ACT(x) ACT_A:number ACT_B:number
//@ options PLANES=1..65536 PART=1..1048576 SCATTER=1..65536 SCATTER_STEP=1,2,4 DECONV_H=1..4096 DECONV_W=1..4096
#ifdef HALF_MATH
#define E half
#define E4 half4
#define LDE(p, i) (p)[i]
#define LDE4(p, i) (*(global const half4 *)((p) + (i)))
#define A_PAD 8
#else
#define E float
#define E4 float4
#define LDE(p, i) LD(p, i)
#ifdef HALF
#define LDE4(p, i) LD4(p, i)
#else
#define LDE4(p, i) (*(global const float4 *)((p) + (i)))
#endif
#define A_PAD 4
#endif
#define WX (BN / TN)
#define WY (BM / TM)
#define ITEMS (WX * WY)
#define A_LOADS (BM * BK / 4 / ITEMS)
#define B_LOADS (BK * BN / 4 / ITEMS)
// Rows and columns of an item come in fours, one four from each stripe of the tile: neighbouring items
// then read neighbouring words of local memory.
#define ROW(i) ((i) / 4 * (WY * 4) + ty * 4 + (i) % 4)
#define COLUMN(j) ((j) / 4 * (WX * 4) + tx * 4 + (j) % 4)

//@ kernel conv_tile
//@ let items = BN / TN * (BM / TM)
//@ let plane = MATMUL * part + BATCHED * M * C + GROUPED * C
//@ let taps = (K + BK) / (C * KW)
//@ let plain = SPLIT + BATCHED + GROUPED + MATMUL == 0
//@ let count = GROUPED * (g2 - 1) + 1
//@ let both = SPLIT * MATMUL
//@ let planes = both * PLANES + (1 - both) * g2
//@ group items, 1, 1
//@ items up(O, BN) * items, up(M, BM), g2
//@ local BK * (BM + BN + 8) * 4
//@ need BM % TM + BN % TN + BK % 4 == 0, BM * BK % (4 * items) == 0, BN * BK % (4 * items) == 0
//@ need min(M, C, O, OH, OW, KH, KW, K) > 0, min(H, W, SH, SW, DH, DW, part) >= 0
//@ need max(SPLIT, MATMUL) + BATCHED + GROUPED + (SCATTER > 0) <= 1, K % BK == 0
//@ need planes > 0, PART % BK == 0, g2 % PLANES == 0, PART * g2 >= K * planes, PART * (g2 - planes) < K * planes when both
//@ need C % 4 + XP % 4 + x_at % 4 + plane % 4 == 0 when QUADS
//@ need KH == 1, KW == 1, SH == 1, SW == 1, PT == 0, PL == 0, OH == H, OW == W when POINTWISE
//@ need O % 4 == 0 when WIDE_OUT
//@ need OP % 4 == 0 when WIDE_OUT + (MATMUL == 0)
//@ need YP == g2 * O when GROUPED
//@ need part % BK == 0, part * g2 >= K, part * (g2 - 1) < K when SPLIT * (1 - MATMUL) + plain
//@ need g2 == 1 when plain
//@ need (taps * DH * W + KW * DW) * XP + C <= INT_MAX, O + BN <= INT_MAX, M + BM <= INT_MAX
//@ need OH * SH + (taps + 1) * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ need (max(PT, -PT) * W + max(PL, -PL)) * XP <= INT_MAX
//@ need M % (H * W) == 0, O == SCATTER * DECONV_H * DECONV_W, SCATTER % SCATTER_STEP == 0 when SCATTER
//@ reads x[(planes - 1) * plane + x_at, up(M, OH * OW) * H * W, XP, C]
//@ reads w[(BATCHED + GROUPED) * (g2 - 1) * K * OP + (K - 1) * OP + up(O, BN) * BN] when MATMUL == 0
//@ reads w[(planes - 1) * OP + C * O] when MATMUL
//@ reads bias[count * O] when (plain + GROUPED) * (SCATTER == 0)
//@ reads bias[SCATTER] when SCATTER
//@ reads residual[M * count * O] when RESIDUAL * (1 - SPLIT) * (1 - BATCHED) * (SCATTER == 0)
//@ writes partial[g2 * M * O] when SPLIT + BATCHED
//@ writes y[(MATMUL * M + GROUPED) * (g2 - 1) * O + y_at, M, YP, O] when (SPLIT + BATCHED == 0) * (SCATTER == 0)
//@ writes y[y_at + M * O] when SCATTER
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_tile(global const T *x, global const T *w, global const float *bias,
               global const T *residual, global T *y, global float *partial, int M, int H, int W,
               int C, int OH, int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL, int DH,
               int DW, int OP, int K, int part, int XP, int x_at, int YP, int y_at) {
  local E a_tile[BK][BM + A_PAD] __attribute__((aligned(16)));
  local E b_tile[BK][BN] __attribute__((aligned(16)));
  const int id = get_local_id(0), tx = id % WX, ty = id / WX;
  const int n0 = get_group_id(0) * BN, m0 = get_group_id(1) * BM;
  x += x_at;
  y += y_at;
#ifdef MATMUL
#ifdef SPLIT
  const int plane = get_group_id(2) % PLANES;
  const int first = get_group_id(2) / PLANES * PART, last = min(first + PART, K);
#else
  const int plane = get_group_id(2), first = 0, last = K;
#endif
  x += (size_t)plane * part;
  w += (size_t)plane * OP;
  y += (size_t)plane * M * O;
#elif defined(BATCHED)
  const int first = 0, last = K;
  x += (size_t)get_group_id(2) * M * C;
  w += (size_t)get_group_id(2) * K * OP;
#elif defined(GROUPED)
  const int first = 0, last = K;
  w += (size_t)get_group_id(2) * K * OP;
  x += get_group_id(2) * C;
  y += get_group_id(2) * O;
  bias += get_group_id(2) * O;
  residual += get_group_id(2) * O;
#else
  const int first = get_group_id(2) * part, last = min(first + part, K);
#endif

  // What this item loads of A: rows fixed, four neighbouring k at a time, the same k in every row.
  int row_y[A_LOADS], row_x[A_LOADS], row_at[A_LOADS];
  for (int i = 0; i < A_LOADS; ++i) {
    const int m = min(m0 + (id + i * ITEMS) / (BK / 4), M - 1);
    row_y[i] = m / OW % OH * SH - PT;
    row_x[i] = m % OW * SW - PL;
    row_at[i] = ((m / OW / OH * H + row_y[i]) * W + row_x[i]) * XP;
  }
  const int start = first + id % (BK / 4) * 4;
  int k_c = start % C, k_y = start / C / KW, k_x = start / C % KW;
  E4 a_next[A_LOADS], b_next[B_LOADS];
  float acc[TM][TN];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) acc[i][j] = 0;

  for (int k0 = first; k0 < last + BK; k0 += BK) {
    if (k0 > first) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < A_LOADS; ++i) {
        const int q = id + i * ITEMS, m = q / (BK / 4), k = q % (BK / 4) * 4;
        a_tile[k][m] = a_next[i].x;
        a_tile[k + 1][m] = a_next[i].y;
        a_tile[k + 2][m] = a_next[i].z;
        a_tile[k + 3][m] = a_next[i].w;
      }
      for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
        *(local E4 *)&b_tile[q / (BN / 4)][q % (BN / 4) * 4] = b_next[i];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (k0 < last) {
#ifdef QUADS
      const int tap = (k_y * DH * W + k_x * DW) * XP + k_c;
#endif
      for (int i = 0; i < A_LOADS; ++i) {
#ifdef QUADS
#ifdef POINTWISE
        const int good = k_y < KH;
#else
        const int yy = row_y[i] + k_y * DH, xx = row_x[i] + k_x * DW;
        const int good = k_y < KH && yy >= 0 && yy < H && xx >= 0 && xx < W;
#endif
        a_next[i] = good ? LDE4(x, row_at[i] + tap) : (E4)(0);
#else
        E v[4];
        int c = k_c, ky = k_y, kx = k_x;
        for (int e = 0; e < 4; ++e) {
          const int yy = row_y[i] + ky * DH, xx = row_x[i] + kx * DW;
          const int good = ky < KH && yy >= 0 && yy < H && xx >= 0 && xx < W;
          v[e] = good ? LDE(x, row_at[i] + (ky * DH * W + kx * DW) * XP + c) : 0;
          if (++c == C) { c = 0; if (++kx == KW) { kx = 0; ++ky; } }
        }
        a_next[i] = (E4)(v[0], v[1], v[2], v[3]);
#endif
      }
      k_c += BK;
      while (k_c >= C) {
        k_c -= C;
        if (++k_x == KW) { k_x = 0; ++k_y; }
      }
      for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
#ifdef MATMUL
        const int k = k0 + q / (BN / 4), n = n0 + q % (BN / 4) * 4;
#ifdef WIDE_OUT
        b_next[i] = k < C && n < O ? LDE4(w, (size_t)k * O + n) : (E4)(0);
#else
        E v[4];
        for (int e = 0; e < 4; ++e) v[e] = k < C && n + e < O ? LDE(w, (size_t)k * O + n + e) : (E)0;
        b_next[i] = (E4)(v[0], v[1], v[2], v[3]);
#endif
#else
        b_next[i] = LDE4(w, (size_t)(k0 + q / (BN / 4)) * OP + n0 + q % (BN / 4) * 4);
#endif
      }
    }
    if (k0 > first) {
#ifdef HALF_MATH
      half2 sum[TM][TN / 2];
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN / 2; ++j) sum[i][j] = (half2)(0);
      for (int k = 0; k < BK; ++k) {
        half4 a[TM / 4], b[TN / 4];
        for (int i = 0; i < TM / 4; ++i) a[i] = *(local half4 *)&a_tile[k][ROW(i * 4)];
        for (int j = 0; j < TN / 4; ++j) b[j] = *(local half4 *)&b_tile[k][COLUMN(j * 4)];
        for (int i = 0; i < TM / 4; ++i)
          for (int j = 0; j < TN / 4; ++j) {
            sum[i * 4][j * 2] = a[i].xx * b[j].xy + sum[i * 4][j * 2];
            sum[i * 4][j * 2 + 1] = a[i].xx * b[j].zw + sum[i * 4][j * 2 + 1];
            sum[i * 4 + 1][j * 2] = a[i].yy * b[j].xy + sum[i * 4 + 1][j * 2];
            sum[i * 4 + 1][j * 2 + 1] = a[i].yy * b[j].zw + sum[i * 4 + 1][j * 2 + 1];
            sum[i * 4 + 2][j * 2] = a[i].zz * b[j].xy + sum[i * 4 + 2][j * 2];
            sum[i * 4 + 2][j * 2 + 1] = a[i].zz * b[j].zw + sum[i * 4 + 2][j * 2 + 1];
            sum[i * 4 + 3][j * 2] = a[i].ww * b[j].xy + sum[i * 4 + 3][j * 2];
            sum[i * 4 + 3][j * 2 + 1] = a[i].ww * b[j].zw + sum[i * 4 + 3][j * 2 + 1];
          }
      }
      for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN / 2; ++j) {
          acc[i][j * 2] += (float)sum[i][j].x;
          acc[i][j * 2 + 1] += (float)sum[i][j].y;
        }
#else
      for (int k = 0; k < BK; ++k) {
        float a[TM], b[TN];
        for (int i = 0; i < TM; i += 4) vstore4(*(local float4 *)&a_tile[k][ROW(i)], 0, a + i);
        for (int j = 0; j < TN; j += 4) vstore4(*(local float4 *)&b_tile[k][COLUMN(j)], 0, b + j);
        for (int i = 0; i < TM; ++i)
          for (int j = 0; j < TN; ++j) acc[i][j] = mad(a[i], b[j], acc[i][j]);
      }
#endif
    }
  }

  // Four columns at a time; they are neighbours in y too. Without -DWIDE_OUT the last may stick out.
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + ROW(i);
    if (m >= M) continue;
    for (int j = 0; j < TN; j += 4) {
      const int n = n0 + COLUMN(j);
      if (n >= O) continue;
      const float4 v = (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
#ifdef SCATTER
      // A transposed convolution whose stride is its kernel: n = (ky, kx, o) lands on its own pixel.
      // O is a multiple of SCATTER, and where SCATTER is not one of four, columns go one by one.
      for (int e = 0; e < 4; e += SCATTER_STEP) {
        if (n + e >= O) break;
        const int o = (n + e) % SCATTER, sx = (n + e) / SCATTER % DECONV_W;
        const int sy = (n + e) / SCATTER / DECONV_W;
        const int py = m / W % H * DECONV_H + sy, px = m % W * DECONV_W + sx;
        const size_t to =
            (((size_t)(m / W / H) * H * DECONV_H + py) * W * DECONV_W + px) * SCATTER + o;
        float u[4];
        vstore4(v, 0, u);
        for (int f = 0; f < SCATTER_STEP; ++f) {
          const float t = u[e + f] + bias[o + f];
          ST(y, to + f, ACT(t));
        }
      }
#else
#if defined(SPLIT) || defined(BATCHED)
      global float *to = partial + ((size_t)get_group_id(2) * M + m) * O + n;
#ifdef WIDE_OUT
      vstore4(v, 0, to);
#else
      float u[4];
      vstore4(v, 0, u);
      for (int e = 0; e < min(4, O - n); ++e) to[e] = u[e];
#endif
#else
      const size_t to = (size_t)m * YP + n;
#ifdef RESIDUAL
#ifdef GROUPED
      const size_t old = to;
#else
      const size_t old = (size_t)m * O + n;
#endif
#endif
#ifdef WIDE_OUT
#ifdef MATMUL
      float4 u = v;
#else
      float4 u = v + vload4(0, bias + n);
#endif
#ifdef RESIDUAL
      u += LD4(residual, old);
#endif
      const float4 done = (float4)(ACT(u.x), ACT(u.y), ACT(u.z), ACT(u.w));
      ST4(y, to, done);
#else
      float u[4];
      vstore4(v, 0, u);
      for (int e = 0; e < min(4, O - n); ++e) {
#ifdef MATMUL
        float t = u[e];
#else
        float t = u[e] + bias[n + e];
#endif
#ifdef RESIDUAL
        t += LD(residual, old + e);
#endif
        ST(y, to + e, ACT(t));
      }
#endif
#endif
#endif
    }
  }
}

// Adds the parts of a split K and finishes: bias, residual, activation.
//@ kernel conv_sum
//@ let step = 1 + 3 * WIDE_OUT
//@ need n > 0, O > 0, n % O == 0, O % step == 0, parts >= 0
//@ items n / step
//@ need (g0 + 1) * step <= INT_MAX
//@ reads partial[parts * n], bias[O]
//@ reads residual[n] when RESIDUAL
//@ writes y[y_at, n / O, YP, O]
kernel void conv_sum(global const float *partial, global const float *bias,
                     global const T *residual, global T *y, int n, int O, int parts, int YP, int y_at) {
#define TO(i) (y_at + (i) / O * YP + (i) % O)
#ifdef WIDE_OUT
  const int i = get_global_id(0) * 4;
  if (i >= n) return;
  float4 v = vload4(0, bias + i % O);
  for (int p = 0; p < parts; ++p) v += vload4(0, partial + (size_t)p * n + i);
#ifdef RESIDUAL
  v += LD4(residual, i);
#endif
  const float4 done = (float4)(ACT(v.x), ACT(v.y), ACT(v.z), ACT(v.w));
  ST4(y, TO(i), done);
#else
  const int i = get_global_id(0);
  if (i >= n) return;
  float v = bias[i % O];
  for (int p = 0; p < parts; ++p) v += partial[(size_t)p * n + i];
#ifdef RESIDUAL
  v += LD(residual, i);
#endif
  ST(y, TO(i), ACT(v));
#endif
}
