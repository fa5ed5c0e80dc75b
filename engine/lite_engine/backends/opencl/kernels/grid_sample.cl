// y[n, c, p] = x[n, c] at grid[n, p], positions of -1 to 1 as (x, y): a weighted sum of the pixels near it,
// 2 x 2 of them, one (-DNEAREST) or 4 x 4 (-DCUBIC: Keys 1981, a = -0.75). Places outside hold 0, what the
// edge has (-DBORDER), or are mirrored (-DREFLECT), at the middles of the outer pixels with -DCORNERS, where
// -1 and 1 are, or else at their outer edges. Positions are floats in fp16, too: halves between 0.5 and 1 are a
// quarter of a pixel apart in an image of 1,000.
//@ options NEAREST CUBIC BORDER REFLECT CORNERS
#define FAR 16777216.0f  // beyond it no float can place a position; NaN counts as such
#ifdef NEAREST
#define TAPS 1
#elif defined(CUBIC)
#define TAPS 4
#else
#define TAPS 2
#endif
#ifdef CORNERS
#define LOW 0.0f
#define SPAN(size) ((size) - 1)
#define PLACED(g, size) (((g) + 1) / 2 * ((size) - 1))
#else
#define LOW -0.5f
#define SPAN(size) (size)
#define PLACED(g, size) ((((g) + 1) * (size) - 1) / 2)
#endif

static inline float mirrored(float p, float size) {
  const float span = SPAN(size);
  if (span <= 0) return 0;
  float folded = fmod(p - LOW, 2 * span);
  if (folded < 0) folded += 2 * span;
  return LOW + (folded > span ? 2 * span - folded : folded);
}

#ifndef NEAREST
static inline float weight_of(float d) {
  d = fabs(d);
#ifdef CUBIC
  const float a = -0.75f;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
#else
  return 1 - d;
#endif
}
#endif

// The places of the taps along one axis, all inside, and their weights.
static inline void find_taps(float g, int size, int *at, float *weight) {
  const float whole = (float)size;
  float p = PLACED(g, whole);
  p = p > -FAR ? (p < FAR ? p : FAR) : -FAR;
#if defined(REFLECT) && !defined(CUBIC)
  p = mirrored(p, whole);
#endif
#if (defined(REFLECT) || defined(BORDER)) && !defined(CUBIC)
  p = AT_MOST(AT_LEAST(p, 0.0f), whole - 1);
#endif
#ifdef NEAREST
  const int first = (int)rint(p);
#elif defined(CUBIC)
  const int first = (int)floor(p) - 1;
#else
  const int first = (int)floor(p);
#endif
  for (int i = 0; i < TAPS; ++i) {
    int place = first + i;
#ifdef NEAREST
    weight[i] = 1;
#else
    weight[i] = weight_of(p - (float)place);
#endif
#ifdef REFLECT
    if (place < 0 || place >= size) place = (int)rint(mirrored((float)place, whole));
#elif !defined(BORDER)
    if (place < 0 || place >= size) weight[i] = 0;
#endif
    at[i] = clamp(place, 0, size - 1);
  }
}

//@ kernel grid_sample
//@ need min(planes, C, H, W, P) > 0, planes % C == 0
//@ items P, planes
//@ reads x[planes * H * W], grid[planes / C * P * 2]
//@ writes y[planes * P]
kernel void grid_sample(global const T *x, global const T *grid, global T *y, int planes, int C, int H, int W,
                        int P) {
  const int p = get_global_id(0), plane = get_global_id(1);
  if (p >= P || plane >= planes) return;
  int across[TAPS], down[TAPS];
  float wide[TAPS], high[TAPS], sum = 0;
  const size_t position = ((size_t)(plane / C) * P + p) * 2;
  find_taps(LD(grid, position), W, across, wide);
  find_taps(LD(grid, position + 1), H, down, high);
  x += (size_t)plane * H * W;
  for (int i = 0; i < TAPS; ++i)
    for (int j = 0; j < TAPS; ++j) sum += high[i] * wide[j] * LD(x, down[i] * W + across[j]);
  ST(y, (size_t)plane * P + p, sum);
}
