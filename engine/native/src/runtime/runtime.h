// A program that is ready to run: memory, prepared steps, taps, times.
#pragma once

#include "allocator.h"
#include "bands.h"
#include "lite_runtime.h"
#include "program.h"
#include "thread_pool.h"
#include "turns.h"
#include "weight_cache.h"

namespace lite {

// Memory that a file is mapped to; none where the weights are the caller's own.
struct Mapping {
  const uint8_t* data;
  size_t bytes;
};

// What a thread spent in each step of the band that runs.
struct ThreadTimes {
  int64_t ns[kMaxBandSteps];
  char apart[64];  // threads write to cache lines of their own
};

namespace opencl {
struct Device;
struct Executor;
struct Onto;
struct Ports;
}

}  // namespace lite

struct lite_program {
  lite::Program program;
  lite::Allocator memory;   // program, arena, scratch
  lite::WeightCache cache;  // packed weights
  lite::Allocator buffers;  // own buffers of inputs and outputs, taps
  lite::Env env;
  char max_isa[24];
  int threads;
  bool pin;
  bool has_plugins;        // steps with kernels of other people's libraries
  bool fp32;  // options.precision was that
  size_t packed_bytes, scratch_bytes, shared_bytes, weight_bytes;
  uint8_t* arena;
  uint8_t* kept;     // for one turn (turns.h)
  uint8_t* scratch;  // threads blocks of scratch_bytes
  uint8_t* shared;
  const uint8_t** weights;  // per tensor: address of its weight's first byte, or nullptr
  uint8_t** bound;          // per tensor: the caller's memory of an input or output
  uint8_t** own;            // per tensor: the program's own memory of an input or output
  uint8_t** taps;           // per tensor: dense copy, nullptr when not tapped
  bool* tapped;
  int32_t* tap_step;       // per tensor: the step after which it is copied, -1: at the start
  int32_t* step_taps;      // per step: number of taps after it
  int32_t num_early_taps;  // taps of inputs and weights
  lite::Turns turns;
  lite::Band* bands;       // per step: the band that begins there, count 0: none
  int64_t* end_ns;         // per step, from the start of the run
  int64_t run_ns;
  bool note_threads;
  int64_t* thread_ns;      // threads blocks of one number per step, of the last run that noted them
  lite::Barrier barrier;
  lite::WorkQueue queues[lite::kMaxThreads];  // of the step, phase or band that runs
  lite::ThreadTimes times[lite::kMaxThreads];
  lite::Mapping file;      // where its weights lie
  lite::opencl::Executor* opencl;  // of a program with an OpenCL part
  lite::opencl::Ports* ports;      // its inputs and outputs that host and device share
  int64_t copies, copied_bytes;    // between host and device, of the last run
  bool inputs_lost;                // a device that failed did not give them back
  lite_file* source;       // of a program with an OpenCL part, and that part
  const void* part;
  size_t part_bytes;
  bool to_cpu;             // the file's program for the CPU may take over
  bool fell_back;          // the CPU runs what the device was to run
  lite_program* next;      // took over from this one
  char choice[400];        // lite_program_choice
};

namespace lite {

// lite_program_load, of weights that lie in a mapped file; an OpenCL part goes onto a device, which
// stays the caller's where this fails (nullptr: one of its own).
lite_program* load_program(const void* program, size_t program_bytes, const void* const* weights,
                           const size_t* weight_bytes, size_t num_weights, const Mapping& file,
                           const opencl::Onto*, const lite_options*, char* error, size_t error_bytes);
// Who runs what this program is asked to run.
inline const lite_program* current(const lite_program* p) {
  while (p->next) p = p->next;
  return p;
}
// A parsed program's memory; its steps of the CPU are prepared.
bool set_up_memory(lite_program*, const void* const* weights, const size_t* weight_bytes,
                   size_t num_weights);
// Finds each step's kernel, checks the generic rules and lets the kernel prepare.
bool prepare_steps(lite_program*);
// Two tensors whose elements share bytes. Slices of one concat buffer interleave without sharing.
bool overlap(const Program&, const Tensor& a, const Tensor& b);
// Executes all steps.
bool run_steps(lite_program*);
// Executes the steps [first, last) of the CPU on the pool.
bool run_range(lite_program*, int first, int last);
// What a thread computed of a step in the last run; the rest of the step it waited.
inline int64_t& thread_ns(lite_program* p, int step, int thread) {
  return p->thread_ns[static_cast<int64_t>(thread) * p->program.num_steps + step];
}
// Copies the elements of a tensor with pitch or halo densely.
void copy_dense(const Tensor&, uint8_t* out);

}  // namespace lite
