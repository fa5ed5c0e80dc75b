#include "thread_pool.h"

#include "platform/threads.h"

namespace lite {

namespace {

// Spinning lasts tens of microseconds: a pause takes about a hundred cycles, a yield one or two.
#if defined(__x86_64__)
constexpr int kSpins = 2000;
void relax() { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
constexpr int kSpins = 30000;
void relax() { __asm__ volatile("yield"); }
#else
constexpr int kSpins = 30000;
void relax() {}
#endif

}  // namespace

bool changes_soon(const std::atomic<int>& value, int old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return true;
    relax();
  }
  return false;
}

void advance(std::atomic<int>& count) {
  count.store(static_cast<int>(static_cast<unsigned>(count.load()) + 1));
}

void Signal::set(int to) {
  value.store(to);
  if (sleepers.load()) wake_all(value);
}

void Signal::wait_while(int old) {
  if (changes_soon(value, old)) return;
  sleepers.fetch_add(1);
  while (value.load() == old) sleep_while(value, old);
  sleepers.fetch_sub(1);
}

namespace {

uint64_t bits_of(Units u) {
  return static_cast<uint64_t>(u.begin) | static_cast<uint64_t>(u.end) << 32;
}

Units units_of(uint64_t bits) {
  return {static_cast<int64_t>(bits & UINT32_MAX), static_cast<int64_t>(bits >> 32)};
}

// From the front. Towards the end pieces become smaller, so that others find something to take.
Units take_first(std::atomic<uint64_t>& queue, int64_t most, int64_t grain) {
  for (uint64_t was = queue.load(std::memory_order_relaxed);;) {
    const Units u = units_of(was);
    const int64_t count = u.end - u.begin;
    if (count <= 0) return {0, 0};
    int64_t taken = count < 2 * most ? (count / 2 + grain) / grain * grain : most;
    if (taken > count) taken = count;
    if (queue.compare_exchange_weak(was, bits_of({u.begin + taken, u.end}),
                                    std::memory_order_relaxed))
      return {u.begin, u.begin + taken};
  }
}

// The later half; all of it where that is less than a grain.
Units take_half(std::atomic<uint64_t>& queue, int64_t grain) {
  for (uint64_t was = queue.load(std::memory_order_relaxed);;) {
    const Units u = units_of(was);
    const int64_t middle = u.begin + (u.end - u.begin) / 2 / grain * grain;
    if (middle >= u.end) return {0, 0};
    if (queue.compare_exchange_weak(was, bits_of({u.begin, middle}), std::memory_order_relaxed))
      return {middle, u.end};
  }
}

}  // namespace

void divide_work(WorkQueue* queues, int threads, int64_t total, int64_t grain) {
  for (int thread = 0; thread < threads; ++thread) {
    Units u;
    share(total, grain, thread, threads, &u.begin, &u.end);
    queues[thread].left.store(bits_of(u), std::memory_order_relaxed);
  }
}

Units take_work(WorkQueue* queues, int threads, int thread, int64_t most, int64_t grain) {
  std::atomic<uint64_t>& own = queues[thread].left;
  Units u = take_first(own, most, grain);
  for (int i = 1; i < threads && u.begin == u.end; ++i) {
    const Units half = take_half(queues[(thread + i) % threads].left, grain);
    if (half.begin == half.end) continue;
    own.store(bits_of(half), std::memory_order_relaxed);
    u = take_first(own, most, grain);
  }
  return u;
}

int allowed_processors() {
  const int count = usable_processors();
  return count > kMaxThreads ? kMaxThreads : count;
}

}  // namespace lite
