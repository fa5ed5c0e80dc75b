#include "step_kernels.h"

#include <stdio.h>
#include <string.h>

#include "reach.h"

namespace lite::opencl {

namespace {

bool flags(lite_program* p, uint32_t count, bool** out) {
  *out = static_cast<bool*>(p->memory.allocate_array(count, sizeof(bool)));
  return *out || p->env.out_of_memory();
}

bool make_kernel(lite_program* p, const Launch& launch, cl_kernel* out) {
  Executor& x = *p->opencl;
  const DeviceInfo& info = x.device->info;
  size_t items = 1;
  for (uint32_t d = 0; d < launch.dimensions; ++d) {
    items *= launch.group[d];
    if (launch.group[d] > info.group_sizes[d] || items > info.group_size)
      return p->env.fail("OpenCL: %s: kernel '%s' has groups of more than %zu work-items",
                         info.name, launch.kernel, info.group_size);
  }
  const uint64_t local = local_memory_of(launch, p->env);
  if (local > info.local_memory)
    return p->env.fail("OpenCL: %s: kernel '%s' needs %llu bytes of local memory, the device has %llu",
                       info.name, launch.kernel, static_cast<unsigned long long>(local),
                       static_cast<unsigned long long>(info.local_memory));
  char reason[500];
  cl_program program = x.device->programs.get(*launch.text, launch.options, reason, sizeof reason);
  if (!program) return p->env.fail("OpenCL: %s", reason);
  cl_int status = CL_SUCCESS;
  *out = x.device->cl.clCreateKernel(program, launch.kernel, &status);
  if (status != CL_SUCCESS || !*out) {
    *out = nullptr;
    return refused(p, launch.kernel, status);
  }
  return true;
}

void go(Executor& x, uint32_t row, int32_t way) {
  x.way_of[row] = way;
  x.plan.steps[row].first = x.plan.ways[way].first;
  x.plan.steps[row].count = x.plan.ways[way].count;
}

uint32_t own_way(const DevicePlan& plan, uint32_t way) {
  while (way && plan.ways[way - 1].row == plan.ways[way].row) --way;
  return way;
}

bool make_row(lite_program* p, const DeviceStep& row) {
  Executor& x = *p->opencl;
  for (uint32_t k = row.first; k < row.first + row.count; ++k)
    if (!x.kernels[k] && !make_kernel(p, x.plan.launches[k], &x.kernels[k])) return false;
  return true;
}

// The launches of the steps that stay, by the ways taken, and what they refer to; of a program in which
// steps have one way, everything that launches may refer to.
bool mark_needed(lite_program* p) {
  Executor& x = *p->opencl;
  const DevicePlan& plan = x.plan;
  Needed& needed = x.needed;
  if (!flags(p, plan.num_launches, &needed.launches) ||
      !flags(p, plan.num_constants, &needed.constants) ||
      !flags(p, plan.num_images, &needed.images) || !flags(p, plan.num_scratch, &needed.scratch))
    return false;
  const bool all = !plan.num_ways;
  memset(needed.launches, 0, plan.num_launches);
  memset(needed.constants, all, plan.num_constants);
  memset(needed.images, all, plan.num_images);
  memset(needed.scratch, all, plan.num_scratch);
  for (uint32_t i = 0; i < plan.num_steps; ++i)
    if (!x.left.rows[i]) memset(needed.launches + plan.steps[i].first, 1, plan.steps[i].count);
  for (uint32_t k = 0; k < plan.num_launches; ++k) {
    const Launch& launch = plan.launches[k];
    for (uint32_t a = 0; needed.launches[k] && a < launch.num_args; ++a) {
      const uint32_t value = launch.values[a];
      if (launch.kinds[a] == Argument::kConstant) needed.constants[value] = true;
      if (launch.kinds[a] == Argument::kScratch) needed.scratch[value] = true;
      if (launch.kinds[a] != Argument::kImage) continue;
      needed.images[value] = true;
      if (plan.images[value].constant >= 0) needed.constants[plan.images[value].constant] = true;
    }
  }
  return true;
}

}  // namespace

bool refused(lite_program* p, const char* what, cl_int status) {
  const Executor& x = *p->opencl;
  return p->env.fail("OpenCL: %s: %s: %s", x.device->info.name, what, error_name(status));
}

void leave(Left* left, uint32_t row, const char* name, const char* reason) {
  if (!left->rows[row]) ++left->count;
  left->rows[row] = true;
  if (left->name) return;
  left->name = name;
  snprintf(left->reason, sizeof left->reason, "%s", reason);
}

bool is_own_way(const Executor& x, uint32_t row) {
  const int32_t way = x.way_of[row];
  return way < 0 || own_way(x.plan, way) == static_cast<uint32_t>(way);
}

bool choose_ways(lite_program* p, int number) {
  Executor& x = *p->opencl;
  const DevicePlan& plan = x.plan;
  x.way_of = static_cast<int32_t*>(p->memory.allocate_array(plan.num_steps, sizeof(int32_t)));
  if (!x.way_of) return p->env.out_of_memory();
  for (uint32_t i = 0; i < plan.num_steps; ++i) x.way_of[i] = -1;
  for (uint32_t i = 0; i < plan.num_ways; ++i) {
    const Way& way = plan.ways[i];
    const uint32_t own = own_way(plan, i);
    const char* known = x.device->tuning.way_of(way.size);
    const bool wanted = known ? strcmp(known, way.name) == 0
                              : number >= 0 && i - own == static_cast<uint32_t>(number);
    if (i == own || (wanted && !x.left.own_way[way.row])) go(x, way.row, static_cast<int32_t>(i));
  }
  return true;
}

bool make_kernels(lite_program* p, bool whole) {
  Executor& x = *p->opencl;
  uint32_t launching = 0;
  for (uint32_t i = 0; i < x.plan.num_steps; ++i) {
    const DeviceStep& row = x.plan.steps[i];
    launching += row.count > 0;
    if (x.left.rows[i] || make_row(p, row)) continue;
    if (!is_own_way(x, i)) {
      x.left.own_way[i] = true;
      go(x, i, static_cast<int32_t>(own_way(x.plan, x.way_of[i])));
      if (make_row(p, row)) continue;
    }
    if (whole || !row.host_kernel) return false;
    leave(&x.left, i, p->program.steps[row.step].name, p->env.error);
  }
  if (x.left.count && x.left.count >= launching && !x.reference) return p->env.fail("%s", x.left.reason);
  return mark_needed(p);
}

}  // namespace lite::opencl
