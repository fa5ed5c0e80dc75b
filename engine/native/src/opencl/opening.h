// Opening OpenCL libraries in another process, because a broken driver may crash or stop the one
// that loads it; what came of each is told apart by kind, with the fix.
#pragma once

#include "places.h"
#include "text.h"

namespace lite::opencl {

// `kind`: opened, missing, dependency, architecture, damaged, permission, crashed, hung,
// not_opencl, no_platform or refused. `reason` is empty when it was opened.
struct Attempt {
  Candidate candidate;
  const char* kind;
  char reason[512];
  char fix[320];
  Text devices;  // JSON objects, one in each line, where devices were asked for
};

struct Probing {
  const char* runner = nullptr;  // lite_run, which a new process executes; nullptr: a fork alone
  int timeout_s = 0;             // without any answer; 0: kProbeTimeoutS
};

constexpr int kProbeTimeoutS = 60;     // from a cold card a driver and its compiler take tens of s
constexpr int kDevicesTimeoutS = 120;  // compilers are slow, and slower in an emulator

// Opens each candidate; returns their number.
int attempt_all(Attempt out[kMaxCandidates], const Probing&);
// Lists the devices of the first group that has one, and runs a trivial kernel on each of them.
// Release each attempt's `devices`.
void ask_devices(Attempt* attempts, int count, const Probing&);

// The other process's part: opens `names` in turn and writes answers to `fd`.
void answer_probe(int fd, bool devices, const char* const* names, int count);

// The first attempt that says why there is no OpenCL: a library that is there but cannot be used.
// False with one line in `error`.
bool no_opencl(const Attempt* attempts, int count, char* error, size_t error_bytes);

}  // namespace lite::opencl
