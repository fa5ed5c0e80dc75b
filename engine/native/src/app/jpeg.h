// A JPEG file between its two halves: what the markers and the entropy code say (jpeg.cc, jpeg_scan.cc), and
// the pixels that follow (jpeg_pixels.cc).
#pragma once

#include "image.h"

namespace lite::app::jpeg {

// Ten are usual; every bit of every band of three components would take fewer.
constexpr int kMostScans = 100;

struct Huffman {
  bool given = false;
  uint8_t values[256];
  int32_t first[18], last[18];  // codes of each length; last < first where there are none
  int32_t offset[18];           // of the first code's value
};

struct Component {
  int id, h, v, table;  // sampling factors, quantisation table
  int dc, ac;           // Huffman tables of the scan
  int32_t predicted;    // DC of the block before
  int columns, rows;    // blocks that hold samples
  int wide, high;       // blocks stored: whole MCUs
  int samples_wide, samples_high;
  size_t first;         // its first block in `Decoder::blocks`
};

struct Decoder {
  Bytes file;
  size_t at = 2;
  int width = 0, height = 0, components = 0, h_max = 1, v_max = 1, restart = 0;
  int scans = 0;
  bool progressive = false;
  int adobe = -1, orientation = 1;
  uint16_t quant[4][64] = {};
  bool quant_given[4] = {};
  Huffman dc[4], ac[4];
  Component component[3];
  Array<int16_t> blocks;  // 64 coefficients each, in natural order

  int16_t* block(const Component& c, int x, int y) {
    return &blocks[(c.first + static_cast<size_t>(y) * c.wide + x) * 64];
  }
};

extern const uint8_t kZigzag[64];

// One scan: its header at `d->at` (after the length), then its entropy-coded data. Null, or why not.
const char* read_scan(Decoder* d, Bytes header);
// Inverse DCT, upsampling and colours, with libjpeg's integers (its "islow" and "fancy").
const char* to_pixels(Decoder* d, Image* out);

}  // namespace lite::app::jpeg
