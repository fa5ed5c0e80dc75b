// Frames through a pipeline: a bounded queue in which the newest frame wins, and workers with a pipeline each, so that
// one frame is decoded and prepared while another is in a model on a device.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <algorithm>

#include "app.h"

using namespace lite::app;
using lite::opencl::say;

namespace {

constexpr int kMost = 64;      // frames that wait, workers
constexpr int kWindow = 30;    // answers of which the throughput is made

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

// A frame, then its answer.
struct Frame {
  int64_t number = 0, since = 0, latency = 0;
  uint8_t* data = nullptr;
  size_t size = 0;
  char* answer = nullptr;  // JSON, or why there is none
  bool failed = false;
  Frame* next = nullptr;
  ~Frame() {
    free(data);
    free(answer);
  }
};

struct List {
  Frame *first = nullptr, *last = nullptr;
  int count = 0;
  void push(Frame* f) {
    f->next = nullptr;
    (last ? last->next : first) = f;
    last = f;
    ++count;
  }
  Frame* pop() {
    Frame* f = first;
    if (!f) return nullptr;
    first = f->next;
    if (!first) last = nullptr;
    --count;
    return f;
  }
};

struct Worker {
  lite_stream* stream;
  lite_app* app;
  pthread_t thread;
  int64_t number = -1;  // of the frame in work
  bool started = false;
};

}  // namespace

struct lite_stream {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  int waiting = 2, count = 0;
  Worker workers[kMost];
  List queue, done;
  Frame* given = nullptr;  // what the last lite_stream_next gave
  bool ended = false;
  int64_t number = 0, answered = 0, dropped = 0;
  int64_t at[kWindow], latency[kWindow];
};

namespace {

struct Locked {
  lite_stream* s;
  explicit Locked(lite_stream* stream) : s(stream) { pthread_mutex_lock(&s->mutex); }
  ~Locked() { pthread_mutex_unlock(&s->mutex); }
  void wait() { pthread_cond_wait(&s->changed, &s->mutex); }
  void tell() { pthread_cond_broadcast(&s->changed); }
};

char* copied(const char* text) { return text ? strdup(text) : nullptr; }

void answer(lite_app* app, Frame* f) {
  char error[512] = "out of memory";
  f->failed = lite_app_run(app, f->data, f->size, error, sizeof error) != 0;
  const char* text = f->failed ? error : lite_app_answer(app, 1);
  f->answer = copied(text);
  f->failed = f->failed || !f->answer;
  free(f->data);
  f->data = nullptr;
}

void* work(void* argument) {
  Worker* w = static_cast<Worker*>(argument);
  lite_stream* s = w->stream;
  for (;;) {
    Frame* f = nullptr;
    {
      Locked lock(s);
      while (!s->queue.first && !s->ended) lock.wait();
      if (!(f = s->queue.pop())) return nullptr;
      w->number = f->number;
      lock.tell();  // there is room
    }
    answer(w->app, f);
    Locked lock(s);
    const int64_t when = now();
    f->latency = when - f->since;
    s->at[s->answered % kWindow] = when;
    s->latency[s->answered % kWindow] = f->latency;
    ++s->answered;
    w->number = -1;
    s->done.push(f);
    lock.tell();
  }
}

// Out of the answers the oldest one, unless an older frame waits or is in work.
Frame* take(lite_stream* s, bool* more) {
  *more = s->queue.first != nullptr;
  int64_t oldest = s->queue.first ? s->queue.first->number : INT64_MAX;
  for (int i = 0; i < s->count; ++i)
    if (s->workers[i].number >= 0) *more = true, oldest = std::min(oldest, s->workers[i].number);
  Frame *best = nullptr, *before = nullptr, *previous = nullptr;
  for (Frame* f = s->done.first; f; previous = f, f = f->next)
    if (!best || f->number < best->number) best = f, before = previous;
  if (!best || best->number > oldest) return nullptr;
  (before ? before->next : s->done.first) = best->next;
  if (s->done.last == best) s->done.last = before;
  --s->done.count;
  return best;
}

}  // namespace

extern "C" {

lite_stream* lite_stream_open(lite_file* file, const lite_options* options, int32_t waiting, int32_t workers,
                              char* error, size_t bytes) {
  if (waiting < 1 || waiting > kMost || workers < 1 || workers > kMost)
    return say(error, bytes, "`waiting` and `workers` must be between 1 and %d", kMost), nullptr;
  lite_stream* s = make<lite_stream>();
  if (!s) return say(error, bytes, "out of memory"), nullptr;
  s->waiting = waiting;
  for (; s->count < workers; ++s->count) {
    Worker& w = s->workers[s->count];
    w.stream = s;
    w.app = lite_app_open(file, options, error, bytes);
    if (w.app) w.started = pthread_create(&w.thread, nullptr, work, &w) == 0;
    if (!w.started) {
      if (w.app) say(error, bytes, "a thread cannot be started"), lite_app_free(w.app);
      lite_stream_close(s);
      return nullptr;
    }
  }
  return s;
}

int64_t lite_stream_put(lite_stream* s, const void* frame, size_t size, int32_t drop) {
  Frame* f = make<Frame>();
  if (!f) return -1;
  f->data = static_cast<uint8_t*>(malloc(size + 1));
  if (!f->data) return destroy(f), -1;
  memcpy(f->data, frame, size);
  f->size = size;
  f->since = now();
  Locked lock(s);
  while (!drop && s->queue.count >= s->waiting && !s->ended) lock.wait();
  if (s->ended) return destroy(f), -1;
  if (s->queue.count >= s->waiting) {
    destroy(s->queue.pop());
    ++s->dropped;
  }
  f->number = s->number++;
  const int64_t number = f->number;
  s->queue.push(f);
  lock.tell();
  return number;
}

void lite_stream_end(lite_stream* s) {
  Locked lock(s);
  s->ended = true;
  lock.tell();
}

int32_t lite_stream_next(lite_stream* s, int32_t wait, lite_frame* out) {
  Locked lock(s);
  destroy(s->given);
  s->given = nullptr;
  for (bool more = false;;) {
    s->given = take(s, &more);
    if (s->given || !wait || (s->ended && !more && !s->done.first)) break;
    lock.wait();
  }
  if (!s->given) return 0;
  const Frame& f = *s->given;
  *out = {f.number, f.answer ? f.answer : "out of memory", f.failed ? 1 : 0, static_cast<double>(f.latency) / 1e6};
  return 1;
}

void lite_stream_rates(lite_stream* s, lite_rates* out) {
  Locked lock(s);
  const int64_t n = std::min<int64_t>(s->answered, kWindow);
  double latency = 0, rate = 0;
  for (int64_t i = 0; i < n; ++i) latency += static_cast<double>(s->latency[i]);
  if (n > 1) {
    const int64_t last = s->at[(s->answered - 1) % kWindow], first = s->at[(s->answered - n) % kWindow];
    if (last > first) rate = static_cast<double>(n - 1) * 1e9 / static_cast<double>(last - first);
  }
  *out = {s->answered, s->dropped, rate, n ? latency / static_cast<double>(n) / 1e6 : 0};
}

void lite_stream_close(lite_stream* s) {
  if (!s) return;
  {
    Locked lock(s);
    s->ended = true;
    while (Frame* f = s->queue.pop()) destroy(f);
    lock.tell();
  }
  for (int i = 0; i < s->count; ++i) {
    pthread_join(s->workers[i].thread, nullptr);
    lite_app_free(s->workers[i].app);
  }
  while (Frame* f = s->done.pop()) destroy(f);
  destroy(s->given);
  destroy(s);
}

}  // extern "C"
