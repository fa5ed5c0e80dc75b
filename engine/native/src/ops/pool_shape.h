// What every pooling kernel must know of its step, read and checked once: windows over channels-last
// tensors of rank 3 or 4, and over the frames of those of rank 5; a global pool takes depth in.
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
// The same for a kernel whose state is a PoolShape and nothing else; bands may compute its rows.
bool prepare_pool(Step&, Env&);

// The taps of one output pixel that lie inside the image, and where tap (0, 0) would be.
struct PoolWindow {
  int64_t ky0, ky1, kx0, kx1;
  int64_t from, to;  // elements
  int64_t cells;     // that an average divides by
};
PoolWindow pool_window(const PoolShape&, int64_t image, int64_t oy, int64_t ox);

// One thread's share of the output: pixels of all images, or channels where pixels are few.
struct PoolPart {
  int64_t begin, end, c0, c1;
};
LITE_INLINE PoolPart pool_part(const PoolShape& s, int64_t grain, int thread, int threads) {
  PoolPart part{0, s.n * s.out_h * s.out_w, 0, s.c};
  if (part.end < 4 * threads) share(s.c, grain, thread, threads, &part.c0, &part.c1);
  else share(part.end, 1, thread, threads, &part.begin, &part.end);
  if (part.c0 == part.c1) part.end = part.begin;
  return part;
}

// Calls work(image, oy, first ox, last ox, first channel, last channel) for the rows of one
// thread's share.
template <class Work>
LITE_INLINE void for_each_row(const PoolShape& s, int64_t grain, int thread, int threads, Work work) {
  const PoolPart part = pool_part(s, grain, thread, threads);
  for (int64_t pixel = part.begin; pixel < part.end;) {
    const int64_t row = pixel / s.out_w, ox = pixel - row * s.out_w;
    const int64_t rest = part.end - pixel, count = s.out_w - ox < rest ? s.out_w - ox : rest;
    work(row / s.out_h, row % s.out_h, ox, ox + count, part.c0, part.c1);
    pixel += count;
  }
}

// Calls work(window, first channel, last channel) for one thread's share.
template <class Work>
LITE_INLINE void for_each_window(const PoolShape& s, int64_t grain, int thread, int threads,
                                 Work work) {
  for_each_row(s, grain, thread, threads,
               [&](int64_t image, int64_t oy, int64_t begin, int64_t end, int64_t c0, int64_t c1) {
                 for (int64_t ox = begin; ox < end; ++ox)
                   work(pool_window(s, image, oy, ox), c0, c1);
               });
}

}  // namespace lite
