// (x − mean) / sqrt(var + eps) over the middle axis of (outer, n, inner), then scale and offset: per
// position of the axis (-DPER_N), or per inner index. -DRMS: x / sqrt(mean of x² + eps), without an offset.
// V inner indices an item.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 ITEMS=1..64 HOLD=0..32 LANES=1,2,4,8,16,32 SPAN=1,2,4,8,16,32 PER_N RMS RESIDUAL
//@ options ACT(x) ACT_A:number ACT_B:number
#ifdef RMS
#define OFFSET(load) 0.0f
#else
#define OFFSET(load) (load)
#endif

//@ kernel normalise
//@ need min(outer, n, inner) > 0, inner % V == 0, (g0 + 1) * V <= INT_MAX
//@ items outer * inner / V
//@ reads x[outer * n * inner]
//@ reads scale[n] when PER_N
//@ reads scale[inner] when PER_N == 0
//@ reads offset[n] when PER_N > RMS
//@ reads offset[inner] when PER_N + RMS == 0
//@ writes y[outer * n * inner]
kernel void normalise(global const T *x, global const float *scale, global const float *offset,
                      global T *y, int outer, int n, int inner, float epsilon) {
  const int i = get_global_id(0) * V;
  if (i >= outer * inner) return;
  const int at = i / inner * n * inner + i % inner;
  FV mean = 0, square = 0;
#ifndef RMS
  for (int k = 0; k < n; ++k) mean += LDV(x, at + k * inner);
  mean /= (float)n;
  FV lost = 0;  // by one long sum
  for (int k = 0; k < n; ++k) lost += LDV(x, at + k * inner) - mean;
  mean += lost / (float)n;
#endif
  for (int k = 0; k < n; ++k) {
    const FV d = LDV(x, at + k * inner) - mean;
    square += d * d;
  }
  const FV factor = rsqrt(square / (float)n + epsilon);
  for (int k = 0; k < n; ++k) {
#ifdef PER_N
    const FV s = scale[k], t = OFFSET(offset[k]);
#else
    const FV s = LDFV(scale, i % inner), t = OFFSET(LDFV(offset, i % inner));
#endif
    const FV v = (LDV(x, at + k * inner) - mean) * factor * s + t;
    const FV done = ACT(v);
    STV(y, at + k * inner, done);
  }
}

// The same of rows (inner is 1), each by a group of ITEMS work-items.
#ifdef ITEMS
#define ADD(s, t) ((s) + (t))
#ifdef PER_N
#define OF_VECTOR(p, k) LDFV(p, k)
#define OF_ONE(p, k) (p)[k]
#else
#define OF_VECTOR(p, k) (p)[0]
#define OF_ONE(p, k) (p)[0]
#endif
#ifdef RMS
#define ROW_MEAN(x)
#else
#if HOLD
#define ROW_LOST(x)
#else  // long sums have lost digits
#define ROW_LOST(x)                                                \
  float lost = 0;                                                  \
  EACH_HELD(many += held - mean);                                  \
  FOLD(many, lost, ADD);                                           \
  for (int k = whole + id; k < n; k += ITEMS) lost += LD(x, k) - mean; \
  TOGETHER(part, id, lost, ADD);                                   \
  mean += lost / (float)n;                                         \
  many = 0;
#endif
#define ROW_MEAN(x)                                                \
  EACH_HELD(many += held);                                         \
  FOLD(many, mean, ADD);                                           \
  for (int k = whole + id; k < n; k += ITEMS) mean += LD(x, k);    \
  TOGETHER(part, id, mean, ADD);                                   \
  mean /= (float)n;                                                \
  many = 0;                                                        \
  ROW_LOST(x)
