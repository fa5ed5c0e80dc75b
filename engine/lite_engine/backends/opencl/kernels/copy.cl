// Strided copy over up to six axes: Relayout, Slice, Concat, Split, Expand. E: integer type of an
// element's size. Constant padding: places outside the source hold `fill`.
//@ options E:type I:type RUNS SHORT TILE=1..64 ROWS=1..64 BLOCK=1..64 WEAVE=1..16
//@ kernel copy
//@ let d0 = n / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == n
//@ let x_down = (d0 - 1) * min(x0, 0) + (d1 - 1) * min(x1, 0) + (d2 - 1) * min(x2, 0) + (d3 - 1) * min(x3, 0)
//@ let x_up = (d0 - 1) * max(x0, 0) + (d1 - 1) * max(x1, 0) + (d2 - 1) * max(x2, 0) + (d3 - 1) * max(x3, 0)
//@ need x_at + x_down + (d4 - 1) * min(x4, 0) + (d5 - 1) * min(x5, 0) >= 0
//@ let y_up = (d0 - 1) * y0 + (d1 - 1) * y1 + (d2 - 1) * y2 + (d3 - 1) * y3 + (d4 - 1) * y4 + (d5 - 1) * y5
//@ need min(y_at, y0, y1, y2, y3, y4, y5) >= 0
//@ items n
//@ reads x[x_at + x_up + (d4 - 1) * max(x4, 0) + (d5 - 1) * max(x5, 0) + 1]
//@ writes y[y_at + y_up + 1]
kernel void copy(global const E *x, global E *y, int n, int d1, int d2, int d3, int d4, int d5,
                 int x_at, int x0, int x1, int x2, int x3, int x4, int x5,
                 int y_at, int y0, int y1, int y2, int y3, int y4, int y5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  SIX_PLACES(i);
  y[y_at + AT_SIX(y)] = x[x_at + AT_SIX(x)];
}

// The same for rows of neighbouring elements over two axes, `near` of the inner one.
//@ kernel copy_rows
//@ let sets = up(rows, near)
//@ let some = min(rows, near)
//@ need min(width, rows, near) > 0, min(y_at, y_row, y_far) >= 0
//@ need x_at + (some - 1) * min(x_row, 0) + (sets - 1) * min(x_far, 0) >= 0
//@ items width, rows
//@ reads x[x_at + (some - 1) * max(x_row, 0) + (sets - 1) * max(x_far, 0) + width]
//@ writes y[y_at + (some - 1) * y_row + (sets - 1) * y_far + width]
kernel void copy_rows(global const E *x, global E *y, int width, int rows, int near, int x_at, int x_row,
                      int x_far, int y_at, int y_row, int y_far) {
  const int i = get_global_id(0), row = get_global_id(1);
  if (i >= width || row >= rows) return;
  y[y_at + row % near * y_row + row / near * y_far + i] =
      x[x_at + row % near * x_row + row / near * x_far + i];
}

// Rows of a and b, one after the other, as parts of rows of y.
//@ kernel join
//@ need min(a_width, b_width, rows) > 0
//@ items a_width + b_width, rows
//@ reads a[a_at, rows, a_row, a_width], b[b_at, rows, b_row, b_width]
//@ writes y[y_at, rows, y_row, a_width + b_width]
kernel void join(global const E *a, global const E *b, global E *y, int a_width, int b_width, int rows,
                 int y_row, int y_at, int a_row, int a_at, int b_row, int b_at) {
  const int i = get_global_id(0), row = get_global_id(1);
  if (i >= a_width + b_width || row >= rows) return;
  y[y_at + row * y_row + i] = i < a_width ? a[row * a_row + a_at + i] : b[row * b_row + b_at + i - a_width];
}

// Three parts of each row of x, as rows of a, b and c; a part may be empty.
//@ kernel cut
//@ need min(a_width, b_width, c_width) >= 0, a_width + b_width + c_width > 0, rows > 0
//@ items a_width + b_width + c_width, rows
//@ reads x[a_at, rows, x_row, a_width], x[b_at, rows, x_row, b_width], x[c_at, rows, x_row, c_width]
//@ writes a[rows * a_width], b[rows * b_width], c[rows * c_width]
kernel void cut(global const E *x, global E *a, global E *b, global E *c, int a_width, int b_width,
                int c_width, int rows, int x_row, int a_at, int b_at, int c_at) {
  const int row = get_global_id(1), j = get_global_id(0) - a_width, k = j - b_width;
  if (k >= c_width || row >= rows) return;
  x += row * x_row;
  if (j < 0) a[row * a_width + j + a_width] = x[a_at + j + a_width];
  else if (k < 0) b[row * b_width + j] = x[b_at + j];
  else c[row * c_width + k] = x[c_at + k];
}

