// y (B,M,N) = ACT(a (B,M,K) · b (B,K,N)); batch strides of 0 repeat an operand. TN columns a work-item.
kernel void matmul(global const T *a, global const T *b, global T *y, int M, int N, int K,
                   int a_batch, int b_batch) {
  const int n0 = get_global_id(0) * 4, m = get_global_id(1), batch = get_global_id(2);
  if (n0 >= N || m >= M) return;
  global const T *pa = a + (size_t)batch * a_batch + (size_t)m * K;
  global const T *pb = b + (size_t)batch * b_batch;
  global T *py = y + ((size_t)batch * M + m) * N;
  if (n0 + 4 <= N) {
    float4 s = 0;
    for (int k = 0; k < K; ++k) s += LD(pa, k) * LD4(pb, k * N + n0);
    ST(py, n0, ACT(s.x));
    ST(py, n0 + 1, ACT(s.y));
    ST(py, n0 + 2, ACT(s.z));
    ST(py, n0 + 3, ACT(s.w));
  } else {
    for (int n = n0; n < N; ++n) {
      float s = 0;
      for (int k = 0; k < K; ++k) s += LD(pa, k) * LD(pb, k * N + n);
      ST(py, n, ACT(s));
    }
  }
}
