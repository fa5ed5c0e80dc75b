// attention.cl on NVIDIA's matrix units (PTX), in the manner of attention_tile.cl: a work-group makes ROWS rows of one
// head, a warp 16 of them with one of SPLITS parts of each block of keys; the parts meet at the end. Scores stay in
// registers, where the numbers of a product that a lane has are what it needs as an operand of the next one (Dao,
// "FlashAttention-2", 2023). D is the larger of size and v_size, rounded
// up; both are multiples of UNIT, as are the places of rows. fp32 makes each number the sum of two of TF32, as
// conv_mma.cl does; a lane's pairs of neighbouring scores are then keys 2t and 2t + 1, and rows of v go the same way.
//
// Keys and values travel in rows of D numbers, 16 bytes at a time, straight into local memory (cp.async), one block
// ahead. Sixteens of a row lie in an order that depends on the row, so that eight rows of one column,
// which ldmatrix reads at once, are in different banks.
//@ options HALF PACKED MASK CAP D=32,64,96,128 ROWS=32,64 SPLITS=1,2
#define WARPS (ROWS / 16)  // of one part of the keys
#define ITEMS (WARPS * SPLITS * 32)
#ifdef HALF
#define UNIT 8
#else
#define UNIT 4
#endif
#define CHUNKS (D / UNIT)
#define BLOCK (CHUNKS > 8 ? 32 : 64)  // keys that 48 KB hold, with two blocks of k and v
#define KEYS (BLOCK / SPLITS)
#define TURN(r) (CHUNKS % 8 ? (r) / 2 % 4 : (r) % 8)
#define AT(r, c) ((r) * CHUNKS + ((c) ^ TURN(r)))
#define EIGHTS (KEYS / 8)
#define COLUMNS (D / 8)
#define EACH_SCORE                        \
  UNROLL for (int n = 0; n < EIGHTS; ++n) \
    UNROLL for (int e = 0; e < 4; ++e)
#define SCORE_KEY (key0 + own + n * 8 + lane % 4 * 2 + e % 2)
#define MORE(s, t) ((s) + (t))
#ifdef HALF
#define STP(p, i, v) vstorea_half2((v), 0, (p) + (i))
#else
#define STP(p, i, v) *(global float2 *)((p) + (i)) = (v)
#endif

#ifdef MMA_IN_C  // the same without PTX: for tests
#define FETCH(to, from, good) *(to) = (good) ? *(global const uint4 *)(from) : (uint4)(0)
#define COMMIT
#define WAIT
#define DRAIN
#define EXP2(x) exp2(x)
#undef UNROLL
#define UNROLL
// s of the four lanes that have one row
#define QUAD(s, OP)                                                                        \
  do {                                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                          \
    lanes[id] = s;                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                          \
    UNROLL for (int e_ = 0; e_ < 4; ++e_) if (id % 4 != e_) s = OP(s, lanes[id / 4 * 4 + e_]); \
  } while (0)
static inline float value_of(local const uint4 *tile, int r, int c) {
  return LD((local const T *)&tile[AT(r, c / UNIT)], c % UNIT);
}
#else
#define FETCH(to, from, good)                                                                     \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint)(size_t)(to)),          \
               "l"((ulong)(size_t)(from)), "r"((good) ? 16 : 0) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT asm volatile("cp.async.wait_group 2;" ::: "memory")
#define DRAIN asm volatile("cp.async.wait_all;" ::: "memory")
#define EXP2(x) native_exp2(x)
#define QUAD(s, OP)                                                                               \
  UNROLL for (int e_ = 1; e_ < 4; e_ *= 2) {                                                      \
    float other_;                                                                                 \
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other_) : "f"(s), "r"(e_)); \
    s = OP(s, other_);                                                                            \
  }
