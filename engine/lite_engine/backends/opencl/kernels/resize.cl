// Separable resize of x (N,H,W,C) by tap tables: TAPS source rows and weights for each output row,
// and the same for columns. V channels an item.
kernel void resize(global const T *x, global const int *rows, global const float *row_weights,
                   global const int *columns, global const float *column_weights, global T *y,
                   int total, int H, int W, int C, int OH, int OW) {
  const int i = get_global_id(0) * V;
  if (i >= total) return;
  const int c = i % C, ox = i / C % OW, oy = i / C / OW % OH, b = i / C / OW / OH;
  FV s = 0;
  for (int p = 0; p < TAPS; ++p)
    for (int q = 0; q < TAPS; ++q)
      s += row_weights[oy * TAPS + p] * column_weights[ox * TAPS + q] *
           LDV(x, ((b * H + rows[oy * TAPS + p]) * W + columns[ox * TAPS + q]) * C + c);
  STV(y, i, s);
}
