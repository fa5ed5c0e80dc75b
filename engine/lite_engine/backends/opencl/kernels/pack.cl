// What conv.cl works on: padded inputs and packed matrices, both of floats.
// x (N,H,W,C), pixels XP apart from x_at on, into y (N,H',W',C) of floats, zeros around it. An item has
// a row.
//@ options HALF V=1,2,4,8,16 WIDTH=1..256
//@ kernel surround
//@ need min(rows, HP) > 0, min(H, W, C, top, left) >= 0, left + W <= WP, C + V <= INT_MAX, W * C + V <= INT_MAX
//@ items rows
//@ reads x[x_at, up(rows, HP) * H * W, XP, C]
//@ writes y[rows * WP * C]
kernel void surround(global const T *x, global float *y, int rows, int H, int W, int C, int top, int left,
                     int HP, int WP, int XP, int x_at) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  const int yy = row % HP - top;
  global float *to = y + (size_t)row * WP * C;
  const int before = left * C, width = W * C, inside = yy >= 0 && yy < H;
  for (int i = 0; i < (inside ? before : WP * C); ++i) to[i] = 0;
  if (!inside) return;
  global const T *from = x + ((size_t)(row / HP) * H + yy) * W * XP + x_at;
  const int run = XP == C ? width : C;
  for (int first = 0, at = before; at < before + width; at += run, first += XP) {
    int i = 0;
    for (; i + V <= run; i += V) {
      const FV v = LDV(from, first + i);
      STFV(to, at + i, v);
    }
    for (; i < run; ++i) to[at + i] = LD(from, first + i);
  }
  for (int i = before + width; i < WP * C; ++i) to[i] = 0;
}

// b (B,K,N) as packed weights (B, blocks, K, WIDTH), zeros beyond N.
//@ kernel pack
//@ need min(K, N, WIDTH) > 0, N + WIDTH <= INT_MAX
//@ items K, up(N, WIDTH), g2
//@ need blocks == up(N, WIDTH)
//@ reads b[g2 * K * N]
//@ writes w[g2 * blocks * K * WIDTH]
kernel void pack(global const T *b, global float *w, int K, int N, int blocks) {
  const int k = get_global_id(0), block = get_global_id(1), plane = get_global_id(2);
  if (k >= K || block >= blocks) return;
  global const T *from = b + ((size_t)plane * K + k) * N + block * WIDTH;
  global float *to = w + (((size_t)plane * blocks + block) * K + k) * WIDTH;
  const int left = min(WIDTH, N - block * WIDTH);
  for (int i = 0; i < left; ++i) to[i] = LD(from, i);
  for (int i = left; i < WIDTH; ++i) to[i] = 0;
}

// x (rows, W, KH, run) as y (rows, KH, W, run): pixels of a transposed convolution whose stride is its
// kernel. An item has a row of y.
//@ kernel spread
//@ need min(rows, KH) > 0, min(W, run) >= 0, run + V <= INT_MAX
//@ items rows, KH
//@ reads x[rows * W * KH * run]
//@ writes y[rows * W * KH * run]
kernel void spread(global const T *x, global T *y, int rows, int W, int KH, int run) {
  const int row = get_global_id(0), ky = get_global_id(1);
  if (row >= rows || ky >= KH) return;
  for (int i = 0; i < W; ++i) {
    global const T *from = x + (((size_t)row * W + i) * KH + ky) * run;
    global T *to = y + (((size_t)row * KH + ky) * W + i) * run;
    int k = 0;
    for (; k + V <= run; k += V) {
      const FV v = LDV(from, k);
      STV(to, k, v);
    }
    for (; k < run; ++k) ST(to, k, LD(from, k));
  }
}
