#include "opening.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "device.h"
#include "library.h"
#include "refusal.h"

namespace lite::opencl {

namespace {

const char* kind_of(Opened opened) {
  switch (opened) {
    case Opened::kYes: return "opened";
    case Opened::kNotOpenCL: return "not_opencl";
    case Opened::kNoPlatform: return "no_platform";
    case Opened::kRefused: break;
  }
  return "refused";
}

void decide(Attempt* a, const char* kind, const char* fix, const char* reason) {
  a->kind = kind;
  snprintf(a->reason, sizeof a->reason, "%s", reason);
  snprintf(a->fix, sizeof a->fix, "%s", fix);
}

// What a line "L index kind detail" says of a library.
void take_answer(Attempt* a, const char* kind, const char* detail) {
  char reason[sizeof a->reason];
  if (strcmp(kind, "opened") == 0) {
    decide(a, "opened", "", "");
  } else if (strcmp(kind, "not_opencl") == 0) {
    decide(a, "not_opencl",
           "unset LITE_OPENCL_LIBRARY, or name the driver's library (libOpenCL.so.1, libmali.so)",
           "not an OpenCL library: it has no entry point clGetPlatformIDs");
  } else if (strcmp(kind, "no_platform") == 0) {
    snprintf(reason, sizeof reason, "no platform (%s): a loader without a driver", detail);
    decide(a, "no_platform",
           "install a driver (CPU: sudo apt-get install pocl-opencl-icd), or write its library's "
           "path into /etc/OpenCL/vendors/NAME.icd",
           reason);
  } else {
    const Refusal refusal = explain_refusal(a->candidate.library, detail);
    decide(a, refusal.kind, refusal.fix, refusal.reason);
  }
}

// The lines of a process that opens `names`. `at` counts the libraries that it has finished with.
struct Answers {
  Attempt* const* attempts;
  int count;
  int at = 0;
  bool opened = false;  // the library `at` has said "L", so that its devices are under way
  Text line;

  void take(const char* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      if (bytes[i] != '\n') {
        line.add_bytes(bytes + i, 1);
        continue;
      }
      whole();
      line.release();
    }
  }
  void whole() {
    if (at >= count || line.size < 2) return;
    Attempt* a = attempts[at];
    char* text = line.data + 2;
    if (line.data[0] == 'L') {
      char* space = strchr(text, ' ');
      if (!space) return;
      *space = 0;
      take_answer(a, text, space + 1);
      opened = true;
    } else if (line.data[0] == 'D') {
      a->devices.add_bytes(text, line.size - 2);
      a->devices.add_bytes("\n", 1);
    } else if (line.data[0] == 'E') {
      ++at;
      opened = false;
    }
  }
};

void run_runner(const Probing& how, bool devices, Attempt* const* attempts, int count) {
  if (!how.runner) return;
  const char* arguments[kMaxCandidates + 4];
  int n = 0;
  arguments[n++] = how.runner;
  arguments[n++] = devices ? "--probe-opencl-devices" : "--probe-opencl";
  for (int i = 0; i < count; ++i) arguments[n++] = attempts[i]->candidate.library;
  arguments[n] = nullptr;
  execv(how.runner, const_cast<char* const*>(arguments));
}

// Opens libraries in one process until one ends it; how many have their answer then.
int probe(Attempt* const* attempts, int count, const Probing& how, bool devices) {
  Child child;
  if (!start_child(&child)) {
    decide(attempts[0], "refused", "free memory or processes", "no process could be started");
    return 1;
  }
  if (child.pid == 0) {
    run_runner(how, devices, attempts, count);
    // No runner, or one that the system does not start (an emulated program): done here.
    const char* names[kMaxCandidates];
    for (int i = 0; i < count; ++i) names[i] = attempts[i]->candidate.library;
    answer_probe(kAnswerFd, devices, names, count);
    _exit(0);
  }
  Answers answers{attempts, count, 0, false, {}};
  char bytes[4096];
  long got = 0;
  const int open_s = how.timeout_s ? how.timeout_s : kProbeTimeoutS;
  const int devices_s = how.timeout_s ? how.timeout_s : kDevicesTimeoutS;
  int limit = open_s;
  while (answers.at < count) {
    limit = answers.opened ? devices_s : open_s;
    got = read_some(child, bytes, sizeof bytes, limit);
    if (got <= 0) break;
    answers.take(bytes, got);
  }
  answers.line.release();
  int status = 0;
  const Ended ended = end_child(&child, got < 0 || answers.at == count, &status);
  if (answers.at == count) return count;
  Attempt* last = attempts[answers.at];
  const char* doing = answers.opened ? "listing its devices" : "opening";
  char reason[200], word[40];
  how_it_ended(ended, status, word, sizeof word);
  if (ended == Ended::kHung) {
    snprintf(reason, sizeof reason, "did not finish %s within %d s", doing, limit);
    decide(last, "hung",
           "restart the device or its driver, or name another library with LITE_OPENCL_LIBRARY",
           reason);
  } else {
    snprintf(reason, sizeof reason, "crashed while %s (%s)",
             answers.opened ? "its devices were listed" : "it was opened", word);
    decide(last, "crashed",
           "reinstall the driver, or name another library with LITE_OPENCL_LIBRARY", reason);
  }
  last->devices.release();
  return answers.at + 1;
}

void write_all(int fd, const Text& text) {
  for (size_t at = 0; at < text.size;) {
    const ssize_t done = write(fd, text.data + at, text.size - at);
    if (done <= 0) return;
    at += done;
  }
}

}  // namespace

