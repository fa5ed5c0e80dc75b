// lite_run --image: a pipeline's answer about one image.
#pragma once

#include <stddef.h>

#include "lite_runtime.h"

// Prints the answer as JSON, with the stages' times of the last of `runs` runs where `times` is set; `draw`
// is the PNG file that gets the image with the answer on it, or null. False with one line in `error`.
bool answer_image(lite_file* file, const lite_options& options, const char* image, const char* draw,
                  bool times, int runs, char* error, size_t error_bytes);
