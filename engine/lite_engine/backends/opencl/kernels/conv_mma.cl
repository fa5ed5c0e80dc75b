// Convolution as an implicit GEMM on NVIDIA's matrix units (PTX). A work-group makes BM pixels times BN
// channels, a warp of 32 items 4·TM times 32 of them. w (rows, KP): k = (ky·KW + kx)·C + c, C a multiple
// of 4, as many rows as whole tiles have. Group axis 2 splits K as in conv_tile.cl, or (-DBATCHED)
// numbers independent products, or (-DGROUPED) groups of C channels of x and O of y, whose w lie `part`
// elements apart. Pixels of x and y lie XP and YP elements apart, the first x_at and y_at from the start; the
// residual is dense, as y is with -DGROUPED.
//
// -DMATMUL: product of two computed matrices, x (planes, M, C) and w (planes, C, O); `part` and KP are the
// elements from plane to plane, 0 where all share one. C and O are multiples of 4. With -DSPLIT, group axis 2
// has all PLANES for each part of K, PART deep.
//
// fp16 (-DHALF) has float sums. fp32 makes each number the sum of two of TF32, the upper one rounded:
// three of their four products keep 23 bits (cut off instead, the upper ones would leave 20, all errors
// with the sign of the product). The units cut off what float arithmetic rounds, so every sum that they
// carry on shrinks: products of two upper parts are added up outside of them, eight at a time (Ootomo
// and Yokota 2022). The other two products are 2^11 times smaller, and so is what they lose.
//
// A step is BK deep, 64 or 128 bytes for each row of a tile, which travel as UNITs of 8 or 16 bytes straight
// from global into local memory (cp.async), STAGES - 1 steps ahead. Sixteens of a row lie in an order that
// depends on the row, so that eight rows of one of them, which ldmatrix reads at once, are in
// different banks.
//
// Neighboring groups share the larger operand, so that not all of the device asks for the same lines.
//@ options HALF HALF_MATH POINTWISE QUADS OCTS SPLIT BATCHED GROUPED MATMUL RESIDUAL WIDE_OUT
//@ options BM=32,64,128 BN=32,64,128 TM=4,8,16 TN=4 BK=16,32,64 STAGES=3..8 ACT(x) ACT_A:number ACT_B:number
//@ options PLANES=1..65536 PART=1..1048576
#ifdef HALF
#define E ushort
#define E4 ushort4
#else
#define E float
#define E4 float4
#endif
#if defined(HALF) && !defined(OCTS)
#define U uint2
#define UNIT_BYTES 8
#define COPY "cp.async.ca.shared.global [%0], [%1], 8, %2;"
#else
#define U uint4
#define UNIT_BYTES 16
#define COPY "cp.async.cg.shared.global [%0], [%1], 16, %2;"
#endif
#define SIXTEENS (BK * (int)sizeof(E) / 16)
#define UNITS (SIXTEENS * 16 / UNIT_BYTES)
#define UNIT (BK / UNITS)
#define WARPS_N (BN / 32)
#define WARP_M (TM * 4)
#define HEIGHT (TM / 4)  // blocks of 16 pixels of a warp
#define ITEMS (BM * BN / WARP_M)
#define A_LOADS (BM * UNITS / ITEMS)
#define B_LOADS (BN * UNITS / ITEMS)
#define B_FOURS (BN * BK / 4 / ITEMS)
#define TURN(row) (SIXTEENS == 8 ? (row) % 8 : (row) / 2 % 4)  // sixteen q of a row lies at q ^ TURN(row)
// Where what an item fetches as its i-th lies behind what it fetches first: whole fours of rows
#define PLACE(i) ((place ^ TURN((i) * ITEMS / UNITS) * (UNITS / SIXTEENS)) + (i) * ITEMS)

