// Strided copy over up to six axes: Relayout, Slice, Concat, Split, Expand. E: integer type of an
// element's size. Constant padding: places outside the source hold `fill`.
kernel void copy(global const E *x, global E *y, int n, int d1, int d2, int d3, int d4, int d5,
                 int x_at, int x0, int x1, int x2, int x3, int x4, int x5,
                 int y_at, int y0, int y1, int y2, int y3, int y4, int y5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  int r = i;
  const int i5 = r % d5; r /= d5;
  const int i4 = r % d4; r /= d4;
  const int i3 = r % d3; r /= d3;
  const int i2 = r % d2; r /= d2;
  const int i1 = r % d1; r /= d1;
  y[y_at + r * y0 + i1 * y1 + i2 * y2 + i3 * y3 + i4 * y4 + i5 * y5] =
      x[x_at + r * x0 + i1 * x1 + i2 * x2 + i3 * x3 + i4 * x4 + i5 * x5];
}

// The same for rows of neighbouring elements.
kernel void copy_rows(global const E *x, global E *y, int width, int rows, int x_at, int x_row,
                      int y_at, int y_row) {
  const int i = get_global_id(0), row = get_global_id(1);
  if (i < width && row < rows) y[y_at + row * y_row + i] = x[x_at + row * x_row + i];
}

kernel void fill(global E *y, int n, E value) {
  const int i = get_global_id(0);
  if (i < n) y[i] = value;
}

// y[o, j, k] = x[o, index[j], k]
kernel void gather(global const E *x, global const I *index, global E *y, int n, int axis, int count,
                   int inner) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int k = i % inner, j = i / inner % count, o = i / inner / count;
  long at = index[j];
  if (at < 0) at += axis;
  y[i] = x[(o * axis + clamp(at, 0L, (long)axis - 1)) * inner + k];
}
