// What a program needs before it runs: its memory, its packed weights, the processor it is for.
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../opencl/executor.h"
#include "dispatch.h"
#include "platform/memory.h"

using namespace lite;

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
