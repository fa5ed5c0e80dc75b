// Pictures: 8-bit RGB, rows from top to bottom without padding.
#pragma once

#include "array.h"

namespace lite::app {

constexpr int64_t kMaxPixels = int64_t{1} << 26;  // as lite_engine/preprocess.py

struct Image {
  int width = 0, height = 0;
  Array<uint8_t> pixels;  // (height, width, 3)

  // Black. False where memory does not suffice or the size is out of reach.
  bool make(int64_t w, int64_t h) {
    if (w < 1 || h < 1 || w > kMaxPixels / h) return false;
    pixels.clear();
    width = static_cast<int>(w);
    height = static_cast<int>(h);
    return pixels.resize(static_cast<size_t>(w * h * 3));
  }
  uint8_t* at(int x, int y) { return &pixels[(static_cast<size_t>(y) * width + x) * 3]; }
  const uint8_t* at(int x, int y) const { return &pixels[(static_cast<size_t>(y) * width + x) * 3]; }
};

struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// JPEG (Huffman, baseline and progressive, grey, YCbCr or RGB), PNG or BMP by its first bytes, turned as its
// EXIF orientation says. Null, or why not.
const char* decode_image(Bytes file, Image* out);

// One format each; `orientation` 1...8 as EXIF counts.
const char* decode_jpeg(Bytes file, Image* out, int* orientation);
const char* decode_png(Bytes file, Image* out, int* orientation);
const char* decode_bmp(Bytes file, Image* out);

// The orientation in a TIFF structure (EXIF 2.3, tag 0x112); 1 where it says none.
int exif_orientation(Bytes tiff);
// Turns or mirrors a picture so that it stands upright. False without memory.
bool turn_upright(Image* image, int orientation);

// A zlib stream (RFC 1950, 1951) of at most `limit` bytes. Null, or why not.
const char* inflate(Bytes stream, size_t limit, Array<uint8_t>* out);

// The picture as a PNG file, not compressed.
bool encode_png(const Image& image, Array<uint8_t>* out);

// Bilinear with a filter as wide as the reduction, in the fixed point of Pillow's resize: the same bytes
// but for one level where Pillow takes columns first.
bool resize(const Image& in, int width, int height, Image* out);

}  // namespace lite::app
