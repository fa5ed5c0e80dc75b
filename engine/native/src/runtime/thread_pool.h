// SPMD thread pool: `run(work)` calls work on every thread; workers meet at barriers while a run
// lasts. Between runs they first spin for some tens of microseconds, which is about what waking a
// thread takes, for callers in a loop; then they sleep.
#pragma once

#include <atomic>

#include "lite_kernel.h"

namespace lite {

// Spins; false when `value` is still `old` after some tens of microseconds.
bool changes_soon(const std::atomic<int>& value, int old);

// Counts on, past the largest number, too; one thread at a time.
void advance(std::atomic<int>& count);

// A number that threads wait for. Spins; when the wait is long (more threads than free processors)
// it sleeps, so that the thread it waits for gets the processor.
struct Signal {
  std::atomic<int> value{0};
  std::atomic<int> sleepers{0};
  void set(int);
  void wait_while(int);
};

// Reusable barrier for a fixed number of threads. last() is called by the thread that comes last,
// before any of them goes on.
struct Barrier {
  std::atomic<int> arrived{0};
  Signal generation;

  template <class Last>
  void wait(int threads, Last last) {
    const int now = generation.value.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < threads) {
      generation.wait_while(now);
      return;
    }
    last();
    arrived.store(0, std::memory_order_relaxed);
    generation.set(now + 1);
  }
};

// Units of work from `begin` on, before `end`.
struct Units {
  int64_t begin, end;
};

// What one thread has left to do: fewer than 2^32 units. It takes them from the front; a thread that
// has none left takes the later half. Both ends change together, so that no unit is taken twice.
struct WorkQueue {
  std::atomic<uint64_t> left;
  char apart[64 - sizeof(std::atomic<uint64_t>)];  // threads write to cache lines of their own
};

// Gives each thread an even share of `total` units; boundaries are multiples of `grain`.
void divide_work(WorkQueue* queues, int threads, int64_t total, int64_t grain);

// The next units for a thread, at most `most` (a multiple of the grain): its own, then what others
// have left; begin == end when nothing is.
Units take_work(WorkQueue* queues, int threads, int thread, int64_t most, int64_t grain);

struct ThreadPool;

// Takes an idle pool of that size from the process's stock, or starts one; nullptr when threads
// cannot be started. Pools are shared by all programs: they never run two at once.
ThreadPool* acquire_pool(int threads, bool pin);
void release_pool(ThreadPool*);

// Calls work(context, thread) on threads 0 ... N-1 (0 is the caller) and returns when all are done.
void run_on_pool(ThreadPool*, void (*work)(void* context, int thread), void* context);

int allowed_processors();

}  // namespace lite
