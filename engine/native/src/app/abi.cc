// The C interface of pipelines.
#include <stdio.h>

#include "app.h"
#include "runtime/lite_file.h"

using namespace lite::app;
using lite::opencl::say;

namespace {

// But for dims of 1, which features may have more or fewer of.
bool same_dims(const lite_tensor_info& a, const lite_array& b) {
  int i = 0, k = 0;
  for (;;) {
    while (i < a.rank && a.dims[i] == 1) ++i;
    while (k < b.rank && b.dims[k] == 1) ++k;
    if (i == a.rank || k == b.rank) return i == a.rank && k == b.rank;
    if (a.dims[i++] != b.dims[k++]) return false;
  }
}

// Where a program's only input lies; null for another input than `in`.
void* place_of(lite_program* p, const lite_array& in) {
  lite_tensor_info info;
  if (lite_program_num_inputs(p) != 1) return nullptr;
  const int input = lite_program_input(p, 0);
  const bool same = !lite_program_tensor(p, input, &info) && info.dtype == in.dtype && info.bytes == in.bytes &&
                    same_dims(info, in);
  return same ? lite_program_data(p, input) : nullptr;
}

}  // namespace

int lite::app::run_program(lite_program* p, const lite_array* in, lite_array* out, char* error, size_t bytes) {
  void* data = place_of(p, *in);
  if (!data) return say(error, bytes, "no program of the model has the input that the pipeline prepares"), -1;
  memcpy(data, in->data, in->bytes);
  if (lite_program_run(p, error, bytes)) return -1;
  const int count = lite_program_num_outputs(p);
  if (count > LITE_APP_MAX_OUTPUTS) return say(error, bytes, "it has too many outputs"), -1;
  for (int i = 0; i < count; ++i) {
    lite_tensor_info info;
    const int tensor = lite_program_output(p, i);
    lite_program_tensor(p, tensor, &info);
    out[i] = {info.dtype, info.rank, {}, lite_program_data(p, tensor), info.bytes};
    memcpy(out[i].dims, info.dims, sizeof out[i].dims);
  }
  return count;
}

struct lite_app : App {};

namespace {

// A bundle's models: each file of it is opened once, each model has a program of its own, and one for each further
// width that it takes.
struct Programs {
  struct One {
    lite_file* file;
    lite_program* program;
    bool owner;  // of the file
  };
  struct Sized {
    size_t model;
    lite_file* file;  // a part of the model's
    lite_program* program;
  };
  Array<One> list;
  Array<Sized> sized;
};

void release(void* owned) {
  Programs* p = static_cast<Programs*>(owned);
  for (auto& one : p->list) lite_program_free(one.program);
  for (auto& one : p->sized) {
    lite_program_free(one.program);
    lite_file_close(one.file);
  }
  for (auto& one : p->list)
    if (one.owner) lite_file_close(one.file);
  destroy(p);
}

int run(void* user, int model, const lite_array* in, lite_array* out, char* error, size_t bytes) {
  const Programs* programs = static_cast<const Programs*>(user);
  lite_program* p = programs->list[model].program;
  for (const auto& one : programs->sized)
    if (one.model == static_cast<size_t>(model) && !place_of(p, *in)) p = one.program;
  return run_program(p, in, out, error, bytes);
}

// The programs of a model for its further widths: sections SIZE.0, SIZE.1, ... of its file, the narrowest first.
bool open_widths(Programs* programs, size_t model, size_t count, const lite_options* options, char* error,
                 size_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    char tag[32];
    snprintf(tag, sizeof tag, "SIZE.%zu", i);
    lite_file* part = lite::open_part(programs->list[model].file, tag, error, bytes);
    if (!part) return false;
    if (!programs->sized.push({model, part, nullptr})) {
      lite_file_close(part);
      return say(error, bytes, "out of memory");
    }
    lite_program* p = lite_file_program(part, nullptr, options, error, bytes);
    if (!p) return false;
    programs->sized[programs->sized.size() - 1].program = p;
  }
  return true;
}

