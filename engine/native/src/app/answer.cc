// A pipeline's answer as JSON (docs/pipelines.md). Coordinates are pixels of the photo as it stands upright.
#include <math.h>

#include "app.h"

namespace lite::app {

namespace {

using opencl::Text;

// UTF-8 as it is, with what JSON wants escaped.
void put_text(Text* out, const char* text) {
  out->add_bytes("\"", 1);
  for (; *text; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') out->add("\\%c", c);
    else if (c < 0x20) out->add("\\u%04x", c);
    else out->add_bytes(text, 1);
  }
  out->add_bytes("\"", 1);
}

void put_score(Text* out, float score) {
  if (isfinite(score)) out->add("%.6g", static_cast<double>(score));
  else out->add("null");
}

void put_points(Text* out, const View& view, const float* points, int count) {
  for (int i = 0; i < count; ++i) {
    double at[2];
    to_photo(view, static_cast<double>(points[2 * i]) * view.image.width,
             static_cast<double>(points[2 * i + 1]) * view.image.height, at);
    out->add(i ? ", %.2f, %.2f" : "%.2f, %.2f", at[0], at[1]);
  }
}

void put_classes(Text* out, const Reading& how, const Answer& a, const char* score) {
  char room[24];
  for (size_t i = 0; i < a.classes.size(); ++i) {
    out->add(i ? ", {\"label\": " : "{\"label\": ");
    put_text(out, how.name(a.classes[i].index, room, sizeof room));
    out->add(", \"index\": %d, \"%s\": ", a.classes[i].index, score);
    put_score(out, a.classes[i].score);
    out->add("}");
  }
}

void put_answers(Text* out, const App& app, const View& view);

void put_found(Text* out, const App& app, const View& view, const Answer& a) {
  const Reading& how = app.models[a.model]->reading;
  char room[24];
  for (size_t i = 0; i < a.found.size(); ++i) {
    const Found& f = a.found[i];
    out->add(i ? ",\n  {" : "\n  {");
    if (a.kind == Kind::kBoxes) {
      out->add("\"label\": ");
      put_text(out, how.name(f.index, room, sizeof room));
      out->add(", \"index\": %d, ", f.index);
    }
    out->add("\"score\": ");
    put_score(out, f.score);
    out->add(", \"box\": [");
    put_points(out, view, f.box, 2);
    out->add("]");
    if (f.slanted) {
      out->add(", \"corners\": [");
      put_points(out, view, f.corners, 4);
      out->add("]");
    }
    if (f.shape >= 0) write_mask(out, *app.photo, view, a, f);
    if (f.num_points) {
      out->add(", \"keypoints\": [");
      for (int32_t k = 0; k < f.num_points; ++k) {
        const Keypoint& p = a.points[f.first_point + k];
        out->add(k ? ", [" : "[");
        const float at[2] = {p.x, p.y};
        put_points(out, view, at, 1);
        out->add(", ");
        put_score(out, p.score);
        out->add("]");
      }
      out->add("]");
    }
    if (f.crop) {
      out->add(", \"answers\": ");
      put_answers(out, app, *f.crop);
    }
    out->add("}");
  }
}

void put_answers(Text* out, const App& app, const View& view) {
  out->add("{");
  for (const Answer* a = view.answers; a; a = a->next) {
    const Model& m = *app.models[a->model];
    if (a != view.answers) out->add(", ");
    put_text(out, m.name);
    out->add(": {\"kind\": \"%s\"", kind_name(a->kind));
    if (a->kind == Kind::kText) {
      out->add(", \"text\": ");
      put_text(out, a->text.data());
      out->add(", \"confidence\": ");
      put_score(out, a->confidence);
    } else if (a->kind == Kind::kTop || a->kind == Kind::kMask) {
      out->add(", \"items\": [");
      put_classes(out, m.reading, *a, a->kind == Kind::kTop ? "score" : "share");
      out->add("]");
    } else if (a->kind == Kind::kVector) {
      out->add(", \"vector\": [");
      for (size_t i = 0; i < a->vector.size(); ++i) {
        if (i) out->add(", ");
        put_score(out, a->vector[i]);
      }
      out->add("]");
      if (m.reading.gallery_size) {
        out->add(", \"items\": [");
        put_classes(out, m.reading, *a, "score");
        out->add("]");
      }
    } else if (a->kind == Kind::kImage) {
      out->add(", \"width\": %d, \"height\": %d", a->image.width, a->image.height);
    } else if (a->kind == Kind::kBoxes || a->kind == Kind::kRegions || a->kind == Kind::kKeypoints) {
      out->add(", \"items\": [");
      put_found(out, app, view, *a);
      out->add("]");
    }
    out->add("}");
  }
  out->add("}");
}

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void write_answer(App* app, bool times) {
  Text& out = app->answer;
  out.release();
  out.add("{\"pipeline\": ");
  put_text(&out, app->config.root()["name"].text("pipeline"));
  if (app->hears)
    out.add(",\n \"sound\": {\"rate\": %d, \"samples\": %zu},\n \"answers\": ", app->sound.rate,
            app->sound.samples.size());
  else
    out.add(",\n \"image\": {\"width\": %d, \"height\": %d},\n \"answers\": ", app->photo->image.width,
            app->photo->image.height);
  put_answers(&out, *app, *app->photo);
  if (times) {
    out.add(",\n \"times\": {\"total_ms\": %.3f, \"decode_ms\": %.3f, \"stages\": [",
            ms(app->total_ns), ms(app->decode_ns));
    for (size_t i = 0; i < app->stages.size(); ++i) {
      const Stage& s = app->stages[i];
      out.add(i ? ", {\"name\": " : "{\"name\": ");
      put_text(&out, s.name);
      out.add(", \"pictures\": %lld, \"ms\": %.3f", static_cast<long long>(s.items), ms(s.nanoseconds));
      if (s.kind == Stage::kModel)
        out.add(", \"prepare_ms\": %.3f, \"model_ms\": %.3f, \"read_ms\": %.3f", ms(s.prepare_ns),
                ms(s.model_ns), ms(s.read_ns));
      out.add("}");
    }
    out.add("]}");
  }
  out.add("}\n");
}

}  // namespace lite::app
