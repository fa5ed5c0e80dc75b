// y[o, j, k] = x[o, index[o, j, :], k]: `places` indices of `depth` axes for each o, `inner` numbers at each; s0, s1, …
// are the axes' sizes, 1 behind the last. E is an integer of an element's size. Places outside x hold 0.
//@ options E:type I:type
//@ kernel gather_nd
//@ need min(n, places, inner) > 0, depth >= 0, depth <= 6, min(s0, s1, s2, s3, s4, s5) >= 0
//@ items n
//@ reads x[up(n, places * inner) * s0 * s1 * s2 * s3 * s4 * s5 * inner], index[up(n, inner) * depth]
//@ writes y[n]
kernel void gather_nd(global const E *x, global const I *index, global E *y, int n, int places, int inner, int depth,
                      int s0, int s1, int s2, int s3, int s4, int s5) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const int sizes[6] = {s0, s1, s2, s3, s4, s5};
  const int tuple = i / inner;
  long at = tuple / places;
  bool inside = true;
  for (int axis = 0; axis < 6; ++axis) {
    long place = axis < depth ? index[(long)tuple * depth + axis] : 0;
    if (place < 0) place += sizes[axis];
    inside = inside && place >= 0 && place < sizes[axis];
    at = at * sizes[axis] + place;
  }
  E found = (E)0;
  if (inside) found = x[at * inner + i % inner];
  y[i] = found;
}

// y has the shape of index, axes of d0 to d5 elements, and takes from x the place that index holds along one
// axis of `size` elements, `step` apart; the others are y's own: their strides in x are x0 to x5, 0 for that axis.
//@ kernel gather_elements
//@ let d0 = n / (d1 * d2 * d3 * d4 * d5)
//@ need min(d0, d1, d2, d3, d4, d5) > 0, d0 * d1 * d2 * d3 * d4 * d5 == n
//@ need min(x0, x1, x2, x3, x4, x5) >= 0, min(size, step) > 0
//@ let last = (d0 - 1) * x0 + (d1 - 1) * x1 + (d2 - 1) * x2 + (d3 - 1) * x3 + (d4 - 1) * x4 + (d5 - 1) * x5
//@ items n
//@ reads x[last + (size - 1) * step + 1], index[n]
//@ writes y[n]
kernel void gather_elements(global const E *x, global const I *index, global E *y, int n, int d1, int d2, int d3,
                            int d4, int d5, int x0, int x1, int x2, int x3, int x4, int x5, int size, int step) {
  const int i = get_global_id(0);
  if (i >= n) return;
  SIX_PLACES(i);
  long at = index[i];
  if (at < 0) at += size;
  E found = (E)0;
  if (at >= 0 && at < size) found = x[AT_SIX(x) + at * step];
  y[i] = found;
}