#endif
#define ROW_NORMALISED(x, y)                                                                     \
  FV many = 0;                                                                                   \
  float mean = 0, square = 0;                                                                    \
  HELD(x);                                                                                       \
  ROW_MEAN(x)                                                                                    \
  EACH_HELD(many += (held - mean) * (held - mean));                                              \
  FOLD(many, square, ADD);                                                                       \
  for (int k = whole + id; k < n; k += ITEMS) square += (LD(x, k) - mean) * (LD(x, k) - mean);   \
  TOGETHER(part, id, square, ADD);                                                               \
  const float factor = rsqrt(square / (float)n + epsilon);                                       \
  EACH_HELD({                                                                                    \
    const FV v = (held - mean) * factor * OF_VECTOR(scale, k) + OFFSET(OF_VECTOR(offset, k));    \
    const FV done = ACT(v);                                                                      \
    STV(y, k, done);                                                                             \
  });                                                                                            \
  for (int k = whole + id; k < n; k += ITEMS) {                                                  \
    const float v = (LD(x, k) - mean) * factor * OF_ONE(scale, k) + OFFSET(OF_ONE(offset, k));   \
    const float done = ACT(v);                                                                   \
    ST(y, k, done);                                                                              \
  }
//@ kernel normalise_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n >= 0, n + 16 * ITEMS <= INT_MAX
//@ need n % V == 0 when ALIGNED
//@ local (ITEMS + 8) * 4
//@ reads x[rows * n]
//@ reads scale[n] when PER_N
//@ reads scale[1] when PER_N == 0
//@ reads offset[n] when PER_N > RMS
//@ reads offset[1] when PER_N + RMS == 0
//@ writes y[rows * n]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void normalise_row(global const T *x, global const float *scale, global const float *offset,
                   global T *y, int n, float epsilon) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n / V * V;
  x += (size_t)get_group_id(0) * n;
  y += (size_t)get_group_id(0) * n;
  ROW_NORMALISED(x, y)
}

#if HOLD
// The same of rows that are first the sums of a split product's parts, bias and residual (conv_sum in
// conv_tile.cl), which stay in `sum`; n is a multiple of V and held.
//@ kernel sum_normalise_row
//@ let rows = g0 / ITEMS
//@ group ITEMS
//@ items rows * ITEMS
//@ need n > 0, n % V == 0, n + 16 * ITEMS <= INT_MAX, parts > 0, size == rows * n, size <= INT_MAX
//@ local (ITEMS + 8) * 4
//@ reads partial[parts * size], bias[n]
//@ reads residual[size] when RESIDUAL
//@ writes sum[size]
//@ reads scale[n] when PER_N
//@ reads scale[1] when PER_N == 0
//@ reads offset[n] when PER_N > RMS
//@ reads offset[1] when PER_N + RMS == 0
//@ writes y[size]
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void sum_normalise_row(global const float *partial, global const float *bias, global const T *residual,
                       global T *sum, global const float *scale, global const float *offset, global T *y,
                       int size, int n, int parts, float epsilon) {
  local float part[PARTS];
  const int id = get_local_id(0), whole = n;
  const size_t row = (size_t)get_group_id(0) * n;
  partial += row;
  residual += row;
  sum += row;
  y += row;
  FV row_sum[HOLD];
#define EACH_SUM UNROLL for (int h = 0, k = id * V; h < HOLD; ++h, k += ITEMS * V) if (k < whole)
  EACH_SUM row_sum[h] = LDFV(bias, k);
  _Pragma("unroll 4") for (int p = 0; p < parts; ++p, partial += size) EACH_SUM row_sum[h] += LDFV(partial, k);
#ifdef RESIDUAL
  EACH_SUM row_sum[h] += LDV(residual, k);
#endif
  EACH_SUM STV(sum, k, row_sum[h]);
  global const T *x = sum;  // of which an item reads what it has written
  ROW_NORMALISED(x, y)
}
#endif
#endif

// The same where few groups of a long axis would leave a GPU idle, or statistics are of groups of `each` times
// SPAN inner indices, in two launches: the mean and the sum of squares about it of each part (`length`
// positions of the axis and SPAN inner indices), then of all parts together (Chan, Golub and LeVeque 1983).
// A group of work-items has one part of LANES neighbouring inner indices.
#ifdef LANES
#define SLICES (256 / LANES)
#define PLACE                                                                             \
  const int id = get_local_id(0), lane = id % LANES, slice = id / LANES;                  \
  const int blocks = (inner + LANES - 1) / LANES, parts = (n + length - 1) / length;      \
  const int group = get_group_id(0), c = group % blocks * LANES + lane;                   \
  const int p = group / blocks % parts, o = group / blocks / parts, inside = c < inner;   \
  const int begin = p * length, end = min(begin + length, n), spans = inner / SPAN;       \
  const int stop = inside ? end : begin;                                                  \
  const size_t at = (size_t)o * n * inner + c
