// Which layer of a program goes wrong on its device: the same program whose steps the CPU runs, on the
// same inputs, has the same tensors.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/lite_file.h"
#include "executor.h"
#include "ops/convert.h"

namespace lite::opencl {

namespace {

// An element as a number; false for a type that has none.
bool number_at(DType dtype, const uint8_t* data, int64_t i, double* out) {
  switch (dtype) {
    case DType::kF32: *out = reinterpret_cast<const float*>(data)[i]; return true;
    case DType::kI8: *out = reinterpret_cast<const int8_t*>(data)[i]; return true;
    case DType::kU8: *out = data[i]; return true;
    case DType::kI32: *out = reinterpret_cast<const int32_t*>(data)[i]; return true;
    case DType::kF16: {
      float value;
      halves_to_floats(reinterpret_cast<const uint16_t*>(data) + i, 1, &value);
      *out = value;
      return true;
    }
    default: return false;
  }
}

lite_layer_check difference(const Tensor& t, const uint8_t* device, const uint8_t* cpu) {
  lite_layer_check found{};
  double sum = 0, norm = 0, most = -1;
  for (int64_t i = 0; i < t.size; ++i) {
    double a, b;
    if (!number_at(t.dtype, device, i, &a) || !number_at(t.dtype, cpu, i, &b)) {
      found.error = memcmp(device, cpu, t.size * dtype_bytes(t.dtype)) ? 1 : 0;
      return found;
    }
    if (a == b || (isnan(a) && isnan(b))) {
      norm += isfinite(b) ? b * b : 0;
      continue;
    }
    const bool finite = isfinite(a) && isfinite(b);
    const double apart = finite ? fabs(a - b) : INFINITY;
    sum += apart * apart;
    norm += finite ? b * b : 0;
    if (apart <= most) continue;
    most = apart;
    found.index = i;
    found.device = a;
    found.cpu = b;
  }
  found.error = sum > 0 ? sqrt(sum / (norm > 0 ? norm : 1)) : 0;
  return found;
}

bool is_compared(const lite_program* p, const DeviceStep& row, int tensor) {
  return row.action == Action::kLaunches && row.host_kernel && tensor >= 0 &&
         p->program.tensors[tensor].size > 0;
}

// Calls `each(step, tensor)` for what the steps of the device write, in order, until it is false.
template <class Each>
bool walk(const lite_program* p, Each each) {
  const Executor& x = *p->opencl;
  for (int s = 0; s < p->program.num_steps; ++s) {
    const Step& step = p->program.steps[s];
    if (x.step_of[s] < 0) continue;
    for (int o = 0; o < step.num_outputs; ++o) {
      const int tensor = step.outputs[o] ? step.outputs[o]->index : -1;
      if (is_compared(p, x.plan.steps[x.step_of[s]], tensor) && !each(step, tensor)) return false;
    }
  }
  return true;
}

// A program of the same steps, those that can on the CPU, with the inputs of `p`.
lite_program* on_cpu(lite_program* p, char* error, size_t error_bytes) {
  lite_options options{};
  options.threads = p->threads;
  options.memory_limit_bytes = static_cast<int64_t>(p->memory.limit_bytes);
  Onto onto{p->opencl->device, nullptr, false};
  onto.reference = true;
  const lite_file& file = *p->source;
  lite_program* q = load_program(p->part, p->part_bytes, file.weights, file.weight_bytes, file.num_weights,
                                 mapping_of(file), &onto, &options, error, error_bytes);
  for (int i = 0; q && i < p->program.num_inputs; ++i)
    q->bound[q->program.inputs[i]] = static_cast<uint8_t*>(lite_program_data(p, p->program.inputs[i]));
  return q;
}

}  // namespace

}  // namespace lite::opencl

using namespace lite;
using namespace lite::opencl;

int lite_program_check(lite_program* whole, double tolerance, lite_layer_check* first, char* error,
                       size_t error_bytes) {
  lite_program* p = whole;
  while (p->next) p = p->next;
  *first = {};
  if (!p->opencl || !p->source) return 0;
  lite_program* q = on_cpu(p, error, error_bytes);
  if (!q) return -1;
  bool* ours = static_cast<bool*>(calloc(p->program.num_tensors + 1, 1));
  int count = 0;
  bool good = ours && walk(p, [&](const Step&, int t) {
    ours[t] = !p->tapped[t];
    return !lite_program_tap(p, t, 1, error, error_bytes) && !lite_program_tap(q, t, 1, error, error_bytes);
  });
  good = good && !lite_program_run(q, error, error_bytes);
  detach(q);  // before the device may fail and be closed
  good = good && !lite_program_run(p, error, error_bytes);
  if (good && !p->opencl) good = p->env.fail("the device failed: %s", lite_program_choice(p));
  good = good && walk(p, [&](const Step& step, int t) {
    ++count;
    if (first->name) return true;
    lite_layer_check found = difference(p->program.tensors[t], p->taps[t], q->taps[t]);
    if (found.error <= tolerance) return true;
    found.name = step.name;
    found.op = step.op;
    found.kernel = step.variant;
    *first = found;
    return true;
  });
  for (int t = 0; ours && t < p->program.num_tensors; ++t)
    if (ours[t]) lite_program_tap(p, t, 0, error, error_bytes);
  free(ours);
  lite_program_free(q);
  return good ? count : -1;
}
