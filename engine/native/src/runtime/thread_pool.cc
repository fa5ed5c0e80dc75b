#include "thread_pool.h"

#include <pthread.h>
#include <stdlib.h>

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

void Signal::set(int to) {
  value.store(to);
  if (sleepers.load()) wake_all(value);
}

void Signal::wait_while(int old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
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

struct Worker {
  ThreadPool* pool;
  int thread;
  pthread_t handle;
};

struct ThreadPool {
  ThreadPool* next;  // in the stock of idle pools
  long process;     // a forked child must not use its parent's threads
  int threads;
  bool pin;
  pthread_mutex_t mutex;
  pthread_cond_t wake;
  int64_t job;  // guarded by mutex; counts jobs
  bool stop;
  std::atomic<int> busy;  // workers that have not finished the job
  Signal done;            // 1 when all have
  void (*work)(void*, int);
  void* context;
  Worker workers[kMaxThreads];
};

namespace {

pthread_mutex_t stock_mutex = PTHREAD_MUTEX_INITIALIZER;
ThreadPool* stock = nullptr;

void* worker_main(void* argument) {
  Worker* self = static_cast<Worker*>(argument);
  ThreadPool* pool = self->pool;
  if (pool->pin) pin_thread(self->thread);
  int64_t done = 0;
  for (;;) {
    pthread_mutex_lock(&pool->mutex);
    while (pool->job == done && !pool->stop) pthread_cond_wait(&pool->wake, &pool->mutex);
    done = pool->job;
    const bool stop = pool->stop;
    pthread_mutex_unlock(&pool->mutex);
    if (stop) return nullptr;
    pool->work(pool->context, self->thread);
    if (pool->busy.fetch_sub(1, std::memory_order_acq_rel) == 1) pool->done.set(1);
  }
}

void stop_pool(ThreadPool* pool, int started) {
  pthread_mutex_lock(&pool->mutex);
  pool->stop = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  for (int i = 1; i <= started; ++i) pthread_join(pool->workers[i].handle, nullptr);
  free(pool);
}

ThreadPool* start_pool(int threads, bool pin) {
  ThreadPool* pool = static_cast<ThreadPool*>(calloc(1, sizeof(ThreadPool)));
  if (!pool) return nullptr;
  pool->process = this_process();
  pool->threads = threads;
  pool->pin = pin;
  pthread_mutex_init(&pool->mutex, nullptr);
  pthread_cond_init(&pool->wake, nullptr);
  for (int i = 1; i < threads; ++i) {
    pool->workers[i].pool = pool;
    pool->workers[i].thread = i;
    if (pthread_create(&pool->workers[i].handle, nullptr, worker_main, &pool->workers[i]) != 0) {
      stop_pool(pool, i - 1);
      return nullptr;
    }
  }
  return pool;
}

}  // namespace

ThreadPool* acquire_pool(int threads, bool pin) {
  const long process = this_process();
  ThreadPool* found = nullptr;
  pthread_mutex_lock(&stock_mutex);
  for (ThreadPool** at = &stock; *at && !found; at = &(*at)->next) {
    if ((*at)->threads != threads || (*at)->pin != pin || (*at)->process != process) continue;
    found = *at;
    *at = found->next;
    break;
  }
  pthread_mutex_unlock(&stock_mutex);
  return found ? found : start_pool(threads, pin);
}

void release_pool(ThreadPool* pool) {
  pthread_mutex_lock(&stock_mutex);
  pool->next = stock;
  stock = pool;
  pthread_mutex_unlock(&stock_mutex);
}

void run_on_pool(ThreadPool* pool, void (*work)(void*, int), void* context) {
  // The caller's thread is borrowed: its own affinity comes back after the run.
  const Affinity before = pool->pin ? pin_thread(0) : Affinity{};
  pthread_mutex_lock(&pool->mutex);
  pool->work = work;
  pool->context = context;
  pool->busy.store(pool->threads - 1, std::memory_order_relaxed);
  pool->done.value.store(pool->threads == 1, std::memory_order_relaxed);
  ++pool->job;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
  work(context, 0);
  pool->done.wait_while(0);
  restore_thread(before);
}

int allowed_processors() {
  const int count = usable_processors();
  return count > kMaxThreads ? kMaxThreads : count;
}

}  // namespace lite
