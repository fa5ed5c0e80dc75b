// What every pooling kernel must know of its step, read and checked once: windows over channels-last
// tensors of rank 3 or 4.
#pragma once

#include "lite_kernel.h"

namespace lite {

struct PoolShape {
  int64_t n, h, w, c, out_h, out_w;
  int64_t in_image, in_row, in_pixel, in_origin;  // strides in elements
  int64_t out_image, out_row, out_pixel, out_origin;
  int64_t kernel[2], stride[2], dilation[2], pad[2];  // h, w; pad: top, left
  int64_t pad_end[2];
  bool max, include_pad, global;
};

// Checks ranks, dims and attributes; data types are the kernel's affair.
bool read_pool(const Step&, Env&, PoolShape*);

// The taps of one output pixel that lie inside the image, and where tap (0, 0) would be.
struct PoolWindow {
  int64_t ky0, ky1, kx0, kx1;
  int64_t from, to;  // elements
  int64_t cells;     // that an average divides by
};
PoolWindow pool_window(const PoolShape&, int64_t image, int64_t oy, int64_t ox);

// Calls work(window, first channel, last channel) for one thread's share of the output.
template <class Work>
LITE_INLINE void for_each_window(const PoolShape& s, int64_t grain, int thread, int threads,
                                 Work work) {
  const int64_t pixels = s.n * s.out_h * s.out_w;
  const bool few = pixels < 4 * threads;  // then the channels are cut
  int64_t begin = 0, end = pixels, low = 0, high = s.c;
  if (few) share(s.c, grain, thread, threads, &low, &high);
  else share(pixels, 1, thread, threads, &begin, &end);
  for (int64_t pixel = begin; pixel < end && low < high; ++pixel)
    work(pool_window(s, pixel / s.out_w / s.out_h, pixel / s.out_w % s.out_h, pixel % s.out_w), low,
         high);
}

}  // namespace lite
