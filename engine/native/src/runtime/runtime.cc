// The program half of the public C ABI.
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "../opencl/executor.h"
#include "../plugins/plugins.h"
#include "choose.h"
#include "dispatch.h"

using namespace lite;

#ifndef LITE_VERSION
#define LITE_VERSION "0.0.0"
#endif

namespace {

// Own memory of an input or output, made when first needed; nullptr when there is none left.
uint8_t* own_buffer(lite_program* p, int tensor) {
  const Tensor& t = p->program.tensors[tensor];
  if (uint8_t* shared = p->ports ? opencl::port_memory(p, tensor) : nullptr) return p->own[tensor] = shared;
  if (!p->own[tensor])
    p->own[tensor] = static_cast<uint8_t*>(p->buffers.allocate_array(t.size, dtype_bytes(t.dtype)));
  return p->own[tensor];
}

bool is_port(const lite_program* p, int tensor) {
  for (int i = 0; i < p->program.num_inputs; ++i)
    if (p->program.inputs[i] == tensor) return true;
  for (int i = 0; i < p->program.num_outputs; ++i)
    if (p->program.outputs[i] == tensor) return true;
  return false;
}

bool valid_tensor(const lite_program* p, int tensor) {
  return tensor >= 0 && tensor < p->program.num_named;
}

// Of the whole batch.
size_t dense_bytes(const lite_program* p, int tensor) {
  const Tensor& t = p->program.tensors[tensor];
  return t.size * dtype_bytes(t.dtype) * p->program.storage[tensor].repeats;
}

// The step after which a tensor holds its value: the one that writes it (in turns, a view that moves over it), else
// the last one that writes its root (a view, or a concat buffer filled slice by slice).
int writer_of(const Program& program, int tensor) {
  int root_writer = -1;
  for (int i = program.num_steps - 1; i >= 0; --i) {
    const Step& step = program.steps[i];
    for (int o = 0; o < step.num_outputs; ++o) {
      if (!step.outputs[o]) continue;
      if (program.storage[step.outputs[o]->index].over == tensor) return i;
      const int root = program.storage[step.outputs[o]->index].root;
      if (root_writer < 0 && root == program.storage[tensor].root) root_writer = i;
    }
  }
  return root_writer;
}

}  // namespace

