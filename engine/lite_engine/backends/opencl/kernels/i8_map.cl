// Rows of bytes through a table of 256, RUN an item. Rows of x lie XP and those of y YP elements apart, the first
// x_at and y_at from the start.
//@ options RUN=1..65536
//@ kernel map
//@ need min(width, rows) > 0, (g0 + 1) * RUN <= INT_MAX
//@ items up(width, RUN), rows
//@ reads x[x_at, rows, XP, width], table[256]
//@ writes y[y_at, rows, YP, width]
kernel void map(global const uchar *x, global const uchar *table, global uchar *y, int width, int rows, int XP,
                int x_at, int YP, int y_at) {
  const int first = get_global_id(0) * RUN, row = get_global_id(1);
  if (row >= rows) return;
  x += (size_t)row * XP + x_at;
  y += (size_t)row * YP + y_at;
  for (int i = first; i < min(first + RUN, width); ++i) y[i] = table[x[i]];
}
