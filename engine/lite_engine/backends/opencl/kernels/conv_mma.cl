// fp16 convolution as an implicit GEMM on matrix units (PTX mma.m16n8k16, float sums). A work-group
// makes BM pixels times BN channels, a warp of 32 items 32 times 32 of them. Values travel as the
// bits they are, so that half arithmetic is not needed. w (OP, KP): k = (ky·KW + kx)·C + c, C a
// multiple of 4. Group axis 2 splits K as in conv_tile.cl.
//
// -DMATMUL: product of two computed matrices as in conv_tile.cl, O a multiple of 4 too.
#define WARPS_N (BN / 32)
#define ITEMS (BM * BN / 32)
#define A_LOADS (BM * BK / 4 / ITEMS)
#define B_LOADS (BN * BK / 4 / ITEMS)
#define PITCH (BK + 8)  // rows start in different banks
#define PAIR(tile, row, k) (*(local const uint *)&tile[row][k])

#ifdef MMA_IN_C  // the same sums without matrix units, each item its own: for tests
#define MMA(c, i, j)                                                               \
  for (int q = 0; q < 16; ++q)                                                     \
    for (int e = 0; e < 4; ++e)                                                    \
      c[e] += vload_half(0, (local half *)&a_tile[wm + (i) * 16 + row + e / 2 * 8][k + q]) * \
              vload_half(0, (local half *)&b_tile[wn + (j) * 8 + pair * 2 + e % 2][k + q]);
#else
#define MMA(c, i, j)                                                               \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "                \
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"             \
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                    \
               : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),           \
                 "r"(b[j][0]), "r"(b[j][1]));
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_mma(global const ushort *x, global const ushort *w, global const float *bias,
              global const half *residual, global half *y, global float *partial, int M, int H,
              int W, int C, int OH, int OW, int O, int KH, int KW, int SH, int SW, int PT, int PL,
              int DH, int DW, int KP, int K, int part) {
  local ushort a_tile[BM][PITCH] __attribute__((aligned(16)));
  local ushort b_tile[BN][PITCH] __attribute__((aligned(16)));
  const int id = get_local_id(0), lane = id % 32, row = lane / 4, pair = lane % 4;
  const int wm = id / 32 / WARPS_N * 32, wn = id / 32 % WARPS_N * 32;
  const int n0 = get_group_id(0) * BN, m0 = get_group_id(1) * BM;
#ifdef MATMUL
  const int first = 0, last = K;
  x += (size_t)get_group_id(2) * part;
  w += (size_t)get_group_id(2) * KP;
  y += (size_t)get_group_id(2) * M * O;
#else
  const int first = get_group_id(2) * part, last = min(first + part, K);
#endif

  int row_y[A_LOADS], row_x[A_LOADS], row_at[A_LOADS];
  for (int i = 0; i < A_LOADS; ++i) {
    const int m = min(m0 + (id + i * ITEMS) / (BK / 4), M - 1);
    row_y[i] = m / OW % OH * SH - PT;
    row_x[i] = m % OW * SW - PL;
    row_at[i] = ((m / OW / OH * H + row_y[i]) * W + row_x[i]) * C;
  }
  const int start = first + id % (BK / 4) * 4;
  int k_c = start % C, k_y = start / C / KW, k_x = start / C % KW;
  ushort4 a_next[A_LOADS], b_next[B_LOADS];
  float acc[2][4][4];
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0;

  for (int k0 = first; k0 < last + BK; k0 += BK) {
    if (k0 > first) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < A_LOADS; ++i) {
        const int q = id + i * ITEMS;
        *(local ushort4 *)&a_tile[q / (BK / 4)][q % (BK / 4) * 4] = a_next[i];
      }
      for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
#ifdef MATMUL
        const int k = q % BK, n = q / BK * 4;
        b_tile[n][k] = b_next[i].x;
        b_tile[n + 1][k] = b_next[i].y;
        b_tile[n + 2][k] = b_next[i].z;
        b_tile[n + 3][k] = b_next[i].w;
#else
        *(local ushort4 *)&b_tile[q / (BK / 4)][q % (BK / 4) * 4] = b_next[i];
#endif
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (k0 < last) {
      const int tap = (k_y * DH * W + k_x * DW) * C + k_c;
      for (int i = 0; i < A_LOADS; ++i) {
        const int yy = row_y[i] + k_y * DH, xx = row_x[i] + k_x * DW;
        const int good = k_y < KH && yy >= 0 && yy < H && xx >= 0 && xx < W;
        a_next[i] = good ? *(global const ushort4 *)(x + row_at[i] + tap) : (ushort4)(0);
      }
      k_c += BK;
      while (k_c >= C) {
        k_c -= C;
        if (++k_x == KW) { k_x = 0; ++k_y; }
      }
      for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
#ifdef MATMUL
        const int k = k0 + q % BK, n = n0 + q / BK * 4;
        const int good = k < C && n < O;
        b_next[i] = good ? *(global const ushort4 *)(w + (size_t)k * O + n) : (ushort4)(0);
#else
        const size_t at = (size_t)(n0 + q / (BK / 4)) * KP + k0 + q % (BK / 4) * 4;
        b_next[i] = *(global const ushort4 *)(w + at);
#endif
      }
    }
    if (k0 > first) {
      for (int k = 0; k < BK; k += 16) {
        uint a[2][4], b[4][2];
        for (int i = 0; i < 2; ++i) {
          const int at = wm + i * 16 + row;
          a[i][0] = PAIR(a_tile, at, k + pair * 2);
          a[i][1] = PAIR(a_tile, at + 8, k + pair * 2);
          a[i][2] = PAIR(a_tile, at, k + pair * 2 + 8);
          a[i][3] = PAIR(a_tile, at + 8, k + pair * 2 + 8);
        }
        for (int j = 0; j < 4; ++j) {
          b[j][0] = PAIR(b_tile, wn + j * 8 + row, k + pair * 2);
          b[j][1] = PAIR(b_tile, wn + j * 8 + row, k + pair * 2 + 8);
        }
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 4; ++j) {
            MMA(acc[i][j], i, j)
          }
      }
    }
  }

  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int m = m0 + wm + i * 16 + row + e / 2 * 8, n = n0 + wn + j * 8 + pair * 2 + e % 2;
        if (m >= M || n >= O) continue;
        const size_t to = (size_t)m * O + n;
#ifdef SPLIT
        partial[(size_t)get_group_id(2) * M * O + to] = acc[i][j][e];
#else
        float v = acc[i][j][e];
#ifndef MATMUL
        v += bias[n];
#endif
#ifdef RESIDUAL
        v += vload_half(to, residual);
#endif
        vstore_half(ACT(v), to, y);
#endif
      }
}
