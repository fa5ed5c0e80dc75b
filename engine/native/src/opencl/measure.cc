#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/lite_file.h"
#include "step_kernels.h"

namespace lite::opencl {

namespace {

constexpr int kRounds = 5;  // after one that builds and warms up; the fastest counts

struct Measuring {
  const lite_file* file;
  const void* part;
  size_t bytes;
  const lite_options& options;
  Device* device;
  DevicePlan plan{};          // with its ways only
  int64_t* best = nullptr;    // per way: nanoseconds, INT64_MAX: it failed
  char reason[400] = "";

  lite_program* loaded(const Onto& onto) {
    return load_program(part, bytes, file->weights, file->weight_bytes, file->num_weights,
                        mapping_of(*file), &onto, &options, reason, sizeof reason);
  }

  uint32_t own(uint32_t way) const {
    while (way && plan.ways[way - 1].row == plan.ways[way].row) --way;
    return way;
  }

  // Runs a program and notes what the steps took that go the way `number`.
  bool timed(lite_program* p, uint32_t number) {
    const Executor& x = *p->opencl;
    for (int round = -1; round < kRounds; ++round) {
      if (lite_program_run(p, reason, sizeof reason)) return false;
      for (int i = 0; round >= 0 && i < p->program.num_steps; ++i) {
        const DeviceStep* row = x.step_of[i] < 0 ? nullptr : &x.plan.steps[x.step_of[i]];
        const int32_t way = row && row->action == Action::kLaunches ? x.way_of[row->origin] : -1;
        if (way < 0 || way - own(way) != number) continue;
        const int64_t ns = p->end_ns[i] - (i ? p->end_ns[i - 1] : 0);
        if (ns < best[way]) best[way] = ns;
      }
    }
    return true;
  }

  void go(uint32_t number) {
    Onto onto{device, nullptr, false, static_cast<int>(number)};
    lite_program* before = nullptr;  // holds what `onto` says of steps that failed
    while (lite_program* p = loaded(onto)) {
      lite_program_free(before);
      before = p;
      if (timed(p, number) || !leave_failed_step(p, &onto)) break;
      onto.way = static_cast<int>(number);
    }
    if (before && before->opencl) detach(before);
    lite_program_free(before);
  }

  // The fastest way of a size, which `first` is of; summed over all layers of that size.
  const char* fastest(uint32_t first) const {
    const char* name = nullptr;
    int64_t least = INT64_MAX;
    for (uint32_t way = first; way < plan.num_ways && plan.ways[way].row == plan.ways[first].row; ++way) {
      int64_t sum = 0;
      for (uint32_t i = 0; i < plan.num_ways; ++i) {
        if (strcmp(plan.ways[i].size, plan.ways[way].size) || strcmp(plan.ways[i].name, plan.ways[way].name))
          continue;
        sum = best[i] > INT64_MAX - sum ? INT64_MAX : sum + best[i];
      }
      if (sum < least) {
        least = sum;
        name = plan.ways[way].name;
      }
    }
    return name;
  }

  void run() {
    uint32_t most = 0, known = 0, measured = 0, changed = 0;
    for (uint32_t i = 0; i < plan.num_ways; ++i) {
      const bool knows = device->tuning.way_of(plan.ways[i].size);
      known += knows && own(i) == i;
      if (!knows && i - own(i) >= most) most = i - own(i) + 1;
    }
    for (uint32_t number = 0; number < most; ++number) go(number);
    for (uint32_t i = 0; i < plan.num_ways; ++i) {
      if (own(i) != i || device->tuning.way_of(plan.ways[i].size)) continue;
      const char* name = fastest(i);
      if (!name) continue;
      device->tuning.learn(plan.ways[i].size, name);
      ++measured;
      changed += strcmp(name, plan.ways[i].name) != 0;
    }
    Tuning& tuning = device->tuning;
    const bool kept = measured && tuning.save();
    say(tuning.summary, sizeof tuning.summary, "sizes of layers measured: %u, changed: %u; layers known already: %u%s%s",
        measured, changed, known, kept ? "; kept in " : "", kept ? tuning.path : "");
  }
};

}  // namespace

void measure(const lite_file* file, const void* part, size_t part_bytes, const lite_options& options,
             Device* device) {
  Measuring m{file, part, part_bytes, options, device};
  Allocator memory{};
  memory.limit_bytes = SIZE_MAX;
  WeightCache cache{};
  Env env{};
  env.allocator = &memory;
  env.weights = &cache;
  env.error = m.reason;
  env.error_bytes = sizeof m.reason;
  if (parse_device_plan(static_cast<const uint8_t*>(part), part_bytes, env, &m.plan) && m.plan.num_ways) {
    m.best = static_cast<int64_t*>(malloc(m.plan.num_ways * sizeof(int64_t)));
    for (uint32_t i = 0; m.best && i < m.plan.num_ways; ++i) m.best[i] = INT64_MAX;
    if (m.best) m.run();
    free(m.best);
  } else {
    say(device->tuning.summary, sizeof device->tuning.summary,
        "nothing to measure: the file has one variant of each layer; convert it with --tunable");
  }
  release(&cache);
  memory.release();
  device->timed = options.timed != 0;
}

}  // namespace lite::opencl
