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
