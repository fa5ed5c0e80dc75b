// The clock of runs and steps.
#pragma once

#include <stdint.h>

namespace lite {

// Nanoseconds from some moment on; never less than what another thread was told before.
int64_t now_ns();

}  // namespace lite
