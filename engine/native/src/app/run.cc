// The stages of a pipeline, one after the other over the pictures under work.
#include <stdio.h>
#include <time.h>

#include "app.h"

namespace lite::app {

using opencl::say;

View::~View() {
  while (answers) {
    Answer* next = answers->next;
    destroy(answers);
    answers = next;
  }
}

Answer* View::last() const {
  Answer* a = answers;
  while (a && a->next) a = a->next;
  return a;
}

void View::add(Answer* answer) {
  if (Answer* tail = last()) tail->next = answer;
  else answers = answer;
}

Answer::~Answer() {
  for (Found& f : found) destroy(f.crop);
}

App::~App() {
  destroy(photo);
  for (Model* m : models) destroy(m);
  answer.release();
  if (release) release(owned);
}

namespace {

int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

struct Outputs {
  Array<Values*> list;
  ~Outputs() {
    for (Values* v : list) destroy(v);
  }
};

// One model on one picture.
bool look(App* app, Stage* stage, View* view, Array<uint8_t>* input, char* error, size_t bytes) {
  const Model& m = *app->models[stage->model];
  const int64_t start = now();
  Placement placed;
  const char* why_not_ready = app->hears
                                  ? m.features.apply(app->sound, input)
                                  : m.preprocess.apply(view->image, m.dtype, m.input, input, &placed);
  if (why_not_ready) return say(error, bytes, "%s: %s", m.name, why_not_ready);
  const Preprocess& p = m.preprocess;
  lite_array in{m.dtype, 4, {1, p.channels(), p.height, p.width}, input->data(), input->size()};
  if (p.nhwc) in.dims[1] = p.height, in.dims[2] = p.width, in.dims[3] = p.channels();
  if (app->hears) in = {1, 3, {1, m.features.frames(), m.features.coefficients}, input->data(), input->size()};
  lite_array out[LITE_APP_MAX_OUTPUTS] = {};
  const int64_t prepared = now();
  char why_not[400] = "the model failed";
  const int count = app->call(app->user, stage->model, &in, out, why_not, sizeof why_not);
  if (count < 0) return say(error, bytes, "%s: %s", m.name, why_not);
  if (static_cast<size_t>(count) != m.outputs.size())
    return say(error, bytes, "%s: the model has %d outputs, the pipeline says %zu", m.name, count,
               m.outputs.size());
  const int64_t ran = now();
  Outputs outputs;
  for (int i = 0; i < count; ++i) {
    Values* v = make<Values>();
    if (!v || !outputs.list.push(v)) {
      destroy(v);
      return say(error, bytes, "%s: does not fit in memory", m.name);
    }
    if (const char* why = v->read(out[i], m.outputs[i])) return say(error, bytes, "%s: %s", m.name, why);
  }
  Answer* answer = make<Answer>();
  if (!answer) return say(error, bytes, "%s: does not fit in memory", m.name);
  answer->model = stage->model;
  view->add(answer);
  if (const char* why = read_answer({outputs.list, m.reading, placed}, answer))
    return say(error, bytes, "%s: %s", m.name, why);
  stage->prepare_ns += prepared - start;
  stage->model_ns += ran - prepared;
  stage->read_ns += now() - ran;
  return true;
}

bool cut(const Stage& stage, Array<View*>* views) {
  Array<View*> parts;
  for (View* view : *views) {
    Answer* a = view->last();
    for (size_t i = 0; a && i < a->found.size() && parts.size() < static_cast<size_t>(stage.limit); ++i) {
      Found& f = a->found[i];
      if (f.crop) continue;
      f.crop = cut_out(*view, f, stage.grow);
      if (!f.crop || !parts.push(f.crop)) return false;
    }
  }
  views->swap(parts);
  return true;
}

void turn(const App& app, const Stage& stage, const Array<View*>& views) {
  char room[24];
  for (View* view : views)
    for (Answer* a = view->answers; a; a = a->next)
      if (a->model == stage.model && !a->classes.empty() && a->classes[0].score > stage.above &&
          strcmp(app.models[a->model]->reading.name(a->classes[0].index, room, sizeof room),
                 stage.label) == 0)
        turn_half(view);
}

}  // namespace

bool run_pipeline(App* app, Bytes photo, char* error, size_t bytes) {
  destroy(app->photo);
  app->answer.release();
  const int64_t start = now();
  app->photo = make<View>();
  if (!app->photo) return say(error, bytes, "does not fit in memory");
  const char* what = app->hears ? "sound" : "image";
  if (const char* why = app->hears ? decode_wav(photo, &app->sound) : decode_image(photo, &app->photo->image))
    return say(error, bytes, "the %s %s", what, why);
  app->decode_ns = now() - start;
  Array<View*> views;
  Array<uint8_t> input;
  if (!views.push(app->photo)) return say(error, bytes, "does not fit in memory");
  for (Stage& stage : app->stages) {
    const int64_t began = now();
    stage.prepare_ns = stage.model_ns = stage.read_ns = 0;
    stage.items = static_cast<int64_t>(views.size());
    if (stage.kind == Stage::kModel) {
      for (View* view : views)
        if (!look(app, &stage, view, &input, error, bytes)) return false;
    } else if (stage.kind == Stage::kCrop) {
      if (!cut(stage, &views)) return say(error, bytes, "crop: does not fit in memory");
    } else {
      turn(*app, stage, views);
    }
    stage.nanoseconds = now() - began;
  }
  app->total_ns = now() - start;
  return true;
}

}  // namespace lite::app
