// The runs of lite_run: those to warm up, and those that are timed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lite_runtime.h"

struct Measuring {
  int runs, warmup;
  int steady_s;         // goes on to warm up until the times are steady, so many seconds at most; 0: no
  const char* profile;  // where the times go, nullptr: nowhere
};

// What came before the timed runs.
struct WarmUp {
  int runs;
  int64_t first_ns, all_ns;
  bool steady;  // at the end the times did not get shorter or longer any more
};

// False with one line in `error`.
bool run_all(lite_program*, const Measuring&, char* error, size_t error_bytes);
