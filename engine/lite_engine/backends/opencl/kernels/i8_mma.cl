// Convolution of bytes as an implicit GEMM on NVIDIA's matrix units (PTX), in the manner of conv_mma.cl. A
// work-group makes BM pixels times BN channels, a warp of 32 items 4·TM times 32 of them. x as it is, signed with
// -DX_SIGNED; w (rows, KP) of signed bytes: k = (ky·KW + kx)·C + c, C a multiple of 8, as many rows as whole tiles
// have. The bytes of `fill` stand for what lies outside the image; where those meet no tap, w is 0. Group axis 2
// splits K as in i8_tile.cl. -DW_ZERO: weights have zero points, and totals (M) the sums of x under the window.
//
// A step is 64 deep: 64 bytes for each row of a tile, which travel as UNITs of 8 or 16 bytes (-DSIXTEENS) from
// global into local memory (cp.async), STAGES - 1 steps ahead; where C is no multiple of 8, x is gathered byte by
// byte (-DBYTES). Quarters of a row lie in an order that depends on the
// row, so that eight rows of one quarter, which ldmatrix reads at once, are in different banks. A lane ends up with
// pairs of neighbouring bytes, which memory would take a quarter of its time for: residuals come and results leave
// OUT bytes at once, by way of local memory, in rows that lie 16 bytes further apart than they are long, again for
// the banks.
//@ options SIXTEENS BYTES POINTWISE SPLIT W_ZERO X_SIGNED
//@ options BM=32,64,128 BN=32,64,128 TM=8,16 TN=4 BK=16 OUT=2,4,8,16
#ifdef SIXTEENS
#define U uint4
#define UNIT 16
#define COPY "cp.async.cg.shared.global [%0], [%1], 16;"
#else
#define U uint2
#define UNIT 8
#define COPY "cp.async.ca.shared.global [%0], [%1], 8;"
#endif
#define DEPTH 64
#define UNITS (DEPTH / UNIT)
#define STAGES (BM + BN > 192 ? 3 : 4)  // what 48 KB hold
#define WARPS_N (BN / 32)
#define WARP_M (TM * 4)
#define HEIGHT (TM / 4)  // blocks of 16 pixels of a warp
#define ITEMS (BM * BN / WARP_M)
#define A_LOADS (BM * UNITS / ITEMS)
#define B_LOADS (BN * UNITS / ITEMS)
#define ROW (BN + 16)
#define PIECES (BN / OUT)  // of a row
#define EACH_PIECE                                 \
  UNROLL for (int i = 0; i < WARP_M / OUT; ++i) {  \
    const int q = id + i * ITEMS, row = q / PIECES, column = q % PIECES * OUT; \
    if (m0 + row >= M || n0 + column >= O) continue;
#define TURN(row) ((row) / 2 % 4)  // quarter q of a row lies at q ^ TURN(row)
#if OUT == 16
#define PIECE uint4
#elif OUT == 8
#define PIECE uint2
#elif OUT == 4
#define PIECE uint
#else
#define PIECE ushort
#endif
#ifdef X_SIGNED
#define X_TYPE char
#define INSTRUCTION "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
#else
#define X_TYPE uchar
#define INSTRUCTION "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
#endif
// What many groups read in one place keeps them waiting for each other: `fill` is a number.
#define FETCH_OR_FILL(to, from, good)  \
  do {                                 \
    if (good) {                        \
      FETCH(to, from);                 \
    } else {                           \
      *(to) = (U)((uint)fill);         \
    }                                  \
  } while (0)
#define EACH_BLOCK                        \
  UNROLL for (int i = 0; i < HEIGHT; ++i) \
    UNROLL for (int j = 0; j < 4; ++j)

// A lane has pairs of neighbouring results: their places in the tile, and what becomes of them.
#define PAIR_ROW (wm + i * 16 + lane / 4 + h * 8)
#define PAIR_COLUMN (wn + j * 8 + lane % 4 * 2)
#define EACH_PAIR EACH_BLOCK UNROLL for (int h = 0; h < 2; ++h)
#ifdef W_ZERO
#define ZEROS_OF(m, n) (first == 0 ? vload2(0, w_zero + min(n, O - 2)) * totals[min(m, M - 1)] : (int2)(0))
#define ZEROS ZEROS_OF(m0 + PAIR_ROW, n0 + PAIR_COLUMN)
#else
#define ZEROS 0
#endif
#define PAIR ((int2)(acc[i][j][h * 2], acc[i][j][h * 2 + 1]) - ZEROS)
#define KEEP(OLD, ...)                                                               \
  EACH_PAIR {                                                                        \
    local uchar2 *at = (local uchar2 *)(tile + PAIR_ROW * ROW + PAIR_COLUMN);        \
    const int2 s = PAIR;                                                             \
    const uchar2 old = OLD;                                                          \
    *at = (uchar2)(requantized(s.x, factor[j].x, old.x, __VA_ARGS__),                \
                   requantized(s.y, factor[j].y, old.y, __VA_ARGS__));               \
  }

#ifdef MMA_IN_C  // the same without PTX: for tests
#define FETCH(to, from) *(to) = *(global const U *)(from)
#define COMMIT
#define WAIT
#undef UNROLL
#define UNROLL
// Products of one step of two rows, item by item.
static inline int product_of(local uint4 *a, int a_row, local uint4 *b, int b_row) {
  int sum = 0;
  for (int q = 0; q < 4; ++q)
    for (int k = 0; k < 16; ++k)
      sum += (int)((local X_TYPE *)&a[a_row * 4 + (q ^ TURN(a_row))])[k] *
             (int)((local char *)&b[b_row * 4 + (q ^ TURN(b_row))])[k];
  return sum;
}
#else
#define FETCH(to, from) \
  asm volatile(COPY ::"r"((uint)(size_t)(to)), "l"((ulong)(size_t)(from)) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory")
// Words of four blocks of eight rows of 16 bytes, whose places lanes 0-7, 8-15, 16-23 and 24-31 give
#define LOAD(r0, r1, r2, r3, at)                                                                 \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"                   \
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
// 16 rows of a times 8 of b
#define MMA(c, a, b)                                                                             \
  EACH_BLOCK asm(INSTRUCTION "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"             \
                 : "+r"(c[i][j][0]), "+r"(c[i][j][1]), "+r"(c[i][j][2]), "+r"(c[i][j][3])        \
                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
#endif

//@ kernel mma
//@ let unit = 8 + 8 * SIXTEENS
//@ let units = 64 / unit
//@ let items = BM * BN / (TM * 4)
//@ let taps = (K + 64) / (C * KW)
//@ group items, 1, 1
//@ items up(O, BN) * items, up(M, BM), g2
//@ local (4 - (BM + BN > 192)) * (BM + BN) * 64
//@ need BM % (TM * 4) == 0, BM * units % items == 0, BN * units % items == 0
//@ need min(M, C, O, OH, OW, KH, KW, K) > 0, min(H, W, SH, SW, DH, DW, part) >= 0
//@ need C % unit + XP % unit + x_at % unit == 0 when BYTES == 0
//@ need SIXTEENS when BYTES
//@ need O % 2 + YP % 2 + y_at % 2 == 0, K % 64 == 0, KP % unit == 0
//@ need O % OUT + YP % OUT + y_at % OUT == 0 when SPLIT == 0
//@ need part % 64 == 0, part * g2 >= K, part * (g2 - 1) < K
//@ need g2 == 1 when SPLIT == 0
//@ need max(KH, KW) <= 15
//@ need taps < 16 when (1 - POINTWISE) * (1 - BYTES)
//@ need (taps * DH * W + KW * DW) * XP + C <= INT_MAX, O + BN <= INT_MAX, M + BM <= INT_MAX, K + 64 <= INT_MAX
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ need (max(PT, -PT) * W + max(PL, -PL)) * XP <= INT_MAX
//@ reads x[x_at, M, XP, C] when POINTWISE
//@ reads x[x_at, up(M, OH * OW) * H * W, XP, C] when POINTWISE == 0
//@ reads w[(up(O, BN) * BN - 1) * KP + K]
//@ reads bias[O], scale[O] when SPLIT == 0
//@ reads w_zero[O], totals[M] when W_ZERO
//@ reads residual[M * O] when adding * (SPLIT == 0)
//@ writes partial[g2 * M * O] when SPLIT
//@ writes y[y_at, M, YP, O] when SPLIT == 0
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void mma(global const uchar *x, global const uchar *w, int fill, global const int *bias, global const float *scale,
         global const int *w_zero, global const int *totals, global const uchar *residual,
         global uchar *y, global int *partial, int M, int H, int W, int C, int OH, int OW, int O, int KH, int KW,
         int SH, int SW, int PT, int PL, int DH, int DW, int KP, int K, int part, int XP, int x_at, int YP, int y_at,
         REQUANTIZE) {
  local uint4 a_tile[STAGES][BM * 4] __attribute__((aligned(128)));
  local uint4 b_tile[STAGES][BN * 4] __attribute__((aligned(128)));
  const int id = get_local_id(0), lane = id % 32;
  const int wm = id / 32 / WARPS_N * WARP_M, wn = id / 32 % WARPS_N * 32;
  const int n0 = get_group_id(0) * BN, m0 = get_group_id(1) * BM;
  const int first = get_group_id(2) * part, last = min(first + part, K);
  x += x_at;
  y += y_at;
  // What this item fetches of A: rows fixed, the same k in every row; none beyond the last (FETCH_OR_FILL).
  const int start = first + id % UNITS * UNIT, place = id ^ TURN(id / UNITS) * (UNITS / 4);
  int from[A_LOADS];  // in x, without k
#ifdef POINTWISE
  int k_c = start;
  UNROLL for (int i = 0; i < A_LOADS; ++i) {
    const int m = m0 + (id + i * ITEMS) / UNITS;
    from[i] = m < M ? m * XP : -1;
  }
#elif defined(BYTES)
  int rows[A_LOADS], columns[A_LOADS];  // of the window's first tap
  UNROLL for (int i = 0; i < A_LOADS; ++i) {
    const int m = min(m0 + (id + i * ITEMS) / UNITS, M - 1);
    rows[i] = m / OW % OH * SH - PT;
    columns[i] = m % OW * SW - PL;
    from[i] = ((m / OW / OH * H + rows[i]) * W + columns[i]) * XP;
  }
#else
  // Where the window starts, and bits of its rows (lower half) and columns inside the image.
  uint inside[A_LOADS];
  int k_c = start % C, k_y = start / C / KW, k_x = start / C % KW;
  UNROLL for (int i = 0; i < A_LOADS; ++i) {
    const int at = m0 + (id + i * ITEMS) / UNITS, m = min(at, M - 1);
    const int row = m / OW % OH * SH - PT, column = m % OW * SW - PL;
    from[i] = ((m / OW / OH * H + row) * W + column) * XP;
    inside[i] = 0;
    _Pragma("unroll 1") for (int j = 0; j < KH; ++j) inside[i] |= (uint)(row + j * DH >= 0 && row + j * DH < H) << j;
    _Pragma("unroll 1") for (int j = 0; j < KW; ++j)
      inside[i] |= (uint)(column + j * DW >= 0 && column + j * DW < W) << (16 + j);
    if (at >= M) inside[i] = 0;
  }
#endif
#ifndef MMA_IN_C
  // What this lane reads: rows in fours of quarters, and the quarter of the first half step.
  const int a_at = lane % 16 * 4, a_quarter = lane / 16 ^ TURN(lane);
  const int b_at = (lane / 16 * 8 + lane % 8) * 4, b_quarter = lane / 8 % 2 ^ TURN(lane);
#endif
  int acc[HEIGHT][4][4];
#ifdef SPLIT
  EACH_BLOCK UNROLL for (int e = 0; e < 4; ++e) acc[i][j][e] = 0;
#else
  // Asked for here, they come while the first steps are fetched.
  float2 factor[4];
  UNROLL for (int j = 0; j < 4; ++j) {
    const int n = min(n0 + wn + j * 8 + lane % 4 * 2, O - 2);
    const int2 start = *(global const int2 *)(bias + n);
    factor[j] = *(global const float2 *)(scale + n);
    UNROLL for (int i = 0; i < HEIGHT; ++i)
      acc[i][j][0] = acc[i][j][2] = start.x, acc[i][j][1] = acc[i][j][3] = start.y;
  }
#endif

  // `step` is fetched, the one STAGES - 1 before it computed first: units work while addresses are made.
  const int steps = (last - first) / DEPTH;
  for (int step = 0; step < steps + STAGES - 1; ++step) {
    const int done = step - (STAGES - 1);
    if (done >= 0) {
      WAIT;
      barrier(CLK_LOCAL_MEM_FENCE);
      local uint4 *a_rows = a_tile[done % STAGES] + wm * 4, *b_rows = b_tile[done % STAGES] + wn * 4;
#ifdef MMA_IN_C
      EACH_BLOCK for (int e = 0; e < 4; ++e)
        acc[i][j][e] += product_of(a_rows, i * 16 + lane / 4 + e / 2 * 8, b_rows, j * 8 + lane % 4 * 2 + e % 2);
#else
      uint a[2][HEIGHT][4], b[2][4][2];
      UNROLL for (int s = 0; s < 2; ++s) {
        UNROLL for (int i = 0; i < HEIGHT; ++i)
          LOAD(a[s][i][0], a[s][i][1], a[s][i][2], a[s][i][3],
               (uint)(size_t)(a_rows + a_at + i * 64) + (a_quarter ^ s * 2) * 16)
        UNROLL for (int j = 0; j < 4; j += 2)
          LOAD(b[s][j][0], b[s][j][1], b[s][j + 1][0], b[s][j + 1][1],
               (uint)(size_t)(b_rows + b_at + j * 32) + (b_quarter ^ s * 2) * 16)
      }
      UNROLL for (int s = 0; s < 2; ++s) MMA(acc, a[s], b[s])
#endif
    }
    if (step < steps) {
      local U *a_to = (local U *)a_tile[step % STAGES] + place;
#ifdef POINTWISE
      UNROLL for (int i = 0; i < A_LOADS; ++i)
        FETCH_OR_FILL(a_to + i * ITEMS, x + from[i] + k_c, from[i] >= 0 && k_c < C);
      k_c += DEPTH;
#elif defined(BYTES)
      uint words[A_LOADS][UNIT / 4];
      int k = start + step * DEPTH, k_y = k / (KW * C), k_x = k / C % KW;
      k %= C;
      UNROLL for (int e = 0; e < UNIT; ++e) {
        const int tap = (k_y * DH * W + k_x * DW) * XP + k;
        UNROLL for (int i = 0; i < A_LOADS; ++i) {
          const int yy = rows[i] + k_y * DH, xx = columns[i] + k_x * DW;
          const int good = k_y < KH && yy >= 0 && yy < H && xx >= 0 && xx < W;
          const uint byte = good ? x[from[i] + tap] : (uchar)fill;
          words[i][e / 4] = e % 4 ? words[i][e / 4] | byte << e % 4 * 8 : byte;
        }
        if (++k == C) {
          k = 0;
          if (++k_x == KW) { k_x = 0; ++k_y; }
        }
      }
      UNROLL for (int i = 0; i < A_LOADS; ++i)
        a_to[i * ITEMS] = (U)(words[i][0], words[i][1], words[i][2], words[i][3]);
#else
      const int tap = (k_y * DH * W + k_x * DW) * XP + k_c;
      UNROLL for (int i = 0; i < A_LOADS; ++i)
        FETCH_OR_FILL(a_to + i * ITEMS, x + from[i] + tap, inside[i] >> k_y & inside[i] >> (16 + k_x) & 1);
      for (k_c += DEPTH; k_c >= C; k_c -= C)
        if (++k_x == KW) { k_x = 0; ++k_y; }
#endif
      local U *b_to = (local U *)b_tile[step % STAGES] + place;
      UNROLL for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
        FETCH(b_to + i * ITEMS, w + (size_t)(n0 + q / UNITS) * KP + first + step * DEPTH + q % UNITS * UNIT);
      }
    }
    COMMIT;
  }

#ifdef SPLIT
  EACH_PAIR {
    const int m = m0 + PAIR_ROW, n = n0 + PAIR_COLUMN;
    if (m < M && n < O) vstore2(PAIR, 0, partial + ((size_t)get_group_id(2) * M + m) * O + n);
  }
#else
  local uchar *tile = (local uchar *)a_tile;
  barrier(CLK_LOCAL_MEM_FENCE);  // everyone has read the last step
  if (adding) {
    EACH_PIECE
      *(local PIECE *)(tile + row * ROW + column) =
          *(global const PIECE *)(residual + (size_t)(m0 + row) * O + n0 + column);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    KEEP(*at, REQUANTIZE_ARGS)
  } else {
    KEEP((uchar2)(0), PLAIN_ARGS)
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  EACH_PIECE
    *(global PIECE *)(y + (size_t)(m0 + row) * YP + n0 + column) = *(local PIECE *)(tile + row * ROW + column);
  }
#endif
}

// The sums of x under each window.
//@ kernel window_sums
//@ need min(M, OH, OW) > 0, min(H, W, C, KH, KW, SH, SW, DH, DW) >= 0
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ items M
//@ reads x[x_at, up(M, OH * OW) * H * W, XP, C]
//@ writes totals[M]
kernel void window_sums(global const uchar *x, int fill, global int *totals, int M, int H, int W, int C,
                        int OH, int OW, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW, int XP,
                        int x_at) {
  const int m = get_global_id(0);
  if (m >= M) return;
  const int row = m / OW % OH * SH - PT, column = m % OW * SW - PL;
  int total = 0;
  for (int ky = 0; ky < KH; ++ky)
    for (int kx = 0; kx < KW; ++kx) {
      const int yy = row + ky * DH, xx = column + kx * DW;
      const int good = yy >= 0 && yy < H && xx >= 0 && xx < W;
      global const X_TYPE *from = (global const X_TYPE *)(x + (size_t)((m / OW / OH * H + yy) * W + xx) * XP + x_at);
      for (int c = 0; c < C; ++c) total += good ? (int)from[c] : (int)(X_TYPE)fill;
    }
  totals[m] = total;
}
