#include "layout.h"

#include "reach.h"

namespace lite::opencl {

namespace {

// The memory of an argument; false where it has none.
bool memory_of(const DevicePlan& plan, const Program& program, const int32_t* place_of,
               const size_t* constant_bytes, Argument kind, uint32_t value, Memory* out) {
  *out = {kind, value, 0, 0, 0, false};
  if (kind == Argument::kConstant) {
    out->bytes = constant_bytes[value];
    out->constant = true;
  } else if (kind == Argument::kScratch) {
    out->bytes = plan.scratch[value];
  } else if (kind == Argument::kImage) {
    out->width = plan.images[value].width;
    out->height = plan.images[value].height;
    out->constant = plan.images[value].constant >= 0;
  } else if (kind == Argument::kTensor) {
    if (value >= static_cast<uint32_t>(program.num_tensors)) return false;
    const int root = program.storage[value].root;
    if (place_of[root] < 0) return false;
    out->number = static_cast<uint32_t>(place_of[root]);
    out->bytes = program.tensors[root].bytes;
    out->constant = program.tensors[root].role == Role::kWeight;
  }
  return true;
}

}  // namespace

bool assign_places(const DevicePlan& plan, const Program& program, int32_t* place_of, Env& env) {
  const uint32_t num_tensors = static_cast<uint32_t>(program.num_tensors);
  for (uint32_t i = 0; i < num_tensors; ++i) place_of[i] = -1;
  for (uint32_t i = 0; i < plan.num_places; ++i) {
    const Place& place = plan.places[i];
    if (place.tensor >= num_tensors || place.buffer >= plan.num_buffers)
      return env.fail("OpenCL: tensor %u in buffer %u", place.tensor, place.buffer);
    const Tensor& t = program.tensors[place.tensor];
    const bool owner = program.storage[place.tensor].root == static_cast<int>(place.tensor);
    if (!owner || t.role == Role::kArena || place_of[place.tensor] >= 0 ||
        t.bytes > plan.buffers[place.buffer])
      return env.fail("OpenCL: '%s' does not lie in buffer %u", t.name, place.buffer);
    place_of[place.tensor] = static_cast<int32_t>(place.buffer);
  }
  for (uint32_t s = 0; s < plan.num_steps; ++s) {
    if (plan.steps[s].step >= static_cast<uint32_t>(program.num_steps))
      return env.fail("OpenCL: step %u does not exist", plan.steps[s].step);
    const Step& step = program.steps[plan.steps[s].step];
    for (int o = 0; o < step.num_outputs; ++o) {
      if (!step.outputs[o]) continue;
      const int root = program.storage[step.outputs[o]->index].root;
      if (program.tensors[root].role == Role::kDevice && place_of[root] < 0)
        return env.fail("OpenCL: '%s' has no buffer", program.tensors[root].name);
    }
  }
  return true;
}

bool check_launches(const DevicePlan& plan, const Program& program, const int32_t* place_of,
                    const size_t* constant_bytes, uint64_t local_memory, const bool* needed,
                    Env& env) {
  for (uint32_t i = 0; i < plan.num_launches; ++i) {
    const Launch& launch = plan.launches[i];
    if (needed && !needed[i]) continue;
    Memory memory[kMaxArguments];
    for (uint32_t k = 0; k < launch.num_args; ++k)
      if (!memory_of(plan, program, place_of, constant_bytes, launch.kinds[k], launch.values[k],
                     &memory[k]))
        return env.fail("OpenCL: kernel '%s': argument %u has no memory", launch.kernel, k);
    if (!stays_within(launch, memory, local_memory, env)) return false;
  }
  return true;
}

}  // namespace lite::opencl
