// The stages of a pipeline, one after the other over the pictures under work.
#include <stdio.h>
#include <time.h>

#include <algorithm>

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

// Kept from call to call.
struct Buffers {
  Array<uint8_t> input, one;
  Array<Placement> placed;
  Array<View*> order;
};

// One picture of a batch out of an output.
bool part_of(const lite_array& whole, int64_t batch, int64_t index, lite_array* part) {
  *part = whole;
  if (batch == 1) return true;
  if (whole.rank < 1 || whole.dims[0] != batch || whole.bytes % static_cast<size_t>(batch)) return false;
  part->dims[0] = 1;
  part->bytes = whole.bytes / static_cast<size_t>(batch);
  part->data = static_cast<const uint8_t*>(whole.data) + part->bytes * static_cast<size_t>(index);
  return true;
}

// What the model says of one picture.
bool read_one(const Model& m, int model, const lite_array* out, int count, int64_t index, const Placement& placed,
              View* view, char* error, size_t bytes) {
  Outputs outputs;
  for (int i = 0; i < count; ++i) {
    lite_array part;
    if (!part_of(out[i], m.batch, index, &part))
      return say(error, bytes, "%s: output %d has no batch of %lld", m.name, i, static_cast<long long>(m.batch));
    Values* v = make<Values>();
    if (!v || !outputs.list.push(v)) {
      destroy(v);
      return say(error, bytes, "%s: does not fit in memory", m.name);
    }
    if (const char* why = v->read(part, m.outputs[i])) return say(error, bytes, "%s: %s", m.name, why);
  }
  Answer* answer = make<Answer>();
  if (!answer) return say(error, bytes, "%s: does not fit in memory", m.name);
  answer->model = model;
  view->add(answer);
  const char* why = read_answer({outputs.list, m.reading, placed}, answer);
  return why ? say(error, bytes, "%s: %s", m.name, why) : true;
}

// One model on as many pictures as it takes at once, or fewer: what is left of the input, which is `width` wide, is
// zero.
bool look(App* app, Stage* stage, View* const* views, size_t pictures, int width, Buffers* room, char* error,
          size_t bytes) {
  const Model& m = *app->models[stage->model];
  const int64_t start = now();
  if (!room->placed.resize(pictures)) return say(error, bytes, "%s: does not fit in memory", m.name);
  if (app->hears) {
    if (const char* why = m.features.apply(app->sound, &room->input)) return say(error, bytes, "%s: %s", m.name, why);
  }
  for (size_t i = 0; !app->hears && i < pictures; ++i) {
    Array<uint8_t>* to = m.batch == 1 ? &room->input : &room->one;
    const char* why = m.preprocess.apply(views[i]->image, width, m.dtype, m.input, to, &room->placed[i]);
    if (why) return say(error, bytes, "%s: %s", m.name, why);
    if (m.batch == 1) break;
    const size_t each = room->one.size();
    if (i == 0) room->input.clear();
    if (!room->input.resize(each * static_cast<size_t>(m.batch)))
      return say(error, bytes, "%s: does not fit in memory", m.name);
    memcpy(room->input.data() + i * each, room->one.data(), each);
  }
  const Preprocess& p = m.preprocess;
  lite_array in{m.dtype, 4, {m.batch, p.channels(), p.height, width}, room->input.data(), room->input.size()};
  if (p.nhwc) in.dims[1] = p.height, in.dims[2] = width, in.dims[3] = p.channels();
  if (app->hears) in = {1, 3, {1, m.features.frames(), m.features.coefficients}, room->input.data(), room->input.size()};
  lite_array out[LITE_APP_MAX_OUTPUTS] = {};
  const int64_t prepared = now();
  char why_not[400] = "the model failed";
  const int count = app->call(app->user, stage->model, &in, out, why_not, sizeof why_not);
  if (count < 0) return say(error, bytes, "%s: %s", m.name, why_not);
  if (static_cast<size_t>(count) != m.outputs.size())
    return say(error, bytes, "%s: the model has %d outputs, the pipeline says %zu", m.name, count,
               m.outputs.size());
  const int64_t ran = now();
  for (size_t i = 0; i < pictures; ++i)
    if (!read_one(m, stage->model, out, count, static_cast<int64_t>(i), room->placed[i], views[i], error, bytes))
      return false;
  stage->prepare_ns += prepared - start;
  stage->model_ns += ran - prepared;
  stage->read_ns += now() - ran;
  return true;
}

// A model on all pictures. Those that share a batch have inputs of one width and are alike in shape: widest last.
bool look_at_all(App* app, Stage* stage, const Array<View*>& views, Buffers* room, char* error, size_t bytes) {
  const Model& m = *app->models[stage->model];
  const size_t batch = static_cast<size_t>(m.batch);
  Array<View*>& order = room->order;
  order.clear();
  for (View* view : views)
    if (!order.push(view)) return say(error, bytes, "does not fit in memory");
  const auto wide = [](const View* v) { return static_cast<double>(v->image.width) / v->image.height; };
  if (batch > 1)
    std::sort(order.begin(), order.end(), [&](const View* a, const View* b) { return wide(a) < wide(b); });
  for (size_t at = 0, count; at < order.size(); at += count) {
    const int width = m.preprocess.width_for(order[at]->image);
    for (count = 1; count < batch && at + count < order.size(); ++count)
      if (m.preprocess.width_for(order[at + count]->image) != width) break;
    if (!look(app, stage, order.data() + at, count, width, room, error, bytes)) return false;
  }
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
  if (const char* why = !photo.size  ? "is empty or cannot be read"
                        : app->hears ? decode_wav(photo, &app->sound) : decode_image(photo, &app->photo->image))
    return say(error, bytes, "the %s %s", what, why);
  app->decode_ns = now() - start;
  Array<View*> views;
  Buffers room;
  if (!views.push(app->photo)) return say(error, bytes, "does not fit in memory");
  for (Stage& stage : app->stages) {
    const int64_t began = now();
    stage.prepare_ns = stage.model_ns = stage.read_ns = 0;
    stage.items = static_cast<int64_t>(views.size());
    if (stage.kind == Stage::kModel) {
      if (!look_at_all(app, &stage, views, &room, error, bytes)) return false;
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
