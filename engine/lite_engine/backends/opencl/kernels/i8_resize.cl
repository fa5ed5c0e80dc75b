// x (N,H,W,C) → y (N,OH,OW,C): row rows[oy] and column columns[ox] of x, V channels an item.
//@ options V=1,4,8,16 ALIGNED
//@ kernel resize
//@ need min(H, W, C, OH, OW) > 0, C % V == 0, (g0 + 1) * V <= INT_MAX
//@ items C / V, OW, images * OH
//@ reads x[images * H * W * C], rows[OH], columns[OW]
//@ writes y[images * OH * OW * C]
kernel void resize(global const uchar *x, global const int *rows, global const int *columns, global uchar *y,
                   int images, int H, int W, int C, int OH, int OW) {
  const int c = get_global_id(0) * V, ox = get_global_id(1), line = get_global_id(2);
  if (c >= C || ox >= OW || line >= images * OH) return;
  const int row = clamp(rows[line % OH], 0, H - 1), column = clamp(columns[ox], 0, W - 1);
  const size_t from = ((size_t)(line / OH) * H + row) * W + column;
  STB(y, ((size_t)line * OW + ox) * C + c, LDB(x, from * C + c));
}

// Between two rows and two columns, x at `weights`/2048 behind the first of a pair, as XNNPACK interpolates bytes. Tables
// come with a model: rows and columns are kept inside.
//@ kernel interpolate
//@ need min(H, W, C, OH, OW) > 0, C % V == 0, (g0 + 1) * V <= INT_MAX
//@ items C / V, OW, images * OH
//@ reads x[images * H * W * C], rows[OH * 2], row_weights[OH], columns[OW * 2], column_weights[OW]
//@ writes y[images * OH * OW * C]
kernel void interpolate(global const uchar *x, global const int *rows, global const int *row_weights,
                        global const int *columns, global const int *column_weights, global uchar *y, int images,
                        int H, int W, int C, int OH, int OW, int flip) {
  const int c = get_global_id(0) * V, ox = get_global_id(1), line = get_global_id(2), oy = line % OH;
  if (c >= C || ox >= OW || line >= images * OH) return;
  x += (size_t)(line / OH) * H * W * C + c;
  const int left = clamp(columns[ox * 2], 0, W - 1) * C, right = clamp(columns[ox * 2 + 1], 0, W - 1) * C;
  IV between[2];
  UNROLL for (int i = 0; i < 2; ++i) {
    const size_t row = (size_t)clamp(rows[oy * 2 + i], 0, H - 1) * W * C;
    const IV near = TO_INT(FLIP(LDB(x, row + left), flip)), far = TO_INT(FLIP(LDB(x, row + right), flip));
    between[i] = near * 2048 + (far - near) * column_weights[ox];
  }
  const IV sum = between[0] * 2048 + (between[1] - between[0]) * row_weights[oy];
  STB(y, ((size_t)line * OW + ox) * C + c, FLIP(TO_BYTE((sum + (1 << 21)) >> 22), flip));
}