bool open_models(App* app, lite_file* file, const lite_options* options, char* error, size_t bytes) {
  Programs* programs = make<Programs>();
  if (!programs) return say(error, bytes, "out of memory");
  app->owned = app->user = programs;
  app->release = release;
  app->call = run;
  for (Json::Value v = app->config.root()["models"].first(); v; v = v.next()) {
    const char* tag = v["section"].text();
    Programs::One one{nullptr, nullptr, true};
    int seen = 0;
    for (Json::Value w = app->config.root()["models"].first(); seen < static_cast<int>(programs->list.size());
         w = w.next(), ++seen)
      if (strcmp(w["section"].text(), tag) == 0) one = {programs->list[seen].file, nullptr, false};
    if (!one.file) one.file = lite::open_part(file, tag, error, bytes);
    if (!one.file || !programs->list.push(one)) return false;
    lite_program* p = lite_file_program(one.file, nullptr, options, error, bytes);
    if (!p) return false;
    const size_t model = programs->list.size() - 1, widths = app->models[model]->preprocess.widths.size();
    programs->list[model].program = p;
    if (widths > 1 && !open_widths(programs, model, widths - 1, options, error, bytes)) return false;
  }
  return true;
}

lite_app* failed(lite_app* app, const char* why, char* error, size_t bytes) {
  if (why) say(error, bytes, "the pipeline: %s", why);
  destroy(app);
  return nullptr;
}

}  // namespace

extern "C" {

lite_app* lite_app_make(const char* json, size_t size, lite_model_call call, void* user, char* error,
                        size_t bytes) {
  lite_app* app = make<lite_app>();
  if (!app) return failed(app, "out of memory", error, bytes);
  if (const char* why = read_pipeline(app, json, size)) return failed(app, why, error, bytes);
  app->call = call;
  app->user = user;
  return app;
}

lite_app* lite_app_open(lite_file* file, const lite_options* options, char* error, size_t bytes) {
  size_t size;
  const char* json = static_cast<const char*>(lite_file_section(file, "PIPE", &size));
  if (!json) return failed(nullptr, "the file holds none, but a single model", error, bytes);
  lite_app* app = lite_app_make(json, size, nullptr, nullptr, error, bytes);
  if (app && !open_models(app, file, options, error, bytes)) return failed(app, nullptr, error, bytes);
  return app;
}

void lite_app_free(lite_app* app) { destroy(app); }

int lite_app_run(lite_app* app, const void* photo, size_t size, char* error, size_t bytes) {
  return run_pipeline(app, {static_cast<const uint8_t*>(photo), size}, error, bytes) ? 0 : 1;
}

const char* lite_app_answer(lite_app* app, int times) {
  if (!app->photo || app->photo->answers == nullptr) return nullptr;
  write_answer(app, times != 0);
  return app->answer.failed ? nullptr : app->answer.text();
}

const void* lite_app_drawn(lite_app* app, size_t* bytes) {
  Image picture;
  if (!app->photo || app->hears || !draw_answer(*app, &picture) || !encode_png(picture, &app->drawn)) return nullptr;
  *bytes = app->drawn.size();
  return app->drawn.data();
}

uint8_t* lite_image_decode(const void* file, size_t size, int32_t* width, int32_t* height, char* error,
                           size_t bytes) {
  Image image;
  if (const char* why = decode_image({static_cast<const uint8_t*>(file), size}, &image))
    return say(error, bytes, "the image %s", why), nullptr;
  uint8_t* out = static_cast<uint8_t*>(malloc(image.pixels.size()));
  if (!out) return say(error, bytes, "out of memory"), nullptr;
  memcpy(out, image.pixels.data(), image.pixels.size());
  *width = image.width;
  *height = image.height;
  return out;
}

}  // extern "C"
