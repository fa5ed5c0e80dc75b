#include "reading.h"

#include <math.h>
#include <stdio.h>

namespace lite::app {

namespace {

struct Row {
  const char* name;
  Kind kind;
  bool (*read)(const Given&, Answer*, const char**);
};
// In the order in which they are tried.
const Row kRows[] = {{"text", Kind::kText, read_text},
                     {"top", Kind::kTop, read_top},
                     {"boxes", Kind::kBoxes, read_boxes},
                     {"mask", Kind::kMask, read_mask},
                     {"regions", Kind::kRegions, read_regions},
                     {"keypoints", Kind::kKeypoints, read_keypoints},
                     {"vector", Kind::kVector, read_vector},
                     {"image", Kind::kImage, read_image}};

const char kNoColor[] = "read: `colors` is not a list of red, green and blue from 0 to 255";

bool share(Json::Value from, double* out) {
  *out = from.number(*out);
  return *out >= 0 && *out <= 1;
}

}  // namespace

const char* kind_name(Kind kind) {
  for (const Row& row : kRows)
    if (row.kind == kind) return row.name;
  return "values";
}

const char* Reading::read(Json::Value from, Json::Value names) {
  if (const char* wanted = from["kind"].text(nullptr)) {
    for (const Row& row : kRows)
      if (strcmp(row.name, wanted) == 0) named = true, kind = row.kind;
    if (!named) return "read: `kind` is not text, top, boxes, mask, regions, keypoints, vector or image";
  }
  if (!share(from["threshold"], &threshold) || !share(from["map_threshold"], &map_threshold) ||
      !share(from["box_threshold"], &box_threshold))
    return "read: a threshold is not a number from 0 to 1";
  if (const char* why = nms.read(from)) return why;
  unclip = from["unclip"].number(1.5);
  if (!(unclip >= 0 && unclip <= 10)) return "read: `unclip` is not a number from 0 to 10";
  if (!from["top"].whole(1, 1000, &top)) return "read: `top` is not a whole number from 1 on";
  normalised = from["softmax"].yes();
  if (!from["points"].whole(1, 1024, &keypoints)) return "read: `points` is not a whole number from 1 to 1024";
  if (const char* why = heads.read(from)) return why;
  if (const char* why = read_gallery(from["gallery"], this)) return why;
  const Json::Value own = from["colors"] ? from["colors"] : from["colours"];  // in older files
  for (Json::Value color = own.first(); color; color = color.next()) {
    int64_t level = 0;
    for (Json::Value v = color.first(); v; v = v.next())
      if (!v.whole(0, 255, &level) || !colors.push(static_cast<uint8_t>(level))) return kNoColor;
    if (color.count() != 3) return kNoColor;
  }
  for (Json::Value v = names.first(); v; v = v.next())
    if (!label.push(v.text())) return "does not fit in memory";
  num_labels = static_cast<int>(label.size());
  return nullptr;
}

const char* Reading::name(int index, char* room, size_t bytes) const {
  if (index >= 0 && index < num_labels) return label[index];
  snprintf(room, bytes, "class %d", index);
  return room;
}

const char* read_answer(const Given& g, Answer* out) {
  for (const Values* v : g.outputs) {
    if (v->v.empty()) return nullptr;
    for (const float x : v->v)
      if (x != x) return nullptr;  // nothing can be said of NaN
  }
  for (const Row& row : kRows) {
    if (g.how.named ? row.kind != g.how.kind : row.kind == Kind::kImage) continue;
    const char* why = nullptr;
    out->kind = row.kind;
    if (row.read(g, out, &why)) return why;
  }
  out->kind = Kind::kValues;
  return nullptr;
}

}  // namespace lite::app
