// Separable resize of x (N,H,W,C) by tap tables: TAPS source rows and weights for each output row,
// and the same for columns. V channels an item. The tables come with a model: rows and columns are kept inside.
//@ options HALF HALF_TYPES ALIGNED V=1,2,4,8,16 TAPS=1..65536
//@ kernel resize
//@ need min(H, W, C, OH, OW) > 0, C % V == 0, (g0 + 1) * V <= INT_MAX
//@ items C / V, OW, images * OH
//@ reads x[images * H * W * C], rows[OH * TAPS], row_weights[OH * TAPS]
//@ reads columns[OW * TAPS], column_weights[OW * TAPS]
//@ writes y[images * OH * OW * C]
kernel void resize(global const T *x, global const int *rows, global const float *row_weights,
                   global const int *columns, global const float *column_weights, global T *y,
                   int images, int H, int W, int C, int OH, int OW) {
  const int c = get_global_id(0) * V, ox = get_global_id(1), line = get_global_id(2), oy = line % OH;
  if (c >= C || ox >= OW || line >= images * OH) return;
  x += (size_t)(line / OH) * H * W * C + c;
  FV s = 0;
  UNROLL for (int p = 0; p < TAPS; ++p) {
    const int row = clamp(rows[oy * TAPS + p], 0, H - 1) * W;
    const float factor = row_weights[oy * TAPS + p];
    UNROLL for (int q = 0; q < TAPS; ++q) {
      const FV v = LDV(x, (row + clamp(columns[ox * TAPS + q], 0, W - 1)) * C);
      s += factor * column_weights[ox * TAPS + q] * v;
    }
  }
  STV(y, ((size_t)line * OW + ox) * C + c, s);
}
