// x (N,H,W,C) → y (N,OH,OW,C): row rows[oy] and column columns[ox] of x, V channels an item.
kernel void resize(global const uchar *x, global const int *rows, global const int *columns, global uchar *y,
                   int images, int H, int W, int C, int OH, int OW) {
  const int c = get_global_id(0) * V, ox = get_global_id(1), line = get_global_id(2);
  if (c >= C || ox >= OW || line >= images * OH) return;
  const size_t from = ((size_t)(line / OH) * H + rows[line % OH]) * W + columns[ox];
  STB(y, ((size_t)line * OW + ox) * C + c, LDB(x, from * C + c));
}
