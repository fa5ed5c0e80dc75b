// lite_run --profile: times of every step and run as JSON.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lite_runtime.h"

// A JSON string with its quotes.
void print_json_text(FILE* out, const char* text);
// times[run * (steps + 1) + step] in nanoseconds, the last column is the whole run; `first_ns` is the
// first run's. False with one line in `error`.
bool write_profile(const lite_program* p, const char* path, int runs, const int64_t* times,
                   int64_t first_ns, char* error, size_t error_bytes);