#ifdef MMA_IN_C  // the same without PTX: for tests
#define FETCH(to, from, good) *(to) = (good) ? *(global const U *)(from) : (U)(0)
#define COMMIT
#define WAIT
#undef UNROLL
#define UNROLL
#else
#define FETCH(to, from, good)                                                                   \
  asm volatile(COPY ::"r"((uint)(size_t)(to)), "l"((ulong)(size_t)(from)), "r"((good) ? UNIT_BYTES : 0) \
               : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory")
#endif

#ifdef HALF
#define INSTRUCTION "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#define LDP(p, i) vloada_half2(0, (p) + (i))
#ifdef MMA_IN_C
#define STP(p, i, v) vstorea_half2((v), 0, (p) + (i))
#else  // of which the driver makes two stores
#define STP(p, i, v) *(global uint *)((p) + (i)) = packed_of(v)
static inline uint packed_of(float2 v) {
  uint both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(v.y), "f"(v.x));
  return both;
}
#endif
#else
#define INSTRUCTION "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#define LDP(p, i) (*(global const float2 *)((p) + (i)))
#define STP(p, i, v) *(global float2 *)((p) + (i)) = (v)
#endif
#ifdef GROUPED  // from pixel to pixel of the residual
#define OLD_ROW YP
#else
#define OLD_ROW O
#endif
#define EACH_BLOCK                   \
  UNROLL for (int i = 0; i < HEIGHT; ++i) \
    UNROLL for (int j = 0; j < 4; ++j)
// Words of four blocks of eight rows of 16 bytes, whose places lanes 0-7, 8-15, 16-23 and 24-31 give
#define LOAD(r0, r1, r2, r3, at)                                                                 \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"                   \
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
// 16 rows of a times 8 of b
#define MMA(c, a, b)                                                                             \
  EACH_BLOCK asm(INSTRUCTION "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"             \
                 : "+f"(c[i][j][0]), "+f"(c[i][j][1]), "+f"(c[i][j][2]), "+f"(c[i][j][3])        \
                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
// The same from zero, rounded into c
#define MMA_ROUNDED(c, a, b)                                                                     \
  EACH_BLOCK {                                                                                   \
    float part[4];                                                                               \
    asm(INSTRUCTION "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"                   \
        : "=f"(part[0]), "=f"(part[1]), "=f"(part[2]), "=f"(part[3])                             \
        : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]),    \
          "f"(0.0f));                                                                            \
    UNROLL for (int e = 0; e < 4; ++e) c[i][j][e] += part[e];                                    \
  }
// The upper bits that TF32 has, rounded; the rest stays in v, exactly.
#define SPLIT_UP(v, high, rows, words)                                 \
  UNROLL for (int r = 0; r < rows; ++r)                                \
    UNROLL for (int e = 0; e < words; ++e) {                           \
      high[r][e] = (v[r][e] + 0x1000u) & 0xffffe000u;                  \
      v[r][e] = as_uint(as_float(v[r][e]) - as_float(high[r][e]));     \
    }

#ifdef MMA_IN_C
// Products of one step of two rows, item by item.
static inline float dot_of(local uint4 *a, int a_row, local uint4 *b, int b_row) {
  float sum = 0;
  for (int q = 0; q < SIXTEENS; ++q)
    for (int k = 0; k < BK / SIXTEENS; ++k)
      sum += LD((local T *)&a[a_row * SIXTEENS + (q ^ TURN(a_row))], k) *
             LD((local T *)&b[b_row * SIXTEENS + (q ^ TURN(b_row))], k);
  return sum;
}
#endif

