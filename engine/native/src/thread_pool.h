// SPMD thread pool: `run(work)` calls work on every thread; workers meet at barriers while a run
// lasts and sleep between runs.
#pragma once

#include <atomic>

#include "lite_kernel.h"

namespace lite {

// A number that threads wait for. Spins; when the wait is long (more threads than free processors)
// it sleeps, so that the thread it waits for gets the processor.
struct Signal {
  std::atomic<int> value{0};
  std::atomic<int> sleepers{0};
  void set(int);
  void wait_while(int);
};

// Reusable barrier for a fixed number of threads.
struct Barrier {
  std::atomic<int> arrived{0};
  Signal generation;
  void wait(int threads);
};

// The shares of one thread, over all phases of a run: those before `taken` are done or under way.
struct ShareCounter {
  std::atomic<int64_t> taken;
  char apart[64 - sizeof(std::atomic<int64_t>)];  // threads count on cache lines of their own
  // The next of the `count` shares that follow the first `before`; -1: none is left.
  int64_t take(int64_t before, int count);
};

struct ThreadPool;

// Takes an idle pool of that size from the process's stock, or starts one; nullptr when threads
// cannot be started. Pools are shared by all programs: they never run two at once.
ThreadPool* acquire_pool(int threads, bool pin);
void release_pool(ThreadPool*);

// Calls work(context, thread) on threads 0 ... N-1 (0 is the caller) and returns when all are done.
void run_on_pool(ThreadPool*, void (*work)(void* context, int thread), void* context);

int allowed_processors();

}  // namespace lite
