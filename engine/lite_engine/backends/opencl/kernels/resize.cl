// Separable resize of x (N,H,W,C) by tap tables: TAPS source rows and weights for each output row,
// and the same for columns. V channels an item.
kernel void resize(global const T *x, global const int *rows, global const float *row_weights,
                   global const int *columns, global const float *column_weights, global T *y,
                   int images, int H, int W, int C, int OH, int OW) {
  const int c = get_global_id(0) * V, ox = get_global_id(1), line = get_global_id(2), oy = line % OH;
  if (c >= C || ox >= OW || line >= images * OH) return;
  x += (size_t)(line / OH) * H * W * C + c;
  FV s = 0;
  UNROLL for (int p = 0; p < TAPS; ++p) {
    const int row = rows[oy * TAPS + p] * W;
    const float factor = row_weights[oy * TAPS + p];
    UNROLL for (int q = 0; q < TAPS; ++q) {
      const FV v = LDV(x, (row + columns[ox * TAPS + q]) * C);
      s += factor * column_weights[ox * TAPS + q] * v;
    }
  }
  STV(y, ((size_t)line * OW + ox) * C + c, s);
}
