// A page and its workers have clocks of their own, which a browser rounds each by itself.
#include "clock.h"

#include <atomic>
#include <time.h>

namespace lite {

int64_t now_ns() {
  static std::atomic<int64_t> latest;
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  int64_t before = latest.load(std::memory_order_relaxed);
  while (before < now && !latest.compare_exchange_weak(before, now, std::memory_order_relaxed)) {
  }
  return before < now ? now : before;
}

}  // namespace lite
