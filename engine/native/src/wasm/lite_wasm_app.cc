// Pipelines for a page: the bytes of an image or sound in, the answer as JSON and as a drawn image out.
#include "app/app.h"
#include "lite_runtime.h"
#include "wasm_exports.h"

namespace {

int run(void* program, int, const lite_array* in, lite_array* out, char* error, size_t bytes) {
  return lite::app::run_program(static_cast<lite_program*>(program), in, out, error, bytes);
}

}  // namespace

extern "C" {

// The pipeline of a file, which must stay open: nullptr, and lite_wasm_error says why.
EXPORT(lite_wasm_app_open) lite_app* lite_wasm_app_open(lite_file* file) {
  return lite_app_open(file, nullptr, lite::wasm::error_text, sizeof lite::wasm::error_text);
}
// The pipeline of a single model, which a program runs; `json` is what the file says of it.
EXPORT(lite_wasm_app_make) lite_app* lite_wasm_app_make(lite_program* program, const char* json, size_t bytes) {
  return lite_app_make(json, bytes, run, program, lite::wasm::error_text, sizeof lite::wasm::error_text);
}
EXPORT(lite_wasm_app_run) int lite_wasm_app_run(lite_app* app, const void* input, size_t bytes) {
  return lite_app_run(app, input, bytes, lite::wasm::error_text, sizeof lite::wasm::error_text);
}
// JSON with the stages' times, the pipeline's until the next call; nullptr before a run.
EXPORT(lite_wasm_app_answer) const char* lite_wasm_app_answer(lite_app* app) { return lite_app_answer(app, 1); }
// A PNG file, the pipeline's until the next call; nullptr of a sound or without memory.
EXPORT(lite_wasm_app_drawn) const void* lite_wasm_app_drawn(lite_app* app, size_t* bytes) {
  return lite_app_drawn(app, bytes);
}
EXPORT(lite_wasm_app_close) void lite_wasm_app_close(lite_app* app) { lite_app_free(app); }

}  // extern "C"
