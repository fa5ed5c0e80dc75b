#include "image.h"

namespace lite::app {

namespace {

struct Tiff {
  Bytes file;
  bool big;
  uint32_t read(size_t at, int count) const {
    uint32_t value = 0;
    if (at > file.size || file.size - at < static_cast<size_t>(count)) return 0;
    for (int i = 0; i < count; ++i)
      value |= static_cast<uint32_t>(file.data[at + i]) << 8 * (big ? count - 1 - i : i);
    return value;
  }
};

}  // namespace

int exif_orientation(Bytes tiff) {
  if (tiff.size < 8) return 1;
  const bool big = tiff.data[0] == 'M';
  if (memcmp(tiff.data, big ? "MM\0*" : "II*\0", 4) != 0) return 1;
  const Tiff reader{tiff, big};
  const size_t table = reader.read(4, 4);
  const uint32_t entries = reader.read(table, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t at = table + 2 + 12 * size_t{i};
    if (at + 12 > tiff.size) break;
    if (reader.read(at, 2) != 0x112) continue;
    const uint32_t found = reader.read(at + 8, 2);
    return found >= 1 && found <= 8 ? static_cast<int>(found) : 1;
  }
  return 1;
}

bool turn_upright(Image* image, int orientation) {
  if (orientation <= 1 || orientation > 8) return true;
  const bool swapped = orientation >= 5;
  const int w = image->width, h = image->height;
  Image out;
  if (!out.make(swapped ? h : w, swapped ? w : h)) return false;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      int u = swapped ? y : x, v = swapped ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) u = w - 1 - u;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) v = h - 1 - v;
      memcpy(out.at(x, y), image->at(u, v), 3);
    }
  }
  image->width = out.width;
  image->height = out.height;
  image->pixels.swap(out.pixels);
  return true;
}

const char* decode_image(Bytes file, Image* out) {
  int orientation = 1;
  const char* why = "is not a JPEG, PNG or BMP image";
  if (file.size > 3 && memcmp(file.data, "\xff\xd8\xff", 3) == 0)
    why = decode_jpeg(file, out, &orientation);
  else if (file.size > 8 && memcmp(file.data, "\x89PNG\r\n\x1a\n", 8) == 0)
    why = decode_png(file, out, &orientation);
  else if (file.size > 2 && memcmp(file.data, "BM", 2) == 0)
    why = decode_bmp(file, out);
  if (why) return why;
  return turn_upright(out, orientation) ? nullptr : "does not fit in memory";
}

}  // namespace lite::app
