// The program that goes on in the place of one whose device failed, or was wrong.
#include <stdio.h>

#include "../opencl/executor.h"
#include "choose.h"
#include "lite_file.h"

namespace lite {

namespace {

// What a program was loaded with, as far as it matters to the one that takes over.
lite_options options_of(const lite_program* p) {
  lite_options options{};
  options.threads = p->threads;
  options.pin = p->pin;
  options.precision = p->fp32 ? "fp32" : nullptr;
  options.max_isa = *p->max_isa ? p->max_isa : nullptr;
  options.memory_limit_bytes = static_cast<int64_t>(p->memory.limit_bytes);
  return options;
}

// The same part of the same file, nullptr with a reason in `error`.
lite_program* reloaded(const lite_program* p, opencl::Onto onto, char* error, size_t error_bytes) {
  onto.ports = p->ports;
  const lite_options options = options_of(p);
  lite_program* next =
      load_program(p->part, p->part_bytes, p->source->weights, p->source->weight_bytes,
                   p->source->num_weights, mapping_of(*p->source), &onto, &options, error, error_bytes);
  if (!next) return nullptr;
  next->source = p->source;
  next->part = p->part;
  next->part_bytes = p->part_bytes;
  next->to_cpu = p->to_cpu;
  return next;
}

// The bound or own memory of an input or output, also where it is tapped.
uint8_t* port_data(const lite_program* p, int tensor) {
  return p->bound[tensor] ? p->bound[tensor] : p->own[tensor];
}

}  // namespace

bool leave_step(lite_program* p) {
  opencl::Onto onto{};
  if (!p->source || !opencl::leave_failed_step(p, &onto)) return false;
  char unused[1];
  lite_program* next = reloaded(p, onto, unused, sizeof unused);
  if (!next) {
    opencl::retire(p, onto.device);
    return false;
  }
  p->next = next;
  return true;
}

bool fall_back(lite_program* p) {
  if (!p->to_cpu) return false;
  char reason[sizeof p->choice], error[sizeof p->choice];
  snprintf(reason, sizeof reason, "%s", p->env.error);
  const lite_options options = options_of(p);
  lite_program* cpu = cpu_program(p->source, lite_target(), options, error, sizeof error);
  if (!cpu) return p->env.fail("%.200s; and the CPU cannot take over: %.150s", reason, error);
  const Program &mine = p->program, &other = cpu->program;
  bool same = mine.num_inputs == other.num_inputs && mine.num_outputs == other.num_outputs;
  const struct {
    const int32_t *mine, *other;
    int count;
  } ports[] = {{mine.inputs, other.inputs, mine.num_inputs},
               {mine.outputs, other.outputs, mine.num_outputs}};
  for (const auto& port : ports)
    for (int i = 0; same && i < port.count; ++i) {
      const Tensor &a = mine.tensors[port.mine[i]], &b = other.tensors[port.other[i]];
      same = strcmp(a.name, b.name) == 0 && a.dtype == b.dtype && a.rank == b.rank &&
             memcmp(a.dims, b.dims, a.rank * sizeof *a.dims) == 0;
    }
  if (!same) {
    lite_program_free(cpu);
    return p->env.fail("%s", reason);
  }
  if (p->opencl) opencl::retire(p, opencl::hand_over(p));
  p->next = cpu;
  cpu->fell_back = true;
  snprintf(cpu->choice, sizeof cpu->choice, "cpu: %.*s", static_cast<int>(sizeof reason - 8), reason);
  return true;
}

bool run_next(lite_program* p) {
  lite_program* next = p->next;
  const Program& mine = p->program;
  // The same program with some steps on the CPU has the same tensors first; the CPU's own has others.
  for (int i = 0; i < mine.num_tensors; ++i) {
    if (!p->tapped[i]) continue;
    if (!next->part)
      return p->env.fail("'%s' is the device's, which failed; load the program with the backend cpu",
                         mine.tensors[i].name);
    if (lite_program_tap(next, i, 1, p->env.error, p->env.error_bytes)) return false;
  }
  for (int i = 0; i < mine.num_inputs; ++i)
    next->bound[next->program.inputs[i]] = port_data(p, mine.inputs[i]);
  for (int i = 0; i < mine.num_outputs; ++i)
    next->bound[next->program.outputs[i]] = port_data(p, mine.outputs[i]);
  if (lite_program_run(next, p->env.error, p->env.error_bytes)) return false;
  for (int i = 0; i < mine.num_tensors; ++i)
    if (p->tapped[i])
      memcpy(p->taps[i], lite_program_data(next, i), mine.tensors[i].size * dtype_bytes(mine.tensors[i].dtype));
  return true;
}

}  // namespace lite

int lite_program_leave(lite_program* whole, const char* const* layers, int count, const char* reason,
                       char* error, size_t error_bytes) {
  using namespace lite;
  lite_program* p = const_cast<lite_program*>(current(whole));
  p->env.error = error;
  p->env.error_bytes = error_bytes;
  opencl::Left left{};
  if (!p->opencl || !p->source) return p->env.fail("no device runs this program"), -1;
  if (!opencl::leave_layers(p, layers, count, reason, &left)) return -1;
  lite_program* next = reloaded(p, {opencl::device_of(p->opencl), &left, false}, error, error_bytes);
  if (!next) return -1;
  opencl::hand_over(p);
  p->next = next;
  return 0;
}