//@ kernel conv_mma
//@ let unit = 4 + 4 * HALF * OCTS
//@ let units = BK / unit
//@ let items = BM * BN / (TM * 4)
//@ let plane = MATMUL * part + BATCHED * M * C + GROUPED * C
//@ let apart = (BATCHED + GROUPED) * part
//@ let count = GROUPED * (g2 - 1) + 1
//@ let taps = (K - 1) / (C * KW)
//@ let plain = SPLIT + BATCHED + GROUPED + MATMUL == 0
//@ let both = SPLIT * MATMUL
//@ let planes = both * PLANES + (1 - both) * g2
//@ group items, 1, 1
//@ items up(O, BN) * up(M, BM) * items, 1, g2
//@ local STAGES * (BM + BN) * BK * (4 - 2 * HALF)
//@ need BK % (16 + 16 * HALF) == 0, BK <= 32 + 32 * HALF, items / units % 4 == 0
//@ need BM % (TM * 4) == 0, BM * units % items == 0, BN * units % items == 0
//@ need BN * BK % (4 * items) == 0 when MATMUL
//@ need min(M, C, O, OH, OW, KH, KW, K) > 0, min(H, W, SH, SW, DH, DW, part) >= 0, max(SPLIT, MATMUL) + BATCHED + GROUPED <= 1
//@ need C % unit + XP % unit + x_at % unit + plane % unit == 0, O % 2 + YP % 2 + y_at % 2 == 0, K % BK == 0
//@ need KP % unit == 0, apart % unit == 0
//@ need YP == g2 * O when GROUPED
//@ need O % 4 + KP % 4 == 0 when MATMUL
//@ need part % BK == 0, part * g2 >= K, part * (g2 - 1) < K when SPLIT * (1 - MATMUL) + plain
//@ need planes > 0, PART % BK == 0, g2 % PLANES == 0, PART * g2 >= K * planes, PART * (g2 - planes) < K * planes when both
//@ need g2 == 1 when plain
//@ need max(KH, KW) <= 15, (taps * DH * W + KW * DW) * XP + C <= INT_MAX
//@ need taps < 16 when POINTWISE == 0
//@ need OH * SH + KH * DH + max(PT, -PT) <= INT_MAX, OW * SW + KW * DW + max(PL, -PL) <= INT_MAX
//@ need (max(PT, -PT) * W + max(PL, -PL)) * XP <= INT_MAX, M + BM <= INT_MAX, O + BN <= INT_MAX
//@ reads x[(planes - 1) * plane + x_at, M, XP, C] when POINTWISE
//@ reads x[(planes - 1) * plane + x_at, up(M, OH * OW) * H * W, XP, C] when POINTWISE == 0
//@ reads w[apart * (g2 - 1) + (up(O, BN) * BN - 1) * KP + K] when MATMUL == 0
//@ reads w[(planes - 1) * KP + C * O] when MATMUL
//@ reads bias[count * O] when plain + GROUPED
//@ reads residual[M * count * O] when RESIDUAL * (1 - SPLIT) * (1 - BATCHED)
//@ writes partial[g2 * M * O] when SPLIT + BATCHED
//@ writes y[(MATMUL * M + GROUPED) * (g2 - 1) * O + y_at, M, YP, O] when SPLIT + BATCHED == 0
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void conv_mma(global const T *x, global const T *w, global const float *bias, global const T *residual,
              global T *y, global float *partial, int M, int H, int W, int C, int OH, int OW, int O, int KH,
              int KW, int SH, int SW, int PT, int PL, int DH, int DW, int KP, int K, int part, int XP, int x_at,
              int YP, int y_at) {
  // Off its sectors of 32 bytes, what cp.async fetches arrives in two parts: twice the time.
  local uint4 a_tile[STAGES][BM * SIXTEENS] __attribute__((aligned(128)));
  local uint4 b_tile[STAGES][BN * SIXTEENS] __attribute__((aligned(128)));
  const int id = get_local_id(0), lane = id % 32;
  const int wm = id / 32 / WARPS_N * WARP_M, wn = id / 32 % WARPS_N * 32;
  const int down = (M + BM - 1) / BM, across = (O + BN - 1) / BN, group = get_group_id(0);
  const int m0 = (M < O ? group % down : group / across) * BM, n0 = (M < O ? group / down : group % across) * BN;
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
  w += (size_t)plane * KP;
  y += (size_t)plane * M * O;
  E4 b_next[B_FOURS];
#elif defined(BATCHED)
  const int first = 0, last = K;
  x += (size_t)get_group_id(2) * M * C;
  w += (size_t)get_group_id(2) * part;
#elif defined(GROUPED)
  const int first = 0, last = K;
  w += (size_t)get_group_id(2) * part;
  x += get_group_id(2) * C;
  y += get_group_id(2) * O;
  bias += get_group_id(2) * O;
  residual += get_group_id(2) * O;
#else
  const int first = get_group_id(2) * part, last = min(first + part, K);
#endif

  // What this item fetches of A: rows fixed, the same k in every row. Rows beyond the last are zeros: groups
  // that all read the last one in their place wait for each other.
  const int start = first + id % UNITS * UNIT, place = id ^ TURN(id / UNITS) * (UNITS / SIXTEENS);
  int from[A_LOADS];  // in x, without k
#ifdef POINTWISE
  int k_c = start;
  UNROLL for (int i = 0; i < A_LOADS; ++i) {
    const int m = m0 + (id + i * ITEMS) / UNITS;
    from[i] = m < M ? m * XP : -1;
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
  // What this lane reads: where its rows begin, and the sixteen of the first products.
  const int a_at = lane % 16 * SIXTEENS, a_first = lane / 16 ^ TURN(lane);
  const int b_at = (lane / 16 * 8 + lane % 8) * SIXTEENS, b_first = lane / 8 % 2 ^ TURN(lane);
  float acc[HEIGHT][4][4];
  EACH_BLOCK UNROLL for (int e = 0; e < 4; ++e) acc[i][j][e] = 0;
#if !defined(HALF) && !defined(MMA_IN_C)
  float low[HEIGHT][4][4];  // products with a lower part
  EACH_BLOCK UNROLL for (int e = 0; e < 4; ++e) low[i][j][e] = 0;
#endif

  // Read before the products, so that nothing waits for it after them; not where registers are few.
#define RESULT_M (m0 + wm + i * 16 + lane / 4 + h * 8)
#define RESULT_N (n0 + wn + j * 8 + lane % 4 * 2)
#if !defined(SPLIT) && !defined(BATCHED) && !defined(MATMUL)
  float2 more[4];
  UNROLL for (int j = 0; j < 4; ++j)
    more[j] = vload2(0, bias + min(n0 + wn + j * 8 + lane % 4 * 2, O - 2));
#if defined(RESIDUAL) && HEIGHT == 1
  float2 other[4][2];
  EACH_BLOCK UNROLL for (int h = 0; h < 2; ++h)
    other[j][h] = RESULT_M < M && RESULT_N < O ? LDP(residual, (size_t)RESULT_M * OLD_ROW + RESULT_N) : (float2)(0);
#endif
#endif

  // `step` is fetched, the one STAGES - 1 before it computed; with -DMATMUL b is read one step earlier.
  const int steps = (last - first) / BK;
  for (int step = -1; step < steps + STAGES - 1; ++step) {
    const int done = step - (STAGES - 1);
    if (done >= 0) {
      WAIT;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (step >= 0 && step < steps) {
      local U *a_to = (local U *)a_tile[step % STAGES];
#ifdef POINTWISE
      UNROLL for (int i = 0; i < A_LOADS; ++i)
        FETCH(a_to + PLACE(i), x + from[i] + k_c, from[i] >= 0 && k_c < C);
      k_c += BK;
#else
      const int tap = (k_y * DH * W + k_x * DW) * XP + k_c;
      UNROLL for (int i = 0; i < A_LOADS; ++i)
        FETCH(a_to + PLACE(i), x + from[i] + tap, inside[i] >> k_y & inside[i] >> (16 + k_x) & 1);
      for (k_c += BK; k_c >= C; k_c -= C)
        if (++k_x == KW) { k_x = 0; ++k_y; }
#endif
#ifdef MATMUL
      UNROLL for (int i = 0; i < B_FOURS; ++i) {
        const int q = id + i * ITEMS, k = q % BK;
        E v[4];
        vstore4(b_next[i], 0, v);
        UNROLL for (int e = 0; e < 4; ++e) {
          const int n = q / BK * 4 + e;
          ((local E *)&b_tile[step % STAGES][n * SIXTEENS + (k / (BK / SIXTEENS) ^ TURN(n))])[k % (BK / SIXTEENS)] = v[e];
        }
      }
#else
      local U *b_to = (local U *)b_tile[step % STAGES];
      UNROLL for (int i = 0; i < B_LOADS; ++i) {
        const int q = id + i * ITEMS;
        FETCH(b_to + PLACE(i),
              w + (size_t)(n0 + q / UNITS) * KP + first + step * BK + q % UNITS * UNIT, 1);
      }
#endif
    }
    COMMIT;
#ifdef MATMUL
    UNROLL for (int i = 0; i < B_FOURS; ++i) {
      const int q = id + i * ITEMS, k = first + (step + 1) * BK + q % BK, n = n0 + q / BK * 4;
      b_next[i] = k < C && n < O ? *(global const E4 *)(w + (size_t)k * O + n) : (E4)(0);
    }
#endif
    if (done < 0) continue;
    local uint4 *a_rows = a_tile[done % STAGES] + wm * SIXTEENS, *b_rows = b_tile[done % STAGES] + wn * SIXTEENS;
#ifdef MMA_IN_C
    EACH_BLOCK for (int e = 0; e < 4; ++e)
      acc[i][j][e] += dot_of(a_rows, i * 16 + lane / 4 + e / 2 * 8, b_rows, j * 8 + lane % 4 * 2 + e % 2);
#else
    UNROLL for (int s = 0; s < SIXTEENS; s += 2) {
      uint a[HEIGHT][4], b[4][2];
      UNROLL for (int i = 0; i < HEIGHT; ++i)
        LOAD(a[i][0], a[i][1], a[i][2], a[i][3],
             (uint)(size_t)(a_rows + a_at + i * 16 * SIXTEENS) + (a_first ^ s) * 16)
      UNROLL for (int j = 0; j < 4; j += 2)
        LOAD(b[j][0], b[j][1], b[j + 1][0], b[j + 1][1],
             (uint)(size_t)(b_rows + b_at + j * 8 * SIXTEENS) + (b_first ^ s) * 16)
#ifdef HALF
      MMA(acc, a, b)
#else
      uint a_high[HEIGHT][4], b_high[4][2];
      SPLIT_UP(a, a_high, HEIGHT, 4)
      SPLIT_UP(b, b_high, 4, 2)
      MMA(low, a, b_high)
      MMA(low, a_high, b)
      MMA_ROUNDED(acc, a_high, b_high)
#endif
    }
#endif
  }
#if !defined(HALF) && !defined(MMA_IN_C)
  EACH_BLOCK UNROLL for (int e = 0; e < 4; ++e) acc[i][j][e] += low[i][j][e];
#endif

  EACH_BLOCK UNROLL for (int h = 0; h < 2; ++h) {
    const int m = RESULT_M, n = RESULT_N;
    if (m >= M || n >= O) continue;
    float2 v = (float2)(acc[i][j][h * 2], acc[i][j][h * 2 + 1]);
#if defined(SPLIT) || defined(BATCHED)
    *(global float2 *)(partial + ((size_t)get_group_id(2) * M + m) * O + n) = v;
#else
#ifndef MATMUL
    v += more[j];
#endif
#ifdef RESIDUAL
#if HEIGHT == 1
    v += other[j][h];
#else
    v += LDP(residual, (size_t)m * OLD_ROW + n);
#endif
#endif
    v = (float2)(ACT(v.x), ACT(v.y));
    STP(y, (size_t)m * YP + n, v);
#endif
  }
}
