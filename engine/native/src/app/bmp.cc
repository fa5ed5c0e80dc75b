// BMP, uncompressed: 1, 4 and 8 bits with a palette, 24 and 32 bits.
#include "image.h"

namespace lite::app {

namespace {

uint32_t little(Bytes file, size_t at, int count) {
  uint32_t value = 0;
  if (at > file.size || file.size - at < static_cast<size_t>(count)) return 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | file.data[at + i];
  return value;
}

}  // namespace

const char* decode_bmp(Bytes file, Image* out) {
  const uint32_t pixels = little(file, 10, 4), header = little(file, 14, 4);
  if (file.size < 54 || header < 40 || header > 256) return "is a BMP image of a kind that is not read";
  const int64_t width = static_cast<int32_t>(little(file, 18, 4));
  const int64_t signed_height = static_cast<int32_t>(little(file, 22, 4));
  const int64_t height = signed_height < 0 ? -signed_height : signed_height;
  const int bits = static_cast<int>(little(file, 28, 2));
  const uint32_t compression = little(file, 30, 4);
  // Compression 3 gives masks, which are those of plain pixels or refused.
  const bool masks = compression == 3 && bits == 32 && little(file, 54, 4) == 0xFF0000 &&
                     little(file, 58, 4) == 0xFF00 && little(file, 62, 4) == 0xFF;
  if ((compression != 0 && !masks) ||
      (bits != 1 && bits != 4 && bits != 8 && bits != 24 && bits != 32))
    return "is a BMP image of a kind that is not read";
  if (width < 1 || height < 1 || width > kMaxPixels / height) return "has a size that is out of reach";
  const size_t stride = (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  if (pixels > file.size || (file.size - pixels) / stride < static_cast<size_t>(height))
    return "is cut off";
  const size_t palette = 14 + size_t{header};
  uint32_t colours = little(file, 46, 4);
  if (!colours || colours > 256) colours = 256;
  if (!out->make(width, height)) return "does not fit in memory";
  for (int y = 0; y < out->height; ++y) {
    const int from = signed_height < 0 ? y : out->height - 1 - y;
    const uint8_t* row = file.data + pixels + stride * static_cast<size_t>(from);
    for (int x = 0; x < out->width; ++x) {
      uint8_t* to = out->at(x, y);
      if (bits >= 24) {
        const uint8_t* p = row + static_cast<size_t>(x) * (bits / 8);
        for (int c = 0; c < 3; ++c) to[c] = p[2 - c];
        continue;
      }
      const size_t bit = static_cast<size_t>(x) * bits;
      const uint32_t index = row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
      const uint32_t colour = index < colours ? little(file, palette + 4 * size_t{index}, 4) : 0;
      for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(colour >> (16 - 8 * c));
    }
  }
  return nullptr;
}

}  // namespace lite::app
