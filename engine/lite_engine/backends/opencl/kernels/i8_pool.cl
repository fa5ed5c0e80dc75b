// x (N,H,W,C) → y (N,OH,OW,C), V channels an item: the maximum, or with -DAVERAGE the sum of x - x_zero times
// ratios[count of the places that count], COUNT_PAD padded ones too. With AWAY the sum over
// that count, ties away from 0. With MEAN the sum of x as it is, less x_zero, times ratios[0], plus
// ratios[1]; ratios[2] is 0. Loops over a window of at most MOST rows and columns are unrolled, with all
// loads under way at once.
//@ options V=1,4,8,16 ALIGNED AVERAGE COUNT_PAD AWAY MEAN MOST=2..8 GROUPS
#ifdef MEAN
#define AVERAGE
#endif
#ifdef AVERAGE
#define JOINED(s, v) ((s) + (v))
#else
#define JOINED(s, v) max(s, v)
#endif
// V bytes as words, in which they are flipped and masked together, and read in one access
#if V == 16
#define WORDS uint4
#define BYTES(w) as_uchar16(w)
#elif V == 8
#define WORDS uint2
#define BYTES(w) as_uchar8(w)
#elif V == 4
#define WORDS uint
#define BYTES(w) as_uchar4(w)
#endif
#if V == 1
#define TAKEN(x, i, mask) TO_INT((uint)FLIP((x)[i], flip) & (mask))
#else
#define FLIPS ((uint)flip * 0x01010101u)
#define TAKEN(x, i, mask) TO_INT(BYTES((*(global const WORDS *)((x) + (i)) ^ FLIPS) & (mask)))
#endif
// What becomes of `s`, to which `inside` places of x came, of `count` that count
#ifndef AVERAGE
#define FINISHED(inside, count) FLIP(TO_BYTE(s), flip)
#elif defined(AWAY)
#define FINISHED(inside, count) whole_part(s - (inside) * x_zero, max(count, 1), y_zero, flip)
static inline UV whole_part(IV s, int count, float y_zero, int flip) {
  const IV most = count / 2;
  return FLIP(TO_BYTE((s + (s > 0 ? most : -most)) / count + (int)y_zero), flip);
}
#elif defined(MEAN)
#define FINISHED(inside, count) ((void)(count), mean_of(s - (inside) * x_zero, ratios, y_zero, flip))
static inline UV mean_of(IV s, global const float *ratios, float y_zero, int flip) {
  const int nothing = as_int(ratios[2]);
  const FV product = TO_FLOAT(s) * ratios[0];
  return nearest_byte(ROUNDED(product) + ratios[1], y_zero, flip);
}
#else
#define FINISHED(inside, count) nearest_byte(TO_FLOAT(s - (inside) * x_zero) * ratios[max(count, 1)], y_zero, flip)
#endif

//@ kernel pool
//@ need min(total, OH, OW, C, KH, KW, H, W) > 0, C % V == 0, total % V == 0, (g0 + 1) * V <= INT_MAX
//@ need min(SH, SW, DH, DW) >= 0, H + max(PB, -PB) <= INT_MAX, W + max(PR, -PR) <= INT_MAX
//@ need OH * SH + (KH + 8) * DH + max(PT, -PT) <= INT_MAX, OW * SW + (KW + 8) * DW + max(PL, -PL) <= INT_MAX
//@ need max(KH, KW) <= MOST when MOST
//@ items total / V
//@ reads x[up(total, OH * OW * C) * H * W * C]
//@ reads ratios[KH * KW + 1] when AVERAGE
//@ reads ratios[3] when MEAN
//@ writes y[total]
kernel void pool(global const uchar *x, global const float *ratios, global uchar *y, int total, int H, int W, int C,
                 int OH, int OW, int KH, int KW, int SH, int SW, int PT, int PL, int PB, int PR, int DH, int DW,
                 int flip, int x_zero, float y_zero) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int pixel = i / C, c = i - pixel * C, line = pixel / OW, ox = pixel - line * OW;
  const int b = line / OH, oy = line - b * OH;
  x += (size_t)b * H * W * C + c;
  IV s = 0;
#ifdef AVERAGE
  int inside = 0, count = 0;
#endif
#ifdef MOST
#define TAPS(k, n) UNROLL for (int k = 0; k < MOST; ++k)
#define COUNTS(k, n) (k < n) &
#else
#define TAPS(k, n) _Pragma("unroll 8") for (int k = 0; k < n; ++k)
#define COUNTS(k, n)
#endif
  TAPS(ky, KH) {
    const int iy = oy * SH - PT + ky * DH;
    TAPS(kx, KW) {
      const int ix = ox * SW - PL + kx * DW;
      const int good = COUNTS(ky, KH) COUNTS(kx, KW) ((uint)iy < (uint)H) & ((uint)ix < (uint)W);
      // Outside the image 0, which changes neither a sum nor a maximum: no branch keeps a load waiting.
      const IV v = TAKEN(x, (clamp(iy, 0, H - 1) * W + clamp(ix, 0, W - 1)) * C, -(uint)good);
      s = JOINED(s, v);
#ifdef AVERAGE
      inside += good;
#ifdef COUNT_PAD
      count += COUNTS(ky, KH) COUNTS(kx, KW) (iy < H + PB) & (ix < W + PR);
#else
      count += good;
#endif
#endif
    }
  }
  STB(y, i, FINISHED(inside, count));
}

// The same of whole images of n pixels, by groups of 16·V neighbouring channels and 16 items for each.
#ifdef GROUPS
//@ kernel pool_group
//@ need min(n, C) > 0, C % V == 0, n + 16 <= INT_MAX, (n + 16) * C <= INT_MAX, C + 16 * V <= INT_MAX
//@ group 256, 1
//@ items up(C, 16 * V) * 256, g1
//@ local 16 * 17 * V * 4
//@ reads x[g1 * n * C]
//@ reads ratios[n + 1] when AVERAGE
//@ reads ratios[3] when MEAN
//@ writes y[g1 * C]
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void pool_group(global const uchar *x, global const float *ratios, global uchar *y, int n, int C, int flip, int x_zero,
                float y_zero) {
  local IV part[16][17];
  const int id = get_local_id(0), lane = id % 16, slice = id / 16;
  const int c = (get_group_id(0) * 16 + lane) * V;
  IV s = 0;
  if (c < C) {
    x += get_group_id(1) * (size_t)n * C + c;
    _Pragma("unroll 4") for (int k = slice; k < n; k += 16) {
      const IV v = TAKEN(x, k * C, ~0u);
      s = JOINED(s, v);
    }
  }
  part[slice][lane] = s;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (slice != 0 || c >= C) return;
  UNROLL for (int p = 1; p < 16; ++p) s = JOINED(s, part[p][lane]);
  STB(y, get_group_id(1) * (size_t)C + c, FINISHED(n, n));
}
#endif
