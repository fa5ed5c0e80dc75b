// Bands: a few steps in a row pass over an image together, some rows at a time, so that what one
// writes is still in the second-level cache when the next one reads it.
//
// The program marks such steps with one positive number in the attribute `band`. What lies between
// them is then never written to the arena: each thread keeps a window of its latest rows. Where
// something does not hold (a tap between them, a kernel without rows, shared memory) the steps run
// one after the other as ever.
#pragma once

#include "lite_kernel.h"

struct lite_program;

namespace lite {

constexpr int kMaxBandSteps = 6;

struct Band {
  int32_t first, count;            // steps
  int64_t rows;                    // of the last step's output per pass
  size_t windows[kMaxBandSteps];   // per step but the last: its window in a thread's scratch memory
  int64_t held[kMaxBandSteps];     // rows of that window
};

// Whether a band that contains this step can pay on this machine.
bool may_band(const Step&, const Env&);

// Finds the bands of prepared steps; adds room for their windows to the scratch memory.
bool prepare_bands(lite_program*);

// Whether a band may run now: nobody taps what lies inside.
bool is_open(const lite_program*, const Band&);

// Divides the rows of a band's last step among the threads' queues.
void divide_band(lite_program*, const Band&);

// One thread's rows of the last step, then what others have left. ns: time spent in each step.
void run_band(lite_program*, const Band&, int thread, int64_t* ns);

}  // namespace lite