#define LOAD(HOW, r0, r1, r2, r3, at)                                                              \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" HOW ".shared.b16 {%0,%1,%2,%3}, [%4];"              \
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"((uint)(size_t)(at)) : "memory")
#ifdef HALF
#define INSTRUCTION "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#else
#define INSTRUCTION "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#endif
#define MMA(c, a, b0, b1)                                                                          \
  asm(INSTRUCTION "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                           \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#ifdef HALF
#define SPLIT_UP(v, upper)
#define PRODUCT(c, a, upper, b0, b1) MMA(c, a, b0, b1)
static inline uint packed_of(float low, float high) {
  uint both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
#else
// `upper`: the bits that TF32 has, rounded; the rest stays in v, exactly.
#define UPPER(v) (((v) + 0x1000u) & 0xffffe000u)
#define LOWER(v, upper) as_uint(as_float(v) - as_float(upper))
#define SPLIT_UP(v, upper)                             \
  uint upper[4];                                       \
  UNROLL for (int w_ = 0; w_ < 4; ++w_) {              \
    upper[w_] = UPPER(v[w_]);                          \
    v[w_] = LOWER(v[w_], upper[w_]);                   \
  }
// a is what is left of `upper`
#define PRODUCT(c, a, upper, b0, b1)                          \
  do {                                                        \
    const uint u0_ = UPPER(b0), u1_ = UPPER(b1);              \
    MMA(c, a, u0_, u1_);                                      \
    MMA(c, upper, LOWER(b0, u0_), LOWER(b1, u1_));            \
    MMA(c, upper, u0_, u1_);                                  \
  } while (0)
static inline uint bits_of(local const uint4 *tile, int r, int c) {
  return ((local const uint *)&tile[AT(r, c / 4)])[c % 4];
}
#endif
#endif
// COUNT rows from `first` on of a matrix with `end` rows `apart` apart and `width` columns; zeros beyond
#define FETCH_ROWS(tile, from, COUNT, first, end, apart, width)                                    \
  for (int e_ = id; e_ < (COUNT) * CHUNKS; e_ += ITEMS) {                                           \
    const int r_ = e_ / CHUNKS, c_ = e_ % CHUNKS;                                                   \
    const int good_ = (first) + r_ < (end) && c_ * UNIT < (width);                                     \
    FETCH(&(tile)[AT(r_, c_)], (from) + (good_ ? ((first) + r_) * (apart) + c_ * UNIT : 0), good_);  \
  }

//@ kernel attention_mma
//@ let shared = heads / group
//@ let row_heads = 1 + PACKED * (heads - 1)
//@ let row_shared = 1 + PACKED * (shared - 1)
//@ let unit = 4 + 4 * HALF
//@ let block = 64 - 32 * (D > 8 * unit)
//@ let items = ROWS * SPLITS * 2
//@ group items, 1, 1
//@ items up(rows, ROWS) * items, heads, g2
//@ local (ROWS + 4 * block) * D * 16 / unit
//@ need min(rows, keys, heads, group) > 0, min(size, v_size) > 0, heads % group == 0
//@ need D <= 64 + 64 * HALF
//@ need size % unit + v_size % unit == 0, max(size, v_size) <= D, min(mask_batch, mask_head, mask_row) >= 0
//@ need QP % unit + KP % unit + VP % unit == 0, q_at % unit + k_at % unit + v_at % unit == 0
//@ need rows + 64 <= INT_MAX, keys + 128 <= INT_MAX, D % 32 == 0
//@ need g2 * heads * max(rows, keys) * max(QP, max(KP, VP)) <= INT_MAX
//@ reads q[q_at, g2 * heads * rows / row_heads, QP, row_heads * size]
//@ reads k[k_at, g2 * shared * keys / row_shared, KP, row_shared * size]
//@ reads v[v_at, g2 * shared * keys / row_shared, VP, row_shared * v_size]
//@ reads mask[(g2 - 1) * mask_batch + (heads - 1) * mask_head + (rows - 1) * mask_row + keys] when MASK
//@ writes y[g2 * heads * rows * v_size]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void attention_mma(global const T *q, global const T *k, global const T *v, global const T *mask, global T *y,
                   int rows, int keys, int heads, int group, int size, int v_size, int mask_batch,
                   int mask_head, int mask_row, int QP, int q_at, int KP, int k_at, int VP, int v_at,
                   int causal, float scale, float cap) {
  local uint4 q_tile[ROWS * CHUNKS] __attribute__((aligned(128)));
  local uint4 k_tile[2][BLOCK * CHUNKS] __attribute__((aligned(128)));
  local uint4 v_tile[2][BLOCK * CHUNKS] __attribute__((aligned(128)));
#ifdef MMA_IN_C
  local float lanes[ITEMS], chances[ROWS * BLOCK];
#endif
  const int id = get_local_id(0), lane = id % 32, warp = id / 32 % WARPS * 16, own = id / 32 / WARPS * KEYS;
  const int first = get_group_id(0) * ROWS, h = get_group_id(1), b = get_group_id(2);
  const int y_row = ROW_HEADS(heads) * v_size;
  q += q_at + HEAD(b, h, heads, rows, QP, size);
  k += k_at + HEAD(b, h / group, heads / group, keys, KP, size);
  v += v_at + HEAD(b, h / group, heads / group, keys, VP, v_size);
  y += HEAD(b, h, heads, rows, y_row, v_size);
#ifdef MASK
  mask += (size_t)b * mask_batch + (size_t)h * mask_head;
#endif
  const int seen = causal ? min(keys, first + ROWS) : keys;
  const float log2e = 1.44269504f;
  float acc[COLUMNS][4], top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
  UNROLL for (int n = 0; n < COLUMNS; ++n)
    UNROLL for (int e = 0; e < 4; ++e) acc[n][e] = 0;

  FETCH_ROWS(q_tile, q, ROWS, first, rows, QP, size);
  FETCH_ROWS(k_tile[0], k, BLOCK, 0, keys, KP, size);
  COMMIT;
  FETCH_ROWS(v_tile[0], v, BLOCK, 0, keys, VP, v_size);
  COMMIT;
  for (int key0 = 0, turn = 0; key0 < seen; key0 += BLOCK, turn ^= 1) {
    FETCH_ROWS(k_tile[turn ^ 1], k, BLOCK, key0 + BLOCK, keys, KP, size);
    COMMIT;
    WAIT;
    barrier(CLK_LOCAL_MEM_FENCE);
    float score[EIGHTS][4];
    EACH_SCORE score[n][e] = 0;
#ifdef MMA_IN_C
    EACH_SCORE for (int s = 0; s < D; ++s)
      score[n][e] += value_of(q_tile, warp + lane / 4 + e / 2 * 8, s) * value_of(k_tile[turn], SCORE_KEY - key0, s);
#else
    UNROLL for (int s = 0; s < CHUNKS; s += 2) {
      uint a[4];
      LOAD("", a[0], a[1], a[2], a[3], &q_tile[AT(warp + lane % 16, s + lane / 16)]);
      SPLIT_UP(a, upper)
      UNROLL for (int n = 0; n < EIGHTS; n += 2) {
        uint b0, b1, b2, b3;
        LOAD("", b0, b1, b2, b3, &k_tile[turn][AT(own + n * 8 + lane / 16 * 8 + lane % 8, s + lane / 8 % 2)]);
        PRODUCT(score[n], a, upper, b0, b1);
        PRODUCT(score[n + 1], a, upper, b2, b3);
      }
    }
#endif
#ifdef CAP
    EACH_SCORE score[n][e] = cap * tanh(score[n][e] * scale / cap) * log2e;
#else
    EACH_SCORE score[n][e] *= scale * log2e;
#endif
#define SCORE_ROW (first + warp + lane / 4 + e / 2 * 8)
#ifdef MASK
    EACH_SCORE if (SCORE_ROW < rows && SCORE_KEY < keys)
      score[n][e] += LD(mask, (size_t)SCORE_ROW * mask_row + SCORE_KEY) * log2e;
#endif
    if (key0 + BLOCK > (causal ? min(keys, first + 1) : keys))  // some are hidden
      EACH_SCORE if (SCORE_KEY >= keys || (causal && SCORE_KEY > SCORE_ROW)) score[n][e] = -INFINITY;
    float most[2] = {top[0], top[1]};
    EACH_SCORE most[e / 2] = fmax(most[e / 2], score[n][e]);
    UNROLL for (int r = 0; r < 2; ++r) {
      QUAD(most[r], fmax);
      const float base = most[r] == -INFINITY ? 0 : most[r], shrink = EXP2(top[r] - base);
      top[r] = most[r];
      sum[r] *= shrink;
      UNROLL for (int n = 0; n < COLUMNS; ++n) {
        acc[n][r * 2] *= shrink;
        acc[n][r * 2 + 1] *= shrink;
      }
      UNROLL for (int n = 0; n < EIGHTS; ++n)
        UNROLL for (int e = r * 2; e < r * 2 + 2; ++e) {
          score[n][e] = EXP2(score[n][e] - base);
          sum[r] += score[n][e];
        }
    }
    FETCH_ROWS(v_tile[turn ^ 1], v, BLOCK, key0 + BLOCK, keys, VP, v_size);
    COMMIT;
    WAIT;
    barrier(CLK_LOCAL_MEM_FENCE);
#ifdef MMA_IN_C
    EACH_SCORE chances[(warp + lane / 4 + e / 2 * 8) * BLOCK + SCORE_KEY - key0] = score[n][e];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 0; n < COLUMNS; ++n)
      for (int e = 0; e < 4; ++e)
        for (int r = own; r < own + KEYS; ++r)
          acc[n][e] += chances[(warp + lane / 4 + e / 2 * 8) * BLOCK + r] *
                       value_of(v_tile[turn], r, n * 8 + lane % 4 * 2 + e % 2);
#elif defined(HALF)
    UNROLL for (int r = 0; r < EIGHTS; r += 2) {
      uint a[4];
      a[0] = packed_of(score[r][0], score[r][1]);
      a[1] = packed_of(score[r][2], score[r][3]);
      a[2] = packed_of(score[r + 1][0], score[r + 1][1]);
      a[3] = packed_of(score[r + 1][2], score[r + 1][3]);
      UNROLL for (int n = 0; n < COLUMNS; n += 2) {
        uint b0, b1, b2, b3;
        LOAD(".trans", b0, b1, b2, b3, &v_tile[turn][AT(own + r * 8 + lane % 16, n + lane / 16)]);
        MMA(acc[n], a, b0, b1);
        MMA(acc[n + 1], a, b2, b3);
      }
    }
#else
    UNROLL for (int r = 0; r < EIGHTS; ++r) {
      uint a[4] = {as_uint(score[r][0]), as_uint(score[r][2]), as_uint(score[r][1]), as_uint(score[r][3])};
      SPLIT_UP(a, upper)
      UNROLL for (int n = 0; n < COLUMNS; ++n) {
        const int key = own + r * 8 + lane % 4 * 2, c = n * 8 + lane / 4;
        const uint b0 = bits_of(v_tile[turn], key, c), b1 = bits_of(v_tile[turn], key + 1, c);
        PRODUCT(acc[n], a, upper, b0, b1);
      }
    }
#endif
  }
  UNROLL for (int r = 0; r < 2; ++r) QUAD(sum[r], MORE);
#if SPLITS > 1  // the other part's results come through local memory that keys and values no longer need
  local float *const kept[] = {(local float *)k_tile, (local float *)v_tile, (local float *)q_tile};
  const int at = id % (WARPS * 32);
  DRAIN;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (own) {
    UNROLL for (int n = 0; n < COLUMNS; ++n)
      UNROLL for (int e = 0; e < 4; ++e) kept[n % 2][(n / 2 * 4 + e) * WARPS * 32 + at] = acc[n][e];
    UNROLL for (int r = 0; r < 2; ++r) {
      kept[2][r * WARPS * 32 + at] = top[r];
      kept[2][(2 + r) * WARPS * 32 + at] = sum[r];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (own) return;
  UNROLL for (int r = 0; r < 2; ++r) {
    const float other = kept[2][r * WARPS * 32 + at], most = fmax(top[r], other), base = most == -INFINITY ? 0 : most;
    const float mine = EXP2(top[r] - base), its = EXP2(other - base);
    sum[r] = sum[r] * mine + kept[2][(2 + r) * WARPS * 32 + at] * its;
    UNROLL for (int n = 0; n < COLUMNS; ++n)
      UNROLL for (int e = r * 2; e < r * 2 + 2; ++e)
        acc[n][e] = acc[n][e] * mine + kept[n % 2][(n / 2 * 4 + e) * WARPS * 32 + at] * its;
  }
#endif
  UNROLL for (int r = 0; r < 2; ++r) {
    const int row = first + warp + lane / 4 + r * 8;
    const float part = sum[r] == 0 ? 0 : 1 / sum[r];
    UNROLL for (int n = 0; n < COLUMNS; ++n) {
      const int c = n * 8 + lane % 4 * 2;
      if (row >= rows || c >= v_size) continue;
      STP(y, (size_t)row * y_row + c, (float2)(acc[n][r * 2], acc[n][r * 2 + 1]) * part);
    }
  }
}
