// Embeddings: a vector of length 1, and the known vectors that are closest to it by their cosine.
#include <math.h>

#include <algorithm>

#include "reading.h"

namespace lite::app {

namespace {

// Of length 1; a vector of zeros stays as it is. Sums are in double, so that no float overflows.
void to_unit(float* v, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(v[i]) * static_cast<double>(v[i]);
  const double length = sqrt(sum);
  for (int64_t i = 0; i < n && length > 0; ++i) v[i] = static_cast<float>(static_cast<double>(v[i]) / length);
}

}  // namespace

const char* read_gallery(Json::Value from, Reading* out) {
  for (Json::Value row = from.first(); row; row = row.next()) {
    const size_t start = out->gallery.size();
    for (Json::Value v = row.first(); v; v = v.next()) {
      const double number = v.number(INFINITY);
      if (!(fabs(number) < 1e30)) return "read: `gallery` is not a list of vectors";
      if (!out->gallery.push(static_cast<float>(number))) return "does not fit in memory";
    }
    const int64_t size = static_cast<int64_t>(out->gallery.size() - start);
    if (!size || (out->gallery_size && size != out->gallery_size))
      return "read: the vectors of `gallery` do not have one length";
    out->gallery_size = size;
    to_unit(&out->gallery[start], size);
  }
  return nullptr;
}

bool read_vector(const Given& g, Answer* out, const char** why) {
  if (!g.how.named || g.outputs.size() != 1 || g.outputs[0]->whole) return false;
  const Values& v = *g.outputs[0];
  int64_t dims[8];
  if (squeezed(v, dims) != 1 || v.count() < 2) return false;
  if (!out->vector.resize(v.v.size())) return *why = "does not fit in memory", true;
  memcpy(out->vector.data(), v.v.data(), v.v.size() * sizeof(float));
  to_unit(out->vector.data(), v.count());
  if (!g.how.gallery_size) return true;
  if (g.how.gallery_size != v.count()) return *why = "its vector is not as long as those of `gallery`", true;
  Array<Class> all;
  const int64_t known = static_cast<int64_t>(g.how.gallery.size()) / g.how.gallery_size;
  for (int64_t i = 0; i < known; ++i) {
    const float* other = &g.how.gallery[i * g.how.gallery_size];
    double cosine = 0;
    for (int64_t k = 0; k < v.count(); ++k)
      cosine += static_cast<double>(other[k]) * static_cast<double>(out->vector[k]);
    if (!all.push({static_cast<int32_t>(i), static_cast<float>(cosine)}))
      return *why = "does not fit in memory", true;
  }
  const size_t shown = std::min<size_t>(all.size(), static_cast<size_t>(g.how.top));
  std::partial_sort(all.begin(), all.begin() + shown, all.end(), [](const Class& a, const Class& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  all.cut(shown);
  out->classes.swap(all);
  return true;
}

}  // namespace lite::app
