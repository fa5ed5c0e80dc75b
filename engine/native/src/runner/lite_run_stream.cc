#include "lite_run_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lite_run_frames.h"

#ifdef LITE_NO_PIPELINES

bool answer_stream(lite_file*, const lite_options&, const char*, int, char* error, size_t bytes) {
  snprintf(error, bytes, "this runner was trimmed for one model, without images and pipelines");
  return false;
}

#else

namespace {

constexpr int kWaiting = 2, kWorkers = 2;

double seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void sleep_until(double when) {
  const double left = when - seconds();
  if (left <= 0) return;
  const time_t whole = static_cast<time_t>(left);
  const timespec pause{whole, static_cast<long>((left - static_cast<double>(whole)) * 1e9)};
  nanosleep(&pause, nullptr);
}

// In one line: the answer's own line breaks become spaces.
void print_text(const char* text, bool quoted) {
  if (quoted) putchar('"');
  for (; *text; ++text) {
    if (quoted && (*text == '"' || *text == '\\')) putchar('\\');
    putchar(static_cast<unsigned char>(*text) < 0x20 ? ' ' : *text);
  }
  if (quoted) putchar('"');
}

void print_rates(lite_stream* stream, double began) {
  lite_rates r;
  lite_stream_rates(stream, &r);
  const double all = seconds() - began;
  fprintf(stderr, "%lld frames, %lld dropped: %.1f frames/s, latency %.0f ms; %.1f frames/s since the start\n",
          static_cast<long long>(r.answered), static_cast<long long>(r.dropped), r.per_second, r.latency_ms,
          all > 0 ? static_cast<double>(r.answered) / all : 0);
}

struct Printer {
  lite_stream* stream;
  double began;
};

// Prints each answer as soon as it is there, until the last one.
void* print_answers(void* argument) {
  const Printer& p = *static_cast<const Printer*>(argument);
  double told = p.began;
  lite_frame f;
  while (lite_stream_next(p.stream, 1, &f)) {
    printf("{\"frame\": %lld, \"latency_ms\": %.3f, \"%s\": ", static_cast<long long>(f.number), f.latency_ms,
           f.failed ? "error" : "answer");
    print_text(f.answer, f.failed != 0);
    puts("}");
    fflush(stdout);
    if (seconds() - told >= 1) told = seconds(), print_rates(p.stream, p.began);
  }
  return nullptr;
}

// Hands the frames over. False with one line in `error`.
bool put_frames(lite_stream* stream, Frames* frames, int fps, double began, char* error, size_t bytes) {
  const bool live = fps > 0 || frames->live();
  for (int64_t count = 0;; ++count) {
    const uint8_t* data;
    size_t size;
    const int read = frames->next(&data, &size, error, bytes);
    if (read <= 0) return read == 0;
    if (fps > 0) sleep_until(began + static_cast<double>(count) / fps);
    if (lite_stream_put(stream, data, size, live) < 0) return snprintf(error, bytes, "out of memory"), false;
  }
}

}  // namespace

bool answer_stream(lite_file* file, const lite_options& options, const char* from, int fps, char* error,
                   size_t bytes) {
  Frames frames;
  if (!frames.open(from, error, bytes)) return false;
  lite_stream* stream = lite_stream_open(file, &options, kWaiting, kWorkers, error, bytes);
  if (!stream) return false;
  Printer printer{stream, seconds()};
  pthread_t thread;
  if (pthread_create(&thread, nullptr, print_answers, &printer) != 0) {
    snprintf(error, bytes, "a thread cannot be started");
    lite_stream_close(stream);
    return false;
  }
  const bool good = put_frames(stream, &frames, fps, printer.began, error, bytes);
  lite_stream_end(stream);
  pthread_join(thread, nullptr);
  if (good) print_rates(stream, printer.began);
  lite_stream_close(stream);
  return good;
}

#endif
