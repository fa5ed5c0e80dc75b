// A loaded program: tensors and steps in checked, runtime-owned memory.
#pragma once

#include "allocator.h"
#include "lite_kernel.h"

namespace lite {

// Of steps that take turns over samples (turns.h): memory for the samples of one turn, or a view that moves.
enum TurnsOf : uint8_t { kNoTurns, kKept, kMoving };

// Where a tensor's bytes are: the root is the tensor at the end of the alias chain.
struct Storage {
  int32_t root;     // own index when the tensor is not an alias
  int32_t over;     // what a view moves over, else the own index
  int32_t weight;   // index in the weight table, -1 when not a weight
  uint64_t offset;  // bytes: into the arena, the weight or the root's first byte
  TurnsOf turns;    // the tensor's first dimension is then the samples of one turn
  int64_t repeats;  // turns of a run; otherwise 1
};

// Steps [first, end) take turns over `samples`, of which a turn takes `each`; 0: none do.
struct Samples {
  int32_t samples, first, end, each;
};

struct Program {
  Tensor* tensors;
  Storage* storage;
  Step* steps;
  int32_t* inputs;  // tensor indices, in the model's order
  int32_t* outputs;
  int32_t num_tensors, num_steps, num_inputs, num_outputs;
  int32_t num_named;  // tensors before the views that move, which are nobody's but the steps'
  uint32_t num_weights;
  size_t arena_bytes;
  size_t kept_bytes;  // memory of its own for what is kept during a turn
  Samples turns;
  bool has_device;  // set before parsing: some steps and tensors are a device's
};

// Parses and checks `bytes`; everything is copied into `env.allocator`'s memory. The format is at
// the top of program.cc. False, with a reason in env.error, for whatever is not a valid program.
bool parse_program(const uint8_t* bytes, size_t size, Env& env, Program* program);

}  // namespace lite
