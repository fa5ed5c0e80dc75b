// lite_outputs_read: the readings without a pipeline around them. The JSON is for Python, which names classes in the
// person's language: numbers in full precision, the classes of a mask as runs.
#include <math.h>

#include "app.h"

using namespace lite::app;
using lite::opencl::say;
using lite::opencl::Text;

namespace {

void put_number(Text* out, float number, const char* before = "") {
  if (isfinite(number)) out->add("%s%.9g", before, static_cast<double>(number));
  else out->add("%snull", before);
}

void put_numbers(Text* out, const char* name, const float* numbers, size_t count) {
  out->add(", \"%s\": [", name);
  for (size_t i = 0; i < count; ++i) put_number(out, numbers[i], i ? ", " : "");
  out->add("]");
}

void put_found(Text* out, const View& picture, const Answer& a, const Found& f) {
  out->add("{\"index\": %d", f.index);
  put_numbers(out, "score", &f.score, 1);
  put_numbers(out, "box", f.box, 4);
  if (f.slanted) put_numbers(out, "corners", f.corners, 8);
  if (f.num_points) {
    out->add(", \"keypoints\": [");
    for (int32_t k = 0; k < f.num_points; ++k) {
      const Keypoint& p = a.points[f.first_point + k];
      put_number(out, p.x, k ? ", [" : "[");
      put_number(out, p.y, ", ");
      put_number(out, p.score, ", ");
      out->add("]");
    }
    out->add("]");
  }
  if (f.shape >= 0 && picture.image.width) write_mask(out, picture, picture, a, f);
  out->add("}");
}

void put_mask(Text* out, const Answer& a) {
  out->add(", \"mask\": {\"size\": [%d, %d], \"runs\": [", a.mask_h, a.mask_w);
  for (size_t i = 0; i < a.mask.size();) {
    const size_t start = i;
    while (i < a.mask.size() && a.mask[i] == a.mask[start]) ++i;
    out->add(start ? ", %d, %zu" : "%d, %zu", a.mask[start], i - start);
  }
  out->add("]}");
}

// RGB in base64 (RFC 4648).
void put_image(Text* out, const Answer& a) {
  const Image& image = a.image;
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  out->add(", \"image\": {\"size\": [%d, %d], \"grey\": %s, \"pixels\": \"", image.height, image.width,
           a.grey ? "true" : "false");
  for (size_t i = 0; i < image.pixels.size(); i += 3) {  // whole pixels: nothing to fill up
    const uint32_t v = uint32_t{image.pixels[i]} << 16 | image.pixels[i + 1] << 8 | image.pixels[i + 2];
    const char four[4] = {kDigits[v >> 18], kDigits[v >> 12 & 63], kDigits[v >> 6 & 63], kDigits[v & 63]};
    out->add_bytes(four, 4);
  }
  out->add("\"}");
}

void put_answer(Text* out, const View& picture, const Answer& a) {
  out->add("{\"kind\": \"%s\", \"classes\": [", kind_name(a.kind));
  for (size_t i = 0; i < a.classes.size(); ++i) {
    out->add(i ? ", [%d" : "[%d", a.classes[i].index);
    put_number(out, a.classes[i].score, ", ");
    out->add("]");
  }
  out->add("], \"found\": [");
  for (size_t i = 0; i < a.found.size(); ++i) {
    if (i) out->add(", ");
    put_found(out, picture, a, a.found[i]);
  }
  out->add("]");
  if (a.kind == Kind::kVector) put_numbers(out, "vector", a.vector.data(), a.vector.size());
  if (a.kind == Kind::kMask) put_mask(out, a);
  if (a.kind == Kind::kImage) put_image(out, a);
  out->add("}");
}

struct Read {
  Json config;
  Reading reading;
  Placement placed;
  View picture;  // its size alone; 0 where it is not known
  Array<Values*> list;
  Answer answer;
  ~Read() {
    for (Values* v : list) destroy(v);
  }
};

const char* place(Json::Value from, Placement* out) {
  int64_t n[6] = {1, 1, 1, 1, 0, 0};
  Json::Value v = from.first();
  for (int i = 0; i < 6 && from; ++i, v = v.next())
    if (!v || !v.whole(i < 4 ? 1 : -65535, 65535, &n[i])) return "`placed` is not six whole numbers";
  *out = {static_cast<int>(n[0]), static_cast<int>(n[1]), static_cast<int>(n[2]),
          static_cast<int>(n[3]), static_cast<int>(n[4]), static_cast<int>(n[5])};
  return nullptr;
}

const char* size(Json::Value from, Image* out) {
  int64_t side[2] = {0, 0};
  Json::Value v = from.first();
  for (int i = 0; i < 2 && from; ++i, v = v.next())
    if (!v || !v.whole(1, 65535, &side[i])) return "`picture` is not a width and a height";
  if (side[0] * side[1] > kMaxPixels) return "`picture` is too large";
  out->width = static_cast<int>(side[0]);
  out->height = static_cast<int>(side[1]);
  return nullptr;
}

const char* read(const char* json, size_t bytes, const lite_array* outputs, int count, Read* r, Text* out) {
  size_t at;
  if (!r->config.read(json, bytes, &at)) return "its JSON is damaged";
  const Json::Value root = r->config.root();
  if (const char* why = r->reading.read(root["read"], root["labels"])) return why;
  if (const char* why = place(root["placed"], &r->placed)) return why;
  if (const char* why = size(root["picture"], &r->picture.image)) return why;
  if (const Json::Value pixels = root["pixels"]) {
    Preprocess input;
    if (const char* why = input.read(pixels)) return why;
    r->reading.pixels = input.pixels();
  }
  Json::Value scale = root["outputs"].first();
  for (int i = 0; i < count; ++i, scale = scale.next()) {
    Quant quant;
    if (const char* why = quant.read(scale)) return why;
    Values* v = make<Values>();
    if (!v || !r->list.push(v)) {
      destroy(v);
      return "does not fit in memory";
    }
    if (const char* why = v->read(outputs[i], quant)) return why;
  }
  if (const char* why = read_answer({r->list, r->reading, r->placed}, &r->answer)) return why;
  put_answer(out, r->picture, r->answer);
  return out->failed ? "does not fit in memory" : nullptr;
}

}  // namespace

extern "C" char* lite_outputs_read(const char* json, size_t bytes, const lite_array* outputs, int count,
                                   char* error, size_t error_bytes) {
  Text out;
  Read* r = make<Read>();
  const char* why = r ? read(json, bytes, outputs, count, r, &out) : "does not fit in memory";
  destroy(r);
  if (!why) return out.data;
  out.release();
  say(error, error_bytes, "%s", why);
  return nullptr;
}
