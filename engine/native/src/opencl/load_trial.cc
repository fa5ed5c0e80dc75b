#include "load_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary_cache.h"
#include "blake2b.h"
#include "child.h"
#include "device.h"

namespace lite::opencl {

void LoadTrial::open(const char* where, const char* const identity[4]) {
  Text joined;
  lead.add("{\n \"device\": [\n");
  for (int i = 0; i < 4; ++i) {
    if (i) joined.add_bytes("", 1);
    joined.add("%s", identity[i]);
    lead.add("  ");
    lead.add_json(identity[i]);
    lead.add(i < 3 ? ",\n" : "\n");
  }
  lead.add(" ],\n \"loads\": ");
  uint8_t digest[16];
  char hex[33];
  Blake2b hash(sizeof digest);
  hash.add(joined.text(), joined.size);
  hash.finish(digest);
  to_hex(digest, sizeof digest, hex);
  joined.release();
  snprintf(folder, sizeof folder, "%s", where);
  snprintf(path, sizeof path, "%s/driver-%s.json", folder, hex);
}

LoadTrial::Verdict LoadTrial::remembered() const {
  Text file;
  const char* reason;
  Verdict out = Verdict::kUnknown;
  if (read_whole(path, &file, &reason) && file.size > lead.size + 5 &&
      memcmp(file.data, lead.text(), lead.size) == 0) {
    const char* word = file.data + lead.size;
    if (strncmp(word, "true", 4) == 0) out = Verdict::kLoads;
    if (strncmp(word, "false", 5) == 0) out = Verdict::kFails;
  }
  file.release();
  return out;
}

bool LoadTrial::write(bool loads, const char* reason) const {
  Text file;
  file.add_bytes(lead.text(), lead.size);
  file.add("%s,\n \"reason\": ", loads ? "true" : "false");
  file.add_json(reason);
  file.add("\n}");
  const bool good = !file.failed && write_whole(folder, path, file);
  file.release();
  return good;
}

LoadTrial::Verdict LoadTrial::tried(const char* entry_path, const char* options) {
  Child child;
  if (!runner || !start_child(&child)) return Verdict::kUnknown;
  if (child.pid == 0) {
    char number[16];
    snprintf(number, sizeof number, "%d", device);
    execl(runner, runner, "--probe-program", library, number, entry_path, options, nullptr);
    _exit(kNotStarted);
  }
  char nothing[16];
  const long got = read_some(child, nothing, sizeof nothing, kTrialTimeoutS);  // until it ends
  int status = 0;
  const Ended ended = end_child(&child, got < 0, &status);
  if (ended == Ended::kExited && status == 0) {
    write(true, "");
    return Verdict::kLoads;
  }
  if (ended == Ended::kExited || (ended == Ended::kSignal && !is_fault(status)))
    return Verdict::kUnknown;  // proves nothing
  char how[60], word[40];
  how_it_ended(ended, status, word, sizeof word);
  if (ended == Ended::kHung) snprintf(how, sizeof how, "hung for %d s", kTrialTimeoutS);
  else snprintf(how, sizeof how, "crashed (%s)", word);
  say(warning, sizeof warning,
      "the driver %s when it loaded a compiled kernel; kernels are compiled at every start until "
      "the driver changes", how);
  write(false, how);
  return Verdict::kFails;
}

bool LoadTrial::may_load(const char* entry_path, const char* options) {
  if (verdict == Verdict::kUnknown) verdict = remembered();
  if (verdict == Verdict::kUnknown) verdict = tried(entry_path, options);
  if (verdict != Verdict::kUnknown) return verdict == Verdict::kLoads;
  announced_ = write(false, "did not come back from loading a compiled kernel");
  return announced_;
}

void LoadTrial::came_back() {
  if (!announced_) return;
  announced_ = false;
  verdict = Verdict::kLoads;
  write(true, "");
}

int answer_trial(const char* library, const char* device, const char* entry, const char* options) {
  Text file, binary;
  const char* reason;
  if (!read_whole(entry, &file, &reason) || !unpack_entry(file, nullptr, &binary, &reason))
    return kNotStarted;
  static Platform platforms[kMaxPlatforms];
  static ListedDevice devices[kMaxDevices];
  int count = 0, found = 0;
  char detail[600];
  if (open_library(library, platforms, &count, detail, sizeof detail) != Opened::kYes)
    return kNotStarted;
  for (int p = 0; p < count; ++p)
    found += list_devices(platforms[p], devices + found, kMaxDevices - found);
  const int index = atoi(device);
  if (index < 0 || index >= found) return kNotStarted;
  const ListedDevice& d = devices[index];
  cl_int status;
  cl_context context = d.cl.clCreateContext(nullptr, 1, &d.id, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return kNotStarted;
  // A refusal without a crash is something that the other process can handle itself.
  cl_program program = load_binary(d.cl, context, d.id, binary, options);
  if (program) {
    char log[16];
    size_t size = 0;
    d.cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof log, log, &size);
  }
  return 0;
}

}  // namespace lite::opencl
