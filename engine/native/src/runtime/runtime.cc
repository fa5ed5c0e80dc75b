// The program half of the public C ABI.
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "../opencl/executor.h"
#include "../plugins/plugins.h"
#include "choose.h"
#include "dispatch.h"
#include "platform/memory.h"

using namespace lite;

#ifndef LITE_VERSION
#define LITE_VERSION "0.0.0"
#endif

namespace lite {

bool set_up_memory(lite_program* p, const void* const* weights, const size_t* weight_bytes,
                   size_t num_weights) {
  Env& env = p->env;
  Program& program = p->program;
  if (program.num_weights > num_weights)
    return env.fail("program needs %u weights, %zu are given", program.num_weights, num_weights);
  const size_t n = program.num_tensors;
  Allocator& memory = p->memory;
  p->bound = static_cast<uint8_t**>(memory.allocate_array(n, sizeof(uint8_t*)));
  p->own = static_cast<uint8_t**>(memory.allocate_array(n, sizeof(uint8_t*)));
  p->taps = static_cast<uint8_t**>(memory.allocate_array(n, sizeof(uint8_t*)));
  p->tapped = static_cast<bool*>(memory.allocate_array(n, sizeof(bool)));
  p->tap_step = static_cast<int32_t*>(memory.allocate_array(n, sizeof(int32_t)));
  p->step_taps = static_cast<int32_t*>(memory.allocate_array(program.num_steps, sizeof(int32_t)));
  p->end_ns = static_cast<int64_t*>(memory.allocate_array(program.num_steps, sizeof(int64_t)));
  p->arena = static_cast<uint8_t*>(memory.allocate_array(program.arena_bytes, 1));
  p->kept = static_cast<uint8_t*>(memory.allocate_array(program.kept_bytes, 1));
  if (!p->bound || !p->own || !p->taps || !p->tapped || !p->tap_step || !p->step_taps ||
      !p->end_ns || !p->arena || !p->kept)
    return env.out_of_memory();
  if (!find_turns(&program, env, &p->turns)) return false;
  for (size_t i = 0; i < n; ++i) {
    const Storage& storage = program.storage[i];
    const Storage& root = program.storage[storage.root];
    const Tensor& root_tensor = program.tensors[storage.root];
    const uint64_t inner = storage.root == static_cast<int>(i) ? 0 : storage.offset;
    if (root_tensor.role == Role::kArena) {
      program.tensors[i].data = (root.turns == kKept ? p->kept : p->arena) + root.offset + inner;
    } else if (root_tensor.role == Role::kWeight && !program.tensors[i].data) {
      const size_t have = weight_bytes[root.weight];
      if (root.offset > have || root_tensor.bytes > have - root.offset)
        return env.fail("weight '%s' has %zu bytes, its tensor needs %zu", root_tensor.name, have,
                        root_tensor.bytes);
      const uint8_t* first = static_cast<const uint8_t*>(weights[root.weight]);
      if (reinterpret_cast<uintptr_t>(first) % dtype_bytes(root_tensor.dtype))
        return env.fail("weight '%s' is not aligned to its element", root_tensor.name);
      // Kernels read weights only: parse_step has refused every step that writes one.
      program.tensors[i].data = const_cast<uint8_t*>(first) + root.offset + inner;
      if (storage.root == static_cast<int>(i)) p->weight_bytes += root_tensor.bytes;
    }
  }
  if (!prepare_steps(p)) return false;
  p->scratch = static_cast<uint8_t*>(memory.allocate_array(p->threads, p->scratch_bytes));
  p->shared = static_cast<uint8_t*>(memory.allocate_array(p->shared_bytes, 1));
  if (!p->scratch || !p->shared) return env.out_of_memory();
  for (int i = 0; i < program.num_steps; ++i) program.steps[i].shared = p->shared;
  return true;
}

}  // namespace lite

namespace {

bool set_up(lite_program* p, const uint8_t* bytes, size_t size, const void* const* weights,
            const size_t* weight_bytes, size_t num_weights, const lite_options& options,
            const opencl::Onto* onto) {
  if (opencl::is_device_plan(bytes, size)) {
    if (onto) return opencl::load(p, bytes, size, weights, weight_bytes, num_weights, *onto);
    const opencl::Onto own{opencl::new_device(options, nullptr, p->env.error, p->env.error_bytes), nullptr,
                           false};
    if (!own.device) return false;
    if (opencl::load(p, bytes, size, weights, weight_bytes, num_weights, own)) return true;
    opencl::close_device(own.device);
    return false;
  }
  return parse_program(bytes, size, p->env, &p->program) &&
         set_up_memory(p, weights, weight_bytes, num_weights);
}

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

namespace lite {

lite_program* load_program(const void* bytes, size_t size, const void* const* weights,
                           const size_t* weight_bytes, size_t num_weights, const Mapping& file,
                           const opencl::Onto* onto, const lite_options* options, char* error,
                           size_t error_bytes) {
  const lite_options defaults{};
  const lite_options& wanted = options ? *options : defaults;
  char unused[1];
  if (!error || !error_bytes) {
    error = unused;
    error_bytes = sizeof unused;
  }
  error[0] = 0;
  lite_program* p = static_cast<lite_program*>(calloc(1, sizeof(lite_program)));
  if (!p) {
    snprintf(error, error_bytes, "out of memory");
    return nullptr;
  }
  p->env.allocator = &p->memory;
  p->env.weights = &p->cache;
  p->env.error = error;
  p->env.error_bytes = error_bytes;
  p->threads = wanted.threads > 0 ? wanted.threads : allowed_processors();
  if (p->threads > kMaxThreads) p->threads = kMaxThreads;
  p->env.threads = p->threads;
  p->env.shares = 1;
  p->pin = wanted.pin != 0;
  p->fp32 = wanted.precision && strcmp(wanted.precision, "fp32") == 0;
  p->file = file;
  p->cache.fixed = file.data;
  p->cache.fixed_bytes = file.bytes;
  p->memory.fail_countdown = wanted.fail_allocation;
  // Without a limit a damaged shape could ask for more than the machine has and be granted it.
  p->memory.limit_bytes = wanted.memory_limit_bytes > 0
                              ? static_cast<size_t>(wanted.memory_limit_bytes)
                              : physical_memory_bytes();
  p->buffers.limit_bytes = p->memory.limit_bytes;
  detect_caches(&p->env.l1_bytes, &p->env.l2_bytes);
  if (wanted.l2_bytes > 0) p->env.l2_bytes = static_cast<size_t>(wanted.l2_bytes);
  snprintf(p->max_isa, sizeof p->max_isa, "%s", wanted.max_isa ? wanted.max_isa : "");
  bool good = detect_cpu(p->max_isa, &p->env.cpu);
  if (!good)
    p->env.fail("unknown instruction set '%s'; this library has: %s", p->max_isa, isa_text());
  good = good &&
         set_up(p, static_cast<const uint8_t*>(bytes), size, weights, weight_bytes, num_weights,
                wanted, onto);
  if (!good) {
    lite_program_free(p);
    return nullptr;
  }
  publish(&p->cache);
  if (p->opencl) opencl::describe(p);
  else snprintf(p->choice, sizeof p->choice, "cpu");
  return p;
}

}  // namespace lite

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