int attempt_all(Attempt out[kMaxCandidates], const Probing& how) {
  Candidate candidates[kMaxCandidates];
  const int count = list_candidates(candidates);
  Attempt* left[kMaxCandidates];
  for (int i = 0; i < count; ++i) {
    out[i] = Attempt();
    out[i].candidate = candidates[i];
    left[i] = &out[i];
  }
  for (int done = 0; done < count;) done += probe(left + done, count - done, how, false);
  return count;
}

void ask_devices(Attempt* attempts, int count, const Probing& how) {
  bool found = false;
  for (int begin = 0, end; begin < count && !found; begin = end) {
    Attempt* opened[kMaxCandidates];
    int number = 0;
    for (end = begin; end < count; ++end) {
      if (attempts[end].candidate.group != attempts[begin].candidate.group) break;
      if (strcmp(attempts[end].kind, "opened") == 0) opened[number++] = &attempts[end];
    }
    for (int done = 0; done < number;) done += probe(opened + done, number - done, how, true);
    for (int i = 0; i < number; ++i) found = found || opened[i]->devices.size;
  }
}

void answer_probe(int fd, bool devices, const char* const* names, int count) {
  for (int i = 0; i < count; ++i) {
    Platform platforms[kMaxPlatforms];
    int found = 0;
    char detail[600] = "";
    const Opened opened = open_library(names[i], platforms, &found, detail, sizeof detail);
    for (char* c = detail; *c; ++c)
      if (*c == '\n') *c = ' ';
    Text text;
    text.add("L %s %s\n", kind_of(opened), detail);
    write_all(fd, text);
    text.release();
    // The devices are found out before "E", so that a driver that fails then is told by its name.
    for (int p = 0; p < found; ++p) describe_devices(platforms[p], devices, fd);
    text.add("E \n");
    write_all(fd, text);
    text.release();
  }
}

bool no_opencl(const Attempt* attempts, int count, char* error, size_t error_bytes) {
  for (int i = 0; i < count; ++i) {
    const Attempt& a = attempts[i];
    if (strcmp(a.kind, "missing") == 0 && a.candidate.group != Group::kNamed) continue;
    const bool opened = strcmp(a.kind, "opened") == 0;
    return say(error, error_bytes, "OpenCL: %s (%s): %s; %s", a.candidate.library,
               a.candidate.found_by, opened ? "it has a platform but no device" : a.reason,
               opened ? "install a driver" : a.fix);
  }
  return say(error, error_bytes,
             "OpenCL: no library in the %d places where one can be; install the GPU vendor's "
             "driver, or name its library with LITE_OPENCL_LIBRARY=/path/libmali.so", count);
}

}  // namespace lite::opencl