// For CPUs: an item has `per_item` rows.
#ifdef RUNS
static inline void run(global const E *x, global E *y, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16) vstore16(vload16(0, x + i), 0, y + i);
  for (; i < n; ++i) y[i] = x[i];
}

//@ kernel copy_runs
//@ let sets = up(rows, near)
//@ let some = min(rows, near)
//@ need min(width, rows, near, per_item) > 0, min(y_at, y_row, y_far) >= 0
//@ need rows + per_item <= INT_MAX, width + 16 <= INT_MAX
//@ need x_at + (some - 1) * min(x_row, 0) + (sets - 1) * min(x_far, 0) >= 0
//@ group 1
//@ items up(rows, per_item)
//@ reads x[x_at + (some - 1) * max(x_row, 0) + (sets - 1) * max(x_far, 0) + width]
//@ writes y[y_at + (some - 1) * y_row + (sets - 1) * y_far + width]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void copy_runs(global const E *x, global E *y, int width, int rows, int near, int x_at, int x_row, int x_far,
               int y_at, int y_row, int y_far, int per_item) {
  const int first = get_global_id(0) * per_item;
  for (int row = first; row < min(first + per_item, rows); ++row)
    run(x + x_at + row % near * x_row + row / near * x_far,
        y + y_at + row % near * y_row + row / near * y_far, width);
}

//@ kernel join_runs
//@ need min(a_width, b_width, rows, per_item) > 0, rows + per_item <= INT_MAX, a_width + b_width + 16 <= INT_MAX
//@ group 1
//@ items up(rows, per_item)
//@ reads a[a_at, rows, a_row, a_width], b[b_at, rows, b_row, b_width]
//@ writes y[y_at, rows, y_row, a_width + b_width]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void join_runs(global const E *a, global const E *b, global E *y, int a_width, int b_width, int rows, int y_row,
               int y_at, int a_row, int a_at, int b_row, int b_at, int per_item) {
  const int first = get_global_id(0) * per_item;
  for (int row = first; row < min(first + per_item, rows); ++row) {
    run(a + row * a_row + a_at, y + y_at + row * y_row, a_width);
    run(b + row * b_row + b_at, y + y_at + row * y_row + a_width, b_width);
  }
}

//@ kernel gather_runs
//@ need min(rows, count, per_item) > 0, min(axis, inner) >= 0, rows + per_item <= INT_MAX, inner + 16 <= INT_MAX
//@ group 1
//@ items up(rows, per_item)
//@ reads x[up(rows, count) * axis * inner], index[count]
//@ writes y[rows * inner]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gather_runs(global const E *x, global const I *index, global E *y, int rows, int axis, int count,
                 int inner, int per_item) {
  const int first = get_global_id(0) * per_item;
  for (int row = first; row < min(first + per_item, rows); ++row) {
    long at = index[row % count];
    if (at < 0) at += axis;
    if (at >= 0 && at < axis) {
      run(x + (at + row / count * axis) * inner, y + (long)row * inner, inner);
    } else {
      for (int k = 0; k < inner; ++k) y[(long)row * inner + k] = (E)0;
    }
  }
}
#endif

//@ kernel fill
//@ items n
//@ writes y[n]
kernel void fill(global E *y, int n, E value) {
  const int i = get_global_id(0);
  if (i < n) y[i] = value;
}

// y[o, j, k] = x[o, index[j], k]
//@ kernel gather
//@ need min(n, count, inner) > 0, axis >= 0
//@ items n
//@ reads x[up(n, count * inner) * axis * inner], index[count]
//@ writes y[n]
kernel void gather(global const E *x, global const I *index, global E *y, int n, int axis, int count,
                   int inner) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int k = i % inner, j = i / inner % count, o = i / inner / count;
  long at = index[j];
  if (at < 0) at += axis;
  E found = (E)0;
  if (at >= 0 && at < axis) found = x[(o * axis + at) * inner + k];
  y[i] = found;
}