// s of all slices of SPAN lanes; every one of them gets it.
#define ALL_SLICES(sums, s)                                     \
  do {                                                          \
    sums[id] = s;                                               \
    barrier(CLK_LOCAL_MEM_FENCE);                               \
    for (int half_ = 128; half_ >= LANES; half_ /= 2) {         \
      if (id < half_) sums[id] += sums[id + half_];             \
      barrier(CLK_LOCAL_MEM_FENCE);                             \
    }                                                           \
    for (int half_ = SPAN / 2; half_ > 0; half_ /= 2) {         \
      if (id % SPAN < half_) sums[id] += sums[id + half_];      \
      barrier(CLK_LOCAL_MEM_FENCE);                             \
    }                                                           \
    s = sums[lane / SPAN * SPAN];                               \
    barrier(CLK_LOCAL_MEM_FENCE);                               \
  } while (0)

//@ kernel moments
//@ need min(n, inner) > 0, min(length, LANES) > 0, length <= n, n + n + 256 <= INT_MAX
//@ let groups = up(n, length) * up(inner, LANES)
//@ let outer = g0 / 256 / groups
//@ need outer * n * inner <= INT_MAX, inner % SPAN == 0
//@ group 256
//@ items outer * groups * 256
//@ local 256 * 4
//@ reads x[outer * n * inner]
//@ writes part[outer * up(n, length) * inner / SPAN * 2]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void moments(global const T *x, global float *part, int n, int inner, int length) {
  local float sums[256];
  PLACE;
  float mean = 0, square = 0;
#ifndef RMS
  _Pragma("unroll 4") for (int k = begin + slice; k < stop; k += SLICES) mean += LD(x, at + (size_t)k * inner);
  ALL_SLICES(sums, mean);
  mean /= (float)((end - begin) * SPAN);
#endif
  _Pragma("unroll 4") for (int k = begin + slice; k < stop; k += SLICES) {
    const float d = LD(x, at + (size_t)k * inner) - mean;
    square += d * d;
  }
  ALL_SLICES(sums, square);
  if (slice != 0 || !inside || lane % SPAN != 0) return;
  part += ((o * parts + p) * spans + c / SPAN) * 2;
  part[0] = mean;
  part[1] = square;
}

//@ kernel normalise_parts
//@ need min(n, inner) > 0, min(length, LANES) > 0, length <= n, n + n + 256 <= INT_MAX
//@ let groups = up(n, length) * up(inner, LANES)
//@ let outer = g0 / 256 / groups
//@ need outer * n * inner <= INT_MAX, each > 0, inner % (each * SPAN) == 0, n * each * SPAN <= INT_MAX
//@ group 256
//@ items outer * groups * 256
//@ local 256 * 4
//@ reads x[outer * n * inner], part[outer * up(n, length) * inner / SPAN * 2]
//@ reads scale[n] when PER_N
//@ reads scale[inner] when PER_N == 0
//@ reads offset[n] when PER_N > RMS
//@ reads offset[inner] when PER_N + RMS == 0
//@ writes y[outer * n * inner]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void normalise_parts(global const T *x, global const float *part, global const float *scale,
                     global const float *offset, global T *y, int n, int inner, int length,
                     int each, float epsilon) {
  local float sums[256];
  PLACE;
  // Of the lane's group; the lanes of a span share them, as they share its sums.
  const int last = parts * each;
  part += (o * parts * spans + c / SPAN / each * each) * 2;
#define EACH_PART for (int q = slice * SPAN + lane % SPAN; inside && q < last; q += SLICES * SPAN)
#define PART(q) part[((q) / each * spans + (q) % each) * 2]
#define COUNT(q) (float)(min(length, n - (q) / each * length) * SPAN)
  float mean = 0, square = 0;
#ifndef RMS
  EACH_PART mean += PART(q) * COUNT(q);
  ALL_SLICES(sums, mean);
  mean /= (float)(n * each * SPAN);
#endif
  EACH_PART {
    const float d = PART(q) - mean;
    square += (&PART(q))[1] + d * d * COUNT(q);
  }
  ALL_SLICES(sums, square);
  const float factor = rsqrt(square / (float)(n * each * SPAN) + epsilon);
  _Pragma("unroll 4") for (int k = begin + slice; k < stop; k += SLICES) {
#ifdef PER_N
    const float s = scale[k], t = OFFSET(offset[k]);
#else
    const float s = scale[c], t = OFFSET(offset[c]);
#endif
    const float v = (LD(x, at + (size_t)k * inner) - mean) * factor * s + t;
    const float done = ACT(v);
    ST(y, at + (size_t)k * inner, done);
  }
}

