// What a page needs beside the C ABI: texts in place of structures, whose layout JavaScript cannot know.
// Every text is JSON, freed with lite_wasm_free; nullptr where memory has run out.
#include <stdlib.h>
#include <string.h>

#include "lite_runtime.h"
#include "opencl/text.h"
#include "platform/memory.h"
#include "platform/pool_wasm.h"
#include "wasm_exports.h"

using lite::opencl::Text;
using lite::wasm::error_text;

namespace {

char* finished(Text& out) {
  if (!out.failed) return out.data;
  out.release();
  return nullptr;
}

void add_tensor(Text& out, const lite_program* p, int tensor, const char* before) {
  lite_tensor_info info;
  if (tensor < 0 || lite_program_tensor(p, tensor, &info) != 0) return;
  out.add("%s{\"tensor\": %d, \"name\": ", before, tensor);
  out.add_json(info.name);
  out.add(", \"dtype\": %d, \"bytes\": %zu, \"dims\": [", info.dtype, info.bytes);
  for (int i = 0; i < info.rank; ++i)
    out.add(i ? ", %lld" : "%lld", static_cast<long long>(info.dims[i]));
  out.add("]}");
}

}  // namespace

extern "C" {

// Bytes that begin at a multiple of 64, for a file.
EXPORT(lite_wasm_allocate) void* lite_wasm_allocate(size_t bytes) {
  return lite::aligned_bytes(bytes);
}
EXPORT(lite_wasm_free) void lite_wasm_free(void* bytes) { free(bytes); }

EXPORT(lite_wasm_error) const char* lite_wasm_error(void) { return error_text; }

// The model and its program in one: nullptr, and lite_wasm_error says why.
EXPORT(lite_wasm_open) lite_file* lite_wasm_open(const void* bytes, size_t size) {
  return lite_file_open_bytes(bytes, size, error_text, sizeof error_text);
}
EXPORT(lite_wasm_program) lite_program* lite_wasm_program(lite_file* file, int threads) {
  lite_options options{};
  options.threads = threads;
  return lite_file_program(file, nullptr, &options, error_text, sizeof error_text);
}
// Of a module on a shared memory: so many workers have come; and where each of them stays.
EXPORT(lite_wasm_threads) void lite_wasm_threads(int workers) { lite::expect_workers(workers); }
EXPORT(lite_wasm_serve) void lite_wasm_serve(int thread) { lite::serve_pool(thread); }
EXPORT(lite_wasm_run) int lite_wasm_run(lite_program* p) {
  return lite_program_run(p, error_text, sizeof error_text);
}
EXPORT(lite_wasm_close) void lite_wasm_close(lite_file* file, lite_program* p) {
  lite_program_free(p);
  lite_file_close(file);
}
// An input's memory, an output's, or that of a tapped tensor; nullptr for any other.
EXPORT(lite_wasm_data) void* lite_wasm_data(lite_program* p, int tensor) {
  return lite_program_data(p, tensor);
}
// A section of the file, and its bytes; nullptr where it has none.
EXPORT(lite_wasm_section) const void* lite_wasm_section(const lite_file* file, const char* tag, size_t* bytes) {
  return lite_file_section(file, tag, bytes);
}
EXPORT(lite_wasm_version) const char* lite_wasm_version(void) { return lite_version(); }
EXPORT(lite_wasm_features) const char* lite_wasm_features(void) { return lite_cpu_features(); }
EXPORT(lite_wasm_tap) int lite_wasm_tap(lite_program* p, int tensor, int on) {
  return lite_program_tap(p, tensor, on, error_text, sizeof error_text);
}

// {"inputs": [{"tensor", "name", "dtype", "bytes", "dims"}], "outputs": [...], "tensors": [...]}
EXPORT(lite_wasm_tensors) char* lite_wasm_tensors(const lite_program* p) {
  Text out;
  out.add("{\"inputs\": [");
  for (int i = 0; i < lite_program_num_inputs(p); ++i)
    add_tensor(out, p, lite_program_input(p, i), i ? ", " : "");
  out.add("], \"outputs\": [");
  for (int i = 0; i < lite_program_num_outputs(p); ++i)
    add_tensor(out, p, lite_program_output(p, i), i ? ", " : "");
  out.add("], \"tensors\": [");
  for (int i = 0; i < lite_program_num_tensors(p); ++i) add_tensor(out, p, i, i ? ", " : "");
  out.add("]}");
  return finished(out);
}

// {"run_ns", "arena_bytes", "packed_bytes", "weight_bytes", "threads",
//  "steps": [{"name", "op", "kernel", "variant", "start_ns", "end_ns"}]} of the last run
EXPORT(lite_wasm_times) char* lite_wasm_times(const lite_program* p) {
  Text out;
  lite_memory_info memory;
  lite_program_memory(p, &memory);
  out.add("{\"run_ns\": %lld, \"arena_bytes\": %zu, \"packed_bytes\": %zu, \"weight_bytes\": %zu, ",
          static_cast<long long>(memory.run_ns), memory.arena_bytes, memory.packed_bytes,
          memory.weight_bytes);
  out.add("\"threads\": %d, \"steps\": [", lite_program_threads(p));
  for (int i = 0; i < lite_program_num_steps(p); ++i) {
    lite_step_info step;
    lite_program_step(p, i, &step);
    const char* const names[] = {step.name, step.op, step.kernel, step.variant};
    const char* const keys[] = {"{\"name\": ", ", \"op\": ", ", \"kernel\": ", ", \"variant\": "};
    if (i) out.add(", ");
    for (int k = 0; k < 4; ++k) {
      out.add("%s", keys[k]);
      out.add_json(names[k]);
    }
    out.add(", \"start_ns\": %lld, \"end_ns\": %lld}", static_cast<long long>(step.start_ns),
            static_cast<long long>(step.end_ns));
  }
  out.add("]}");
  return finished(out);
}

}  // extern "C"
