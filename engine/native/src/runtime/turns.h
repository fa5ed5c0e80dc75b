// Steps that take turns over the samples of a batch: a run of steps computes the first samples, then the next.
//
// The program's header says which (program.cc). Their tensors are those of one turn: what only they touch has memory for its samples, and a view of what they share with others moves on
// after each turn. With a few threads a turn takes about one sample for each, so that all have work, and what
// a thread reads is mostly what it wrote; with many it takes the whole batch.
#pragma once

#include "program.h"

struct lite_program;

namespace lite {

struct Turns {
  int32_t first, end;   // steps; empty: none
  int32_t count;        // of turns
  int32_t turn;         // the one that is computed
  int64_t start_ns;     // of the turn
  int64_t* spent_ns;    // per step of them, in the turns before
};

// How many samples of a batch one turn takes: a divisor of the batch.
int64_t samples_of_turn(int64_t batch, int threads);

// From a tensor of one turn to the same place in the next turn's samples.
int64_t turn_bytes(const Tensor&);

// Those of a parsed program. False with a reason in env.error where their tensors are not those of one turn, or
// other steps touch such a tensor.
bool find_turns(Program*, Env&, Turns*);

// The step after step `i`, when all threads are done with it: the first one again, with the next samples.
int32_t step_after(lite_program*, int32_t i);

// When the step began, or the one that its times are counted from.
int64_t start_of(const lite_program*, int32_t i);

}  // namespace lite
