// A reading of the OpenCL part of a program up to where a device would be needed: tables, the program
// inside, packed weights, option lines, arguments and their reach.
#pragma once

#include <stdlib.h>

#include "lite_runtime.h"
#include "opencl/constants.h"
#include "opencl/layout.h"
#include "runtime/allocator.h"
#include "runtime/program.h"

struct Weights {
  const void* const* data;
  const size_t* bytes;
  size_t count;
};

// Whether everything is in order; otherwise `error` says why.
template <size_t N>
bool reads(const uint8_t* data, size_t size, const Weights& weights, char (&error)[N]) {
  using namespace lite;
  using namespace lite::opencl;
  constexpr uint64_t kLocalMemory = 256 << 10;
  Allocator memory{};
  memory.limit_bytes = 64 << 20;
  Env env{};
  env.allocator = &memory;
  env.error = error;
  env.error_bytes = N;
  DevicePlan plan{};
  Program program{};
  program.has_device = true;
  bool good = parse_device_plan(data, size, env, &plan) &&
              parse_program(plan.program, plan.program_bytes, env, &program);
  const auto room = [&](size_t count, size_t each) { return good ? memory.allocate_array(count, each) : nullptr; };
  size_t* made_bytes = static_cast<size_t*>(room(plan.num_constants, sizeof(size_t)));
  int32_t* place_of = static_cast<int32_t*>(room(program.num_tensors, sizeof(int32_t)));
  good = made_bytes && place_of;
  for (uint32_t i = 0; good && i < plan.num_constants; ++i) {
    const Constant& c = plan.constants[i];
    Array made{};
    good = c.weight < weights.count && evaluate(c, weights.data[c.weight], weights.bytes[c.weight],
                                                memory.limit_bytes, env, &made);
    made_bytes[i] = made.bytes;
    free(made.data);
  }
  good = good && assign_places(plan, program, place_of, env) &&
         check_launches(plan, program, place_of, made_bytes, kLocalMemory, nullptr, env);
  memory.release();
  return good;
}