// Two axes change places: `along` neighbours in x are `y_along` apart in y, `across` neighbours in y are
// `x_across` apart in x; b and c are further axes, planes = b·c. Where one of the two is short an item has all of it
// (-DSHORT: `across` of one `along`, whichever way it is named), else TILE x TILE of them.
#ifdef SHORT
//@ kernel transpose
//@ let far = up(planes, b)
//@ let near = min(planes, b)
//@ need min(along, across, planes, b) > 0, min(x_along, x_across, y_along, y_across, xb, yb, xc, yc) >= 0
//@ need SHORT + (TILE > 0) + (BLOCK > 0) == 1, along + 64 <= INT_MAX, across + 64 <= INT_MAX
//@ items along, planes when SHORT
//@ group TILE, ROWS, 1 when TILE
//@ items up(along, TILE) * TILE, up(across, TILE) * ROWS, planes when TILE
//@ local TILE * (TILE + 1) * E when TILE
//@ items up(along, BLOCK), up(across, BLOCK), planes when BLOCK
//@ reads x[(along - 1) * x_along + (across - 1) * x_across + (near - 1) * xb + (far - 1) * xc + 1]
//@ writes y[(along - 1) * y_along + (across - 1) * y_across + (near - 1) * yb + (far - 1) * yc + 1]
kernel void transpose(global const E *x, global E *y, int along, int across, int x_along, int x_across,
                      int y_along, int y_across, int b, int xb, int yb, int xc, int yc,
                      int planes) {
  const int i = get_global_id(0), plane = get_global_id(1);
  if (i >= along || plane >= planes) return;
  x += i * x_along + plane % b * xb + plane / b * xc;
  y += i * y_along + plane % b * yb + plane / b * yc;
  for (int j = 0; j < across; ++j) y[j * y_across] = x[j * x_across];
}
#endif
#ifdef TILE
kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1)))
void transpose(global const E *x, global E *y, int along, int across, int x_along, int x_across,
               int y_along, int y_across, int b, int xb, int yb, int xc, int yc,
                      int planes) {
  local E part[TILE][TILE + 1];
  const int i0 = get_group_id(0) * TILE, j0 = get_group_id(1) * TILE;
  const int lx = get_local_id(0), ly = get_local_id(1), plane = get_group_id(2);
  x += plane % b * xb + plane / b * xc;
  y += plane % b * yb + plane / b * yc;
  for (int j = ly; j < TILE; j += ROWS)
    if (i0 + lx < along && j0 + j < across)
      part[j][lx] = x[(i0 + lx) * x_along + (j0 + j) * x_across];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = ly; i < TILE; i += ROWS)
    if (i0 + i < along && j0 + lx < across)
      y[(i0 + i) * y_along + (j0 + lx) * y_across] = part[lx][i];
}
#endif
// For CPUs, y[i·WEAVE + j] = x[j·x_across + i] in every plane: an item has `many` planes of at most `few` i.
#ifdef WEAVE
//@ kernel weave
//@ let sets = up(planes, b)
//@ let some = min(planes, b)
//@ need min(along, planes, b, many, few) > 0, min(x_across, xb, yb, xc, yc) >= 0
//@ need along + few <= INT_MAX, planes + many <= INT_MAX
//@ group 1, 1
//@ items up(along, few), up(planes, many)
//@ reads x[along + (WEAVE - 1) * x_across + (some - 1) * xb + (sets - 1) * xc]
//@ writes y[along * WEAVE + (some - 1) * yb + (sets - 1) * yc]
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void weave(global const E *restrict x, global E *restrict y, int along, int x_across, int b, int xb, int yb,
           int xc, int yc, int planes, int many, int few) {
  const int i0 = get_global_id(0) * few, n = min(few, along - i0), first = get_global_id(1) * many;
  for (int plane = first; plane < min(first + many, planes); ++plane) {
    global const E *restrict from = x + plane % b * xb + plane / b * xc + i0;
    global E *restrict to = y + plane % b * yb + plane / b * yc + i0 * WEAVE;
    for (int i = 0; i < n; ++i)
      UNROLL for (int j = 0; j < WEAVE; ++j) to[i * WEAVE + j] = from[j * x_across + i];
  }
}
#endif
#ifdef BLOCK
kernel void transpose(global const E *x, global E *y, int along, int across, int x_along, int x_across,
                      int y_along, int y_across, int b, int xb, int yb, int xc, int yc,
                      int planes) {
  const int i0 = get_global_id(0) * BLOCK, j0 = get_global_id(1) * BLOCK, plane = get_global_id(2);
  x += plane % b * xb + plane / b * xc;
  y += plane % b * yb + plane / b * yc;
  for (int i = i0; i < min(i0 + BLOCK, along); ++i)
    for (int j = j0; j < min(j0 + BLOCK, across); ++j)
      y[i * y_along + j * y_across] = x[i * x_along + j * x_across];
}
#endif
