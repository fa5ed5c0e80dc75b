// Outputs that are images: (1,C,H,W), (1,H,W,C) or without the batch, of one or three channels. Their numbers and the
// order of their channels are those of the model's input; floats are 0...1 where that says none, integers are pixels.
#include <math.h>

#include "reading.h"

namespace lite::app {

bool read_image(const Given& g, Answer* out, const char** why) {
  if (g.outputs.size() != 1) return false;
  const Values& v = *g.outputs[0];
  const int64_t* d = v.rank == 4 && v.dims[0] == 1 ? v.dims + 1 : v.dims;
  if (v.rank != 3 && (v.rank != 4 || v.dims[0] != 1)) return false;
  const bool last = d[2] == 1 || d[2] == 3;
  if (!last && d[0] != 1 && d[0] != 3) return false;
  const int64_t h = last ? d[0] : d[1], w = last ? d[1] : d[2], channels = last ? d[2] : d[0];
  if (!out->image.make(w, h)) return *why = "does not fit in memory, or is no image", true;
  out->grey = channels == 1;
  const Pixels& p = g.how.pixels;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      for (int c = 0; c < 3; ++c) {
        const int64_t from = channels == 1 ? 0 : p.bgr ? 2 - c : c;
        const int64_t at = last ? (y * w + x) * channels + from : (from * h + y) * w + x;
        float level = v.v[static_cast<size_t>(at)];
        if (!v.whole) level = level * p.std[from] + p.mean[from];
        level = nearbyintf(level);
        out->image.at(static_cast<int>(x), static_cast<int>(y))[c] =
            static_cast<uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
      }
  return true;
}

}  // namespace lite::app