extern "C" {

int lite_abi_version(void) { return LITE_ABI_VERSION; }
const char* lite_version(void) { return LITE_VERSION; }
const char* lite_target(void) {
#if defined(__x86_64__)
  return "x86";
#elif defined(__wasm__)
  return "wasm";
#else
  return "arm";
#endif
}
const char* lite_cpu_features(void) { return cpu_feature_text(); }
const char* lite_isas(void) { return isa_text(); }
int lite_kernel(int index, lite_kernel_info* info) {
  const Kernel* kernel = index < 0 || !info ? nullptr : kernel_at(index, &info->isa);
  if (!kernel) return -1;
  info->name = kernel->name;
  info->ops = kernel->ops;
  return 0;
}

lite_program* lite_program_load(const void* bytes, size_t size, const void* const* weights,
                                const size_t* weight_bytes, size_t num_weights,
                                const lite_options* options, char* error, size_t error_bytes) {
  return load_program(bytes, size, weights, weight_bytes, num_weights, Mapping{}, nullptr, options,
                      error, error_bytes);
}

void lite_program_free(lite_program* p) {
  if (!p) return;
  if (p->opencl) opencl::unload(p);
  lite_program_free(p->next);
  opencl::unload(p);  // what a device that failed has left
  release_plugins(p);
  release(&p->cache);
  p->memory.release();
  p->buffers.release();
  free(p);
}

int lite_program_num_inputs(const lite_program* p) { return p->program.num_inputs; }
int lite_program_num_outputs(const lite_program* p) { return p->program.num_outputs; }
int lite_program_num_tensors(const lite_program* p) { return p->program.num_named; }
int lite_program_num_steps(const lite_program* p) {
  return current(p)->program.num_steps;
}
int lite_program_threads(const lite_program* p) { return p->threads; }
int lite_program_input(const lite_program* p, int i) {
  return i >= 0 && i < p->program.num_inputs ? p->program.inputs[i] : -1;
}
int lite_program_output(const lite_program* p, int i) {
  return i >= 0 && i < p->program.num_outputs ? p->program.outputs[i] : -1;
}

int lite_program_find(const lite_program* p, const char* name) {
  for (int i = 0; i < p->program.num_named; ++i)
    if (strcmp(p->program.tensors[i].name, name) == 0) return i;
  return -1;
}

int lite_program_tensor(const lite_program* p, int tensor, lite_tensor_info* info) {
  if (!valid_tensor(p, tensor)) return -1;
  const Tensor& t = p->program.tensors[tensor];
  memset(info, 0, sizeof *info);
  info->name = t.name;
  info->dtype = static_cast<int32_t>(t.dtype);
  info->role = static_cast<int32_t>(t.role);
  info->rank = t.rank;
  memcpy(info->dims, t.dims, sizeof info->dims);
  if (t.rank) info->dims[0] *= p->program.storage[tensor].repeats;
  info->pitch = t.pitch;
  memcpy(info->halo, t.halo, sizeof info->halo);
  info->bytes = dense_bytes(p, tensor);
  return 0;
}

int lite_program_step(const lite_program* p, int step, lite_step_info* info) {
  p = current(p);
  if (step < 0 || step >= p->program.num_steps) return -1;
  const Step& s = p->program.steps[step];
  const char* kernel = s.kernel ? s.kernel->name : s.variant;
  *info = {s.name,         s.op, kernel, s.variant, step ? p->end_ns[step - 1] : 0,
           p->end_ns[step]};
  return 0;
}

int lite_program_note_threads(lite_program* p, int on) {
  p = const_cast<lite_program*>(current(p));
  if (on && !p->thread_ns)
    p->thread_ns = static_cast<int64_t*>(p->buffers.allocate_array(
        static_cast<size_t>(p->threads) * p->program.num_steps, sizeof(int64_t)));
  p->note_threads = on && p->thread_ns;
  return on && !p->thread_ns ? -1 : 0;
}

int64_t lite_program_thread_ns(const lite_program* p, int step, int thread) {
  p = current(p);
  if (!p->note_threads || step < 0 || step >= p->program.num_steps || thread < 0 ||
      thread >= p->threads)
    return -1;
  return thread_ns(const_cast<lite_program*>(p), step, thread);
}

void lite_program_memory(const lite_program* p, lite_memory_info* info) {
  p = current(p);
  *info = {p->program.arena_bytes + p->program.kept_bytes, p->packed_bytes, p->scratch_bytes * p->threads + p->shared_bytes,
           p->weight_bytes, p->run_ns};
}

int64_t lite_program_copies(const lite_program* p, int64_t* bytes) {
  p = current(p);
  if (bytes) *bytes = p->copied_bytes;
  return p->copies;
}

int lite_program_bind(lite_program* p, int tensor, void* data, size_t bytes) {
  if (!valid_tensor(p, tensor) || !is_port(p, tensor)) return -1;
  const Tensor& t = p->program.tensors[tensor];
  if (data && (bytes != dense_bytes(p, tensor) || reinterpret_cast<uintptr_t>(data) % dtype_bytes(t.dtype)))
    return -1;
  p->bound[tensor] = static_cast<uint8_t*>(data);
  return 0;
}

void* lite_program_data(lite_program* p, int tensor) {
  if (!valid_tensor(p, tensor)) return nullptr;
  if (p->tapped[tensor]) return p->taps[tensor];
  if (!is_port(p, tensor)) return nullptr;
  return p->bound[tensor] ? p->bound[tensor] : own_buffer(p, tensor);
}

int lite_program_tap(lite_program* p, int tensor, int on, char* error, size_t error_bytes) {
  p->env.error = error;
  p->env.error_bytes = error_bytes;
  if (!valid_tensor(p, tensor)) {
    p->env.fail("tensor %d does not exist", tensor);
    return -1;
  }
  if (p->next && !current(p)->opencl && on) {
    p->env.fail("'%s' is the device's, which failed; load the program with the backend cpu",
                p->program.tensors[tensor].name);
    return -1;
  }
  if (p->tapped[tensor] == (on != 0)) return 0;
  if (on && !p->taps[tensor]) {
    p->taps[tensor] = static_cast<uint8_t*>(p->buffers.allocate_array(dense_bytes(p, tensor), 1));
    p->tap_step[tensor] = writer_of(p->program, tensor);
    if (!p->taps[tensor]) {
      p->env.out_of_memory();
      return -1;
    }
  }
  p->tapped[tensor] = on != 0;
  const int step = p->tap_step[tensor];
  (step < 0 ? p->num_early_taps : p->step_taps[step]) += on ? 1 : -1;
  return 0;
}

int lite_program_run(lite_program* p, char* error, size_t error_bytes) {
  p->env.error = error;
  p->env.error_bytes = error_bytes;
  const Program& program = p->program;
  bool ready = true;
  for (int i = 0; i < program.num_outputs; ++i)
    ready = ready && (p->bound[program.outputs[i]] || own_buffer(p, program.outputs[i]));
  // Every root in memory of its own needs it, whether it is listed as an input or output or not.
  for (int i = 0; i < program.num_tensors; ++i) {
    const Role role = program.tensors[i].role;
    const bool io = role == Role::kInput || role == Role::kOutput;
    if (io && program.storage[i].root == i && !p->bound[i]) ready = ready && own_buffer(p, i);
  }
  if (!ready) {
    p->env.out_of_memory();
    return -1;
  }
  if (p->next) return run_next(p) ? 0 : -1;
  if (run_steps(p)) return 0;
  const bool goes_on = (p->opencl && leave_step(p)) || fall_back(p);
  if (p->inputs_lost) {
    p->inputs_lost = false;
    char reason[400];
    snprintf(reason, sizeof reason, "%s", error);
    p->env.fail("%s; inputs are lost with it, give them again", reason);
    return -1;
  }
  return goes_on && run_next(p) ? 0 : -1;
}

}  // extern "C"
