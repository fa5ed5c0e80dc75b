// lite_run --stream: frames of a folder or of standard input through a pipeline.
#pragma once

#include <stddef.h>

#include "lite_runtime.h"

// `from` is a folder, whose files are the frames in the order of their names, or "-": JPEG files one after the
// other (Motion JPEG). With `fps` they come at this rate and the newest frame wins; without it every frame of a
// folder is answered. Prints a line of JSON for each answer, and throughput and latency on standard error once a
// second. False with one line in `error`.
bool answer_stream(lite_file* file, const lite_options& options, const char* from, int fps, char* error,
                   size_t error_bytes);