#if HOLD && LANES == 1
// The same in one launch: each `width` neighbouring inner indices by a group of work-items, HOLD numbers in
// the registers of each.
//@ kernel normalise_group
//@ need n > 0, width > 0, inner % width == 0, n * width <= 256 * HOLD
//@ let groups = inner / width
//@ let outer = g0 / 256 / groups
//@ need outer * n * inner <= INT_MAX
//@ group 256
//@ items outer * groups * 256
//@ local 256 * 4
//@ reads x[outer * n * inner], scale[inner], offset[inner]
//@ writes y[outer * n * inner]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void normalise_group(global const T *x, global const float *scale, global const float *offset,
                     global T *y, int n, int inner, int width, float epsilon) {
  local float sums[256];
  const int id = get_local_id(0), lane = 0, whole = n * width, groups = inner / width;
  const int o = get_group_id(0) / groups, c = get_group_id(0) % groups * width;
  const int rows = 256 / width, columns = 256 % width;  // from one number of an item to its next
  x += o * n * inner + c;
  y += o * n * inner + c;
  scale += c;
  offset += c;
  float own[HOLD];
#define EACH_OWN UNROLL for (int h = 0; h < HOLD; ++h) if (h * 256 + id < whole)
#define EACH_PLACE(...)                                                           \
  do {                                                                            \
    int column = id % width, place = id / width * inner + column;                 \
    UNROLL for (int h = 0; h < HOLD; ++h) {                                       \
      if (h * 256 + id < whole) {                                                 \
        __VA_ARGS__;                                                              \
      }                                                                           \
      const int over = (column += columns) >= width;                              \
      place += rows * inner + columns + (over ? inner - width : 0);               \
      column -= over ? width : 0;                                                 \
    }                                                                             \
  } while (0)
  float mean = 0, square = 0;
  EACH_PLACE(own[h] = LD(x, place));
  EACH_OWN mean += own[h];
  ALL_SLICES(sums, mean);
  mean /= (float)whole;
  EACH_OWN square += (own[h] - mean) * (own[h] - mean);
  ALL_SLICES(sums, square);
  const float factor = rsqrt(square / (float)whole + epsilon);
  EACH_PLACE({
    const float v = (own[h] - mean) * factor * scale[column] + offset[column];
    const float done = ACT(v);
    ST(y, place, done);
  });
}
#endif
#endif

// y = ACT(x · scale[c] + offset[c]), channels innermost, V of them an item.
//@ kernel affine
//@ need min(n, channels) > 0, channels % V == 0, n % V == 0, (g0 + 1) * V <= INT_MAX
//@ items n / V
//@ reads x[n], scale[channels], offset[channels]
//@ writes y[n]
kernel void affine(global const T *x, global const float *scale, global const float *offset,
                   global T *y, int n, int channels) {
  const int i = get_global_id(0) * V;
  if (i >= n) return;
  const int c = i % channels;
  const FV v = LDV(x, i) * LDFV(scale, c) + LDFV(offset, c);
  const FV done = ACT(v);
  STV(y, i, done);
}
