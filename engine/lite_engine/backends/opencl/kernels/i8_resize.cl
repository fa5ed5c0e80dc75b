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
