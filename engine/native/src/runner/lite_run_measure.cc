#include "lite_run_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lite_run_profile.h"

namespace {

int64_t time_of_run(const lite_program* p) {
  lite_memory_info memory;
  lite_program_memory(p, &memory);
  return memory.run_ns;
}

// A clock that governors raise makes runs shorter, heat makes them longer: they are steady where the
// median of the last kWindow ones is within a fiftieth of that of the ones before.
class Steadiness {
 public:
  void add(int64_t ns) {
    memmove(times_, times_ + 1, sizeof times_ - sizeof *times_);
    times_[2 * kWindow - 1] = ns;
    if (count_ < 2 * kWindow) ++count_;
  }
  bool reached() const {
    const int64_t before = median(times_), now = median(times_ + kWindow);
    return count_ == 2 * kWindow && llabs(now - before) * 50 <= before;
  }

 private:
  static constexpr int kWindow = 7;

  static int64_t median(const int64_t* times) {
    int64_t sorted[kWindow];
    memcpy(sorted, times, sizeof sorted);
    qsort(sorted, kWindow, sizeof *sorted, [](const void* a, const void* b) {
      const int64_t x = *static_cast<const int64_t*>(a), y = *static_cast<const int64_t*>(b);
      return (x > y) - (x < y);
    });
    return sorted[kWindow / 2];
  }

  int64_t times_[2 * kWindow] = {};
  int count_ = 0;
};

bool warm_up(lite_program* p, const Measuring& how, WarmUp* out, char* error, size_t error_bytes) {
  Steadiness steadiness;
  const int64_t limit = how.steady_s * INT64_C(1000000000);
  while (out->runs < how.warmup || (how.steady_s && !out->steady && out->all_ns < limit)) {
    if (lite_program_run(p, error, error_bytes)) return false;
    const int64_t ns = time_of_run(p);
    if (!out->runs++) out->first_ns = ns;
    out->all_ns += ns;
    steadiness.add(ns);
    out->steady = steadiness.reached();
  }
  return true;
}

// `changed`: the CPU took over in the middle.
bool time_runs(lite_program* p, const Measuring& how, int64_t* times, bool* changed, char* error,
               size_t error_bytes) {
  const int steps = lite_program_num_steps(p), stride = steps + 1;
  char choice[400];
  snprintf(choice, sizeof choice, "%s", lite_program_choice(p));
  for (int run = 0; run < how.runs; ++run) {
    if (lite_program_run(p, error, error_bytes)) return false;
    *changed = strcmp(choice, lite_program_choice(p)) != 0;
    if (*changed) return true;
    int64_t* row = times + static_cast<int64_t>(run) * stride;
    for (int s = 0; s < steps; ++s) {
      lite_step_info info;
      lite_program_step(p, s, &info);
      row[s] = info.end_ns - info.start_ns;
    }
    row[steps] = time_of_run(p);
  }
  return true;
}

}  // namespace

bool run_all(lite_program* p, const Measuring& how, char* error, size_t error_bytes) {
  WarmUp before{};
  if (!warm_up(p, how, &before, error, error_bytes)) return false;
  const size_t stride = lite_program_num_steps(p) + 1;
  int64_t* times = static_cast<int64_t*>(calloc(how.runs * stride, sizeof(int64_t)));
  if (!times) {
    snprintf(error, error_bytes, "out of memory; use fewer --runs");
    return false;
  }
  bool changed = false;
  bool good = time_runs(p, how, times, &changed, error, error_bytes);
  if (!before.runs) before.first_ns = times[stride - 1];
  if (good && !changed && how.profile)
    good = write_profile(p, how.profile, how.runs, times, before, how.steady_s > 0, error, error_bytes);
  free(times);
  return good && changed ? run_all(p, how, error, error_bytes) : good;  // the CPU is what is measured
}
