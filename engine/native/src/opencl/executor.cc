// From a checked plan to memory, programs and kernels with their arguments set.
#include "executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "device_memory.h"
#include "host_steps.h"
#include "layout.h"
#include "step_kernels.h"

namespace lite::opencl {

namespace {

template <class T>
bool room(lite_program* p, size_t count, T** out) {
  *out = static_cast<T*>(p->memory.allocate_array(count, sizeof(T)));
  return *out || p->env.out_of_memory();
}

bool fits_device(lite_program* p) {
  const Executor& x = *p->opencl;
  const DeviceInfo& info = x.device->info;
  const bool cpu = info.device_class == DeviceClass::kCpu;
  if (cpu != (x.plan.device_class == DeviceClass::kCpu))
    return p->env.fail("OpenCL: %s: the program is for a %s device", info.name,
                       class_name(x.plan.device_class));
  const uint8_t missing = x.plan.needs & ~info.features();
  if (missing)
    return p->env.fail("OpenCL: %s does not have %s, which the program needs", info.name, feature_name(missing));
  if (x.plan.num_images &&
      (info.image_columns < x.plan.columns || info.image_rows < x.plan.rows))
    return p->env.fail("OpenCL: %s has no images of %u x %u", info.name, x.plan.columns,
                       x.plan.rows);
  return true;
}

// The memory that an argument names; nullptr with a reason where there is none.
cl_mem memory_of(lite_program* p, Argument kind, uint32_t value) {
  const Executor& x = *p->opencl;
  if (kind == Argument::kConstant) return x.constants[value];
  if (kind == Argument::kScratch) return x.scratch[value];
  if (kind == Argument::kImage) return x.images[value];
  if (value >= static_cast<uint32_t>(p->program.num_tensors)) return nullptr;
  const int32_t place = x.place_of[p->program.storage[value].root];
  return place < 0 ? nullptr : x.buffers[place];
}

bool set_argument(lite_program* p, const Launch& launch, cl_kernel kernel, uint32_t i) {
  const Executor& x = *p->opencl;
  const Argument kind = launch.kinds[i];
  const uint32_t bits = launch.values[i];
  cl_int status;
  if (kind <= Argument::kImage) {
    cl_mem memory = memory_of(p, kind, bits);
    if (!memory)
      return p->env.fail("OpenCL: kernel '%s': argument %u has no memory", launch.kernel, i);
    status = x.device->cl.clSetKernelArg(kernel, i, sizeof memory, &memory);
  } else {
    const uint64_t wide = bits;
    const size_t bytes = kind == Argument::kUchar    ? 1
                         : kind == Argument::kUshort ? 2
                         : kind == Argument::kUlong  ? 8
                                                     : 4;
    status = x.device->cl.clSetKernelArg(kernel, i, bytes, &wide);
  }
  return status == CL_SUCCESS || refused(p, launch.kernel, status);
}

bool set_arguments(lite_program* p) {
  const Executor& x = *p->opencl;
  for (uint32_t k = 0; k < x.plan.num_launches; ++k) {
    const Launch& launch = x.plan.launches[k];
    for (uint32_t i = 0; x.kernels[k] && x.needed.launches[k] && i < launch.num_args; ++i)
      if (!set_argument(p, launch, x.kernels[k], i)) return false;
  }
  return true;
}

bool is_plain(const Tensor& t) { return is_dense(t) && !has_halo(t); }

// Steps that only move a value between host and device.
bool check_copy(lite_program* p, const DeviceStep& row) {
  const Executor& x = *p->opencl;
  const Step& step = p->program.steps[row.step];
  const Tensor* from = step.num_inputs == 1 ? step.inputs[0] : nullptr;
  const Tensor* to = step.num_outputs == 1 ? step.outputs[0] : nullptr;
  if (!from || !to) return p->env.fail("step '%s' copies nothing", step.name);
  const Tensor& there = row.action == Action::kUpload ? *to : *from;
  const Tensor& here = row.action == Action::kUpload ? *from : *to;
  const int root = p->program.storage[there.index].root;
  const Role role = p->program.tensors[p->program.storage[here.index].root].role;
  if (x.place_of[root] < 0 || role == Role::kDevice || !is_plain(*from) || !is_plain(*to) ||
      from->bytes != to->bytes)
    return p->env.fail("step '%s' does not copy between host and device", step.name);
  return true;
}

bool assign_steps(lite_program* p) {
  Executor& x = *p->opencl;
  for (int i = 0; i < p->program.num_steps; ++i) x.step_of[i] = -1;
  for (uint32_t i = 0; i < x.plan.num_steps; ++i) {
    const DeviceStep& row = x.plan.steps[i];
    x.step_of[row.step] = static_cast<int32_t>(i);
    Step& step = p->program.steps[row.step];
    char kernel[sizeof step.variant];
    snprintf(kernel, sizeof kernel, "%s", step.variant);
    const Tensor* read = nullptr;
    for (int k = 0; k < step.num_inputs && !read; ++k) read = step.inputs[k];
    if (!read && step.num_outputs) read = step.outputs[0];
    set_variant(step, "%s_%s__opencl", read ? dtype_name(read->dtype) : "none", kernel);
  }
  return true;
}

// Of the file's own copies, before others join them.
bool check_copies(lite_program* p) {
  const DevicePlan& plan = p->opencl->plan;
  for (uint32_t i = 0; i < plan.num_steps; ++i)
    if (plan.steps[i].action != Action::kLaunches && !check_copy(p, plan.steps[i])) return false;
  return true;
}

// Everything made on the device but ports.
void release(Executor* x) {
  const Functions& cl = x->device->cl;
  cl.clFinish(x->device->queue);
  for (uint32_t i = 0; i < x->plan.num_launches; ++i)
    if (x->kernels[i]) cl.clReleaseKernel(x->kernels[i]);
  release_memory(x);
}

bool make_ports(lite_program* p, Ports* shared) {
  p->ports = shared;
  if (shared) return true;
  const size_t count = static_cast<size_t>(p->program.num_inputs) + p->program.num_outputs;
  if (!room(p, 1, &p->ports) || !room(p, count, &p->ports->all)) return false;
  p->ports->owner = p;
  return true;
}

}  // namespace

Device* new_device(const lite_options& options, const char* beside, char* error, size_t error_bytes) {
  void* memory = malloc(sizeof(Device));
  if (!memory) {
    snprintf(error, error_bytes, "out of memory");
    return nullptr;
  }
  Device* device = new (memory) Device();
  DeviceOptions wanted;
  wanted.device = options.device;
  wanted.cache_dir = options.cache_dir;
  wanted.beside = beside;
  wanted.timed = options.timed || options.tune;
  if (open_device(wanted, device, error, error_bytes)) return device;
  free(device);
  return nullptr;
}

void add_stored_tuning(Device* device, const char* section, size_t bytes) {
  device->tuning.add_stored(section, bytes);
}

void close_device(Device* device) {
  device->close();
  free(device);
}

bool load(lite_program* p, const uint8_t* bytes, size_t size, const void* const* weights,
          const size_t* weight_bytes, size_t num_weights, const Onto& onto) {
  Env& env = p->env;
  Executor* x;
  if (!room(p, 1, &x) || !parse_device_plan(bytes, size, env, &x->plan)) return false;
  p->program.has_device = true;
  if (!parse_program(x->plan.program, x->plan.program_bytes, env, &p->program)) return false;
  if (!room(p, p->program.num_tensors, &x->place_of) ||
      !room(p, x->plan.num_steps, &x->left.rows) ||
      !room(p, x->plan.num_steps, &x->left.own_way) || !room(p, x->plan.num_buffers, &x->buffers) ||
      !room(p, x->plan.num_constants, &x->constants) ||
      !room(p, x->plan.num_constants, &x->constant_bytes) ||
      !room(p, x->plan.num_scratch, &x->scratch) || !room(p, x->plan.num_images, &x->images) ||
      !room(p, x->plan.num_launches, &x->kernels))
    return false;
  x->device = onto.device;
  x->failed_row = -1;
  x->file_steps = x->plan.steps;
  x->num_file_steps = x->plan.num_steps;
  x->reference = onto.reference;
  for (uint32_t i = 0; i < x->plan.num_steps; ++i) {
    x->left.own_way[i] = onto.left && onto.left->own_way && onto.left->own_way[i];
    if ((onto.reference || (onto.left && onto.left->rows[i])) && x->plan.steps[i].host_kernel)
      leave(&x->left, i, p->program.steps[x->plan.steps[i].step].name,
            onto.left ? onto.left->reason : "compared");
  }
  p->opencl = x;
  const bool good = fits_device(p) && assign_places(x->plan, p->program, x->place_of, env) &&
                    check_copies(p) && choose_ways(p, onto.way) && make_kernels(p, onto.whole) &&
                    move_to_host(p, weights, weight_bytes, num_weights) &&
                    room(p, p->program.num_steps, &x->step_of) && assign_steps(p) &&
                    set_up_memory(p, weights, weight_bytes, num_weights) && make_ports(p, onto.ports) &&
                    find_borders(p) && make_memory(p, weights, weight_bytes, num_weights) &&
                    check_launches(x->plan, p->program, x->place_of, x->constant_bytes,
                                   x->device->info.local_memory, x->needed.launches, env) &&
                    set_arguments(p);
  if (good) {
    set_borders(p);
    *env.error = 0;
    p->packed_bytes += x->device_bytes;
    return true;
  }
  release(x);  // the device stays the caller's
  p->opencl = nullptr;
  return false;
}

void describe(lite_program* p) {
  const Executor& x = *p->opencl;
  size_t n = snprintf(p->choice, sizeof p->choice, "opencl: %.200s, program for %s devices",
                      x.device->info.name, class_name(x.plan.device_class));
  const char* before = " with ";
  for (unsigned bit = 1; bit <= x.plan.needs; bit *= 2) {
    if (!(x.plan.needs & bit) || n >= sizeof p->choice) continue;
    n += snprintf(p->choice + n, sizeof p->choice - n, "%s%s", before, feature_name(bit));
    before = " and ";
  }
  if (!x.left.count || n >= sizeof p->choice) return;
  p->fell_back = true;
  const char* more = x.left.count > 1 ? " and others" : "";
  snprintf(p->choice + n, sizeof p->choice - n, "; '%.60s'%s on the CPU: %s", x.left.name, more,
           x.left.reason);
}

Device* hand_over(lite_program* p) {
  Device* device = p->opencl->device;
  release(p->opencl);
  p->opencl = nullptr;
  return device;
}

Device* detach(lite_program* p) {
  Device* device = hand_over(p);
  if (p->ports->owner == p) release_ports(p->ports, *device);
  return device;
}

bool leave_failed_step(lite_program* p, Onto* onto) {
  // So many launches that fail are the device's fault, not the kernels'.
  constexpr uint32_t kMost = 4;
  Executor& x = *p->opencl;
  if (x.failed_row < 0 || x.left.count >= kMost) return false;
  const uint32_t row = static_cast<uint32_t>(x.failed_row);
  if (x.way_of[row] >= 0 && !x.left.own_way[row] && !is_own_way(x, row)) x.left.own_way[row] = true;
  else if (x.file_steps[row].host_kernel) leave(&x.left, row, "", p->env.error);
  else return false;
  *onto = {hand_over(p), &x.left, false};
  return true;
}

bool leave_layers(lite_program* p, const char* const* layers, int count, const char* reason, Left* left) {
  const Executor& x = *p->opencl;
  *left = x.left;
  left->name = nullptr;
  if (!room(p, x.num_file_steps, &left->rows)) return false;
  memcpy(left->rows, x.left.rows, x.num_file_steps);
  for (int l = 0; l < count; ++l) {
    bool found = false;
    for (int s = 0; s < p->program.num_steps; ++s) {
      const DeviceStep* row = x.step_of[s] < 0 ? nullptr : &x.plan.steps[x.step_of[s]];
      if (!row || !row->host_kernel || strcmp(p->program.steps[s].name, layers[l]) != 0) continue;
      leave(left, row->origin, layers[l], reason);
      found = true;
    }
    if (!found) return p->env.fail("'%s' is not a layer of the device that the CPU can take over", layers[l]);
  }
  return true;
}

Device* device_of(const Executor* x) { return x->device; }

const char* device_warning(const Executor* x) {
  const Device& device = *x->device;
  const char* text = *device.programs.warning() ? device.programs.warning() : device.tuning.warning;
  return *text ? text : nullptr;
}

const char* tuning_summary(const Executor* x) {
  return *x->device->tuning.summary ? x->device->tuning.summary : nullptr;
}

void retire(lite_program* p, Device* device) {
  if (p->ports->count) p->ports->device = device;
  else close_device(device);
}

void unload(lite_program* p) {
  Device* device = p->opencl ? hand_over(p) : nullptr;
  if (!device && p->ports && p->ports->owner == p) device = p->ports->device;
  if (!device) return;
  release_ports(p->ports, *device);
  close_device(device);
}

}  // namespace lite::opencl
