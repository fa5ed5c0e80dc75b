// A pipeline's JSON. It comes from a file: nothing in it is trusted.
#include <stdio.h>

#include "app.h"

namespace lite::app {

namespace {

constexpr int kMaxModels = 16, kMaxStages = 64;

const char* read_model(Json::Value from, bool hears, Model* m) {
  m->name = from["name"].text();
  if (!*m->name || strlen(m->name) > 60) return "a model has no `name`, or one of more than 60 bytes";
  const char* dtype = from["input"]["dtype"].text("f32");
  m->dtype = strcmp(dtype, "f32") == 0 ? 1 : strcmp(dtype, "i8") == 0 ? 5 : strcmp(dtype, "u8") == 0 ? 6 : 0;
  if (!m->dtype) return "a model's input is neither f32, i8 nor u8";
  if (const char* why = m->input.read(from["input"])) return why;
  if (!from["input"]["batch"].whole(1, 256, &m->batch)) return "a model's `batch` is not 1 to 256";
  for (Json::Value v = from["outputs"].first(); v; v = v.next()) {
    Quant q;
    if (const char* why = q.read(v)) return why;
    if (!m->outputs.push(q)) return "does not fit in memory";
  }
  if (m->outputs.empty() || m->outputs.size() > LITE_APP_MAX_OUTPUTS) return "a model has no `outputs`, or too many";
  const char* why = hears ? m->features.read(from["features"]) : m->preprocess.read(from["preprocess"]);
  if (why) return why;
  if (!hears && (why = m->preprocess.read_widths(from["widths"]))) return why;
  if (hears && m->batch != 1) return "a model that hears takes one sound at a time";
  if (hears && m->dtype != 1) return "a model that hears has an input of f32";
  m->reading.pixels = m->preprocess.pixels();
  return m->reading.read(from["read"], from["labels"]);
}

int find(const App& app, const char* name) {
  for (size_t i = 0; i < app.models.size(); ++i)
    if (strcmp(app.models[i]->name, name) == 0) return static_cast<int>(i);
  return -1;
}

const char* read_stage(const App& app, Json::Value from, Stage* s) {
  if (const char* model = from["model"].text(nullptr)) {
    s->kind = Stage::kModel;
    s->model = find(app, model);
    if (s->model < 0) return "a stage names a model that is not there";
    snprintf(s->name, sizeof s->name, "%s", model);
    return nullptr;
  }
  if (const Json::Value crop = from["crop"]) {
    s->kind = Stage::kCrop;
    s->grow = crop["grow"].number(0);
    s->limit = 100;
    snprintf(s->name, sizeof s->name, "crop");
    if (!(s->grow >= 0 && s->grow <= 4)) return "crop: `grow` is not a number from 0 to 4";
    return crop["limit"].whole(1, 10000, &s->limit) ? nullptr : "crop: `limit` is not 1 to 10000";
  }
  const Json::Value turn = from["turn"];
  if (!turn) return "a stage is none of model, crop and turn";
  s->kind = Stage::kTurn;
  s->label = turn["label"].text();
  s->above = turn["above"].number(0.9);
  s->model = find(app, turn["model"].text());
  snprintf(s->name, sizeof s->name, "turn");
  return s->model < 0 ? "turn: `model` names a model that is not there" : nullptr;
}

}  // namespace

const char* read_pipeline(App* app, const char* json, size_t bytes) {
  size_t at;
  if (!app->config.read(json, bytes, &at)) return "its JSON is damaged";
  const Json::Value root = app->config.root();
  if (root["format"].number() != 1) return "its `format` is not 1; use a newer runtime";
  app->hears = strcmp(root["input"].text("image"), "sound") == 0;
  if (!app->hears && strcmp(root["input"].text("image"), "image") != 0)
    return "its `input` is neither image nor sound";
  for (Json::Value v = root["models"].first(); v; v = v.next()) {
    Model* m = make<Model>();
    if (!m || app->models.size() == kMaxModels || !app->models.push(m)) {
      destroy(m);
      return "there are too many models";
    }
    if (const char* why = read_model(v, app->hears, m)) return why;
    for (size_t i = 0; i + 1 < app->models.size(); ++i)
      if (strcmp(app->models[i]->name, m->name) == 0) return "two models have one name";
  }
  for (Json::Value v = root["stages"].first(); v; v = v.next()) {
    Stage s{};
    if (const char* why = read_stage(*app, v, &s)) return why;
    if (app->hears && s.kind != Stage::kModel) return "only models work on a sound";
    if (app->stages.size() == kMaxStages || !app->stages.push(s)) return "there are too many stages";
  }
  if (app->models.empty() || app->stages.empty()) return "it has no `models` or no `stages`";
  return app->stages[0].kind == Stage::kModel ? nullptr : "its first stage runs no model";
}

}  // namespace lite::app
