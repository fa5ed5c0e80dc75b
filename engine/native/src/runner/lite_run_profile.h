// lite_run --profile: times of every step and run as JSON.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lite_run_measure.h"
#include "lite_runtime.h"

// A JSON string with its quotes.
void print_json_text(FILE* out, const char* text);
// times[run * (steps + 1) + step] in nanoseconds, the last column is the whole run; `adaptive` writes
// how long the warm-up took. False with one line in `error`.
bool write_profile(const lite_program* p, const char* path, int runs, const int64_t* times,
                   const WarmUp& before, bool adaptive, char* error, size_t error_bytes);
