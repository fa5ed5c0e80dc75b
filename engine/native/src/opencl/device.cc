#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "opening.h"
#include "shared_context.h"
#include "text.h"

namespace lite::opencl {

namespace {

struct Found {
  ListedDevice devices[kMaxDevices];
  char libraries[kMaxDevices][512];
  int count = 0;
};

// Opens the libraries of the first group that has a device.
void find_devices(const Attempt* attempts, int count, Found* found) {
  for (int i = 0; i < count; ++i) {
    const Attempt& a = attempts[i];
    if (found->count && i && attempts[i - 1].candidate.group != a.candidate.group) return;
    if (strcmp(a.kind, "opened") != 0) continue;
    Platform platforms[kMaxPlatforms];
    int number = 0;
    char detail[600];
    open_library(a.candidate.library, platforms, &number, detail, sizeof detail);
    for (int p = 0; p < number; ++p) {
      const int before = found->count;
      found->count += list_devices(platforms[p], found->devices + before, kMaxDevices - before);
      for (int d = before; d < found->count; ++d)
        memcpy(found->libraries[d], a.candidate.library, sizeof found->libraries[d]);
    }
  }
}

bool matches(const char* wanted, int index, const char* name) {
  char number[16];
  snprintf(number, sizeof number, "%d", index);
  return strcmp(wanted, number) == 0 || strcasestr(name, wanted);
}

// The first device that runs a trivial kernel, GPUs first; -1 with one line in `error`.
int choose(const Found& found, const char* wanted, char* error, size_t error_bytes) {
  Text reasons, names;
  int chosen = -1;
  for (int round = 0; round < 2 && chosen < 0; ++round) {
    for (int i = 0; i < found.count && chosen < 0; ++i) {
      const DeviceInfo& info = found.devices[i].info;
      if (round == 0) names.add("%s%d %s", names.size ? ", " : "", i, info.name);
      if ((strcmp(info.kind, "GPU") == 0) != (round == 0)) continue;
      if (wanted && !matches(wanted, i, info.name)) continue;
      char reason[256];
      if (runs_trivially(found.devices[i], reason, sizeof reason)) chosen = i;
      else reasons.add("%s%s: %s", reasons.size ? "; " : "", info.name, reason);
    }
  }
  if (chosen < 0 && reasons.size) say(error, error_bytes, "OpenCL: %s", reasons.text());
  else if (chosen < 0)
    say(error, error_bytes, "OpenCL: device %s is not one of: %s", wanted, names.text());
  reasons.release();
  names.release();
  return chosen;
}

// `library_index`: the device's number among those of its library.
bool open_chosen(const ListedDevice& listed, int library_index, const DeviceOptions& options,
                 Device* out, char* error, size_t error_bytes) {
  out->cl = listed.cl;
  out->id = listed.id;
  out->info = listed.info;
  cl_int status;
  out->shared = enter_context(out->cl, out->id, &status);
  out->context = out->shared ? context_of(out->shared) : nullptr;
  if (out->context)
    out->queue = out->cl.clCreateCommandQueue(out->context, out->id,
                                              options.timed ? CL_QUEUE_PROFILING_ENABLE : cl_bitfield{0},
                                              &status);
  if (status != CL_SUCCESS) {
    out->queue = nullptr;
    out->close();
    return say(error, error_bytes, "OpenCL: %s cannot be opened: %s", listed.info.name,
               error_name(status));
  }
  if (out->half_math() && !know_matrix_units(out->shared, &out->info.matrix_units)) {
    out->info.matrix_units = matrix_units_work(listed, out->context, out->queue);
    note_matrix_units(out->shared, out->info.matrix_units);
  }
  const char* identity[4] = {out->info.platform, out->info.name, out->info.version,
                             out->info.driver};
  const bool cpu = out->info.device_class == DeviceClass::kCpu;
  out->programs.open(&out->cl, out->context, out->id, identity, cpu, options.cache_dir);
  out->tuning.open(options.cache_dir, options.beside, identity);
  out->programs.use_runner(options.runner, out->library, library_index);
  return true;
}

}  // namespace

bool open_device(const DeviceOptions& options, Device* out, char* error, size_t error_bytes) {
  Attempt* attempts = static_cast<Attempt*>(calloc(kMaxCandidates, sizeof(Attempt)));
  Found* found = static_cast<Found*>(calloc(1, sizeof(Found)));
  bool good = attempts && found;
  if (!good) say(error, error_bytes, "OpenCL: out of memory");
  if (good) {
    const Probing probing{options.runner, options.timeout_s};
    const int count = attempt_all(attempts, probing);
    const bool named = count && attempts[0].candidate.group == Group::kNamed;
    if (named && strcmp(attempts[0].kind, "opened") != 0) {
      good = no_opencl(attempts, 1, error, error_bytes);  // what a person names is not replaced
    } else {
      find_devices(attempts, count, found);
      if (!found->count) good = no_opencl(attempts, count, error, error_bytes);
    }
  }
  if (good) {
    const char* wanted = options.device ? options.device : getenv("LITE_OPENCL_DEVICE");
    const int chosen = choose(*found, wanted && *wanted ? wanted : nullptr, error, error_bytes);
    good = chosen >= 0;
    if (good) {
      out->index = chosen;
      out->timed = options.timed;
      memcpy(out->library, found->libraries[chosen], sizeof out->library);
      int first = chosen;
      while (first && strcmp(found->libraries[first - 1], out->library) == 0) --first;
      good = open_chosen(found->devices[chosen], chosen - first, options, out, error, error_bytes);
    }
  }
  for (int i = 0; found && i < found->count; ++i) free(found->devices[i].info.extensions);
  out->info.extensions = nullptr;
  free(attempts);
  free(found);
  return good;
}

void Device::close() {
  programs.close();
  tuning.close();
  if (queue) cl.clReleaseCommandQueue(queue);
  if (shared) leave_context(shared);
  queue = nullptr;
  shared = nullptr;
  context = nullptr;
}

}  // namespace lite::opencl
