// JPEG's markers (ITU-T T.81, annex B).
#include "jpeg.h"

namespace lite::app {

namespace jpeg {

const uint8_t kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                             12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                             35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                             58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

namespace {

int two(const uint8_t* p) { return p[0] << 8 | p[1]; }

bool read_quant(Decoder* d, Bytes b) {
  while (b.size) {
    const int wide = b.data[0] >> 4, id = b.data[0] & 15;
    const size_t need = wide ? 129 : 65;
    if (wide > 1 || id > 3 || b.size < need) return false;
    for (int i = 0; i < 64; ++i)
      d->quant[id][kZigzag[i]] =
          static_cast<uint16_t>(wide ? two(b.data + 1 + 2 * i) : b.data[1 + i]);
    d->quant_given[id] = true;
    b = {b.data + need, b.size - need};
  }
  return true;
}

bool read_huffman(Decoder* d, Bytes b) {
  while (b.size) {
    if (b.size < 17) return false;
    const int kind = b.data[0] >> 4, id = b.data[0] & 15;
    if (kind > 1 || id > 3) return false;
    Huffman& table = kind ? d->ac[id] : d->dc[id];
    size_t total = 0;
    int32_t code = 0;
    for (int length = 1; length <= 16; ++length) {
      const int count = b.data[length];
      table.offset[length] = static_cast<int32_t>(total);
      table.first[length] = code;
      table.last[length] = code + count - 1;
      code = (code + count) << 1;
      total += count;
      if (table.last[length] >= 1 << length) return false;
    }
    if (total > 256 || b.size < 17 + total) return false;
    memcpy(table.values, b.data + 17, total);
    table.given = true;
    b = {b.data + 17 + total, b.size - 17 - total};
  }
  return true;
}

const char* read_frame(Decoder* d, Bytes b) {
  if (b.size < 6 || d->components) return "is damaged (SOF)";
  if (b.data[0] != 8) return "is a JPEG image of more than 8 bits, which is not read";
  d->height = two(b.data + 1);
  d->width = two(b.data + 3);
  const int count = b.data[5];
  if (count == 4) return "is a CMYK image; convert it to RGB";
  if ((count != 1 && count != 3) || b.size < 6 + 3 * static_cast<size_t>(count)) return "is damaged (SOF)";
  if (!d->width || !d->height || d->width > kMaxPixels / d->height)
    return "has a size that is out of reach";
  for (int i = 0; i < count; ++i) {
    const uint8_t* p = b.data + 6 + 3 * i;
    Component& c = d->component[i];
    c = {};
    c.id = p[0];
    c.h = p[1] >> 4;
    c.v = p[1] & 15;
    c.table = p[2];
    if (c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.table > 3) return "is damaged (SOF)";
    if (count == 1) c.h = c.v = 1;  // a scan of one component has no larger units
    if (c.h > d->h_max) d->h_max = c.h;
    if (c.v > d->v_max) d->v_max = c.v;
  }
  const int mcus_wide = (d->width + 8 * d->h_max - 1) / (8 * d->h_max);
  const int mcus_high = (d->height + 8 * d->v_max - 1) / (8 * d->v_max);
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    Component& c = d->component[i];
    if (d->h_max % c.h || d->v_max % c.v) return "is a JPEG image of a rare kind (sampling factors)";
    c.samples_wide = (d->width * c.h + d->h_max - 1) / d->h_max;
    c.samples_high = (d->height * c.v + d->v_max - 1) / d->v_max;
    c.columns = (c.samples_wide + 7) / 8;
    c.rows = (c.samples_high + 7) / 8;
    c.wide = mcus_wide * c.h;
    c.high = mcus_high * c.v;
    c.first = total;
    total += static_cast<size_t>(c.wide) * c.high;
  }
  // A block takes at least some bits of the file: a tiny file must not fill the memory.
  if (total / 1024 > d->file.size) return "is cut off";
  d->components = count;
  return d->blocks.resize(total * 64) ? nullptr : "does not fit in memory";
}

}  // namespace

}  // namespace jpeg

const char* decode_jpeg(Bytes file, Image* out, int* orientation) {
  using namespace jpeg;
  Decoder* d = make<Decoder>();
  if (!d) return "does not fit in memory";
  d->file = file;
  const char* why = nullptr;
  while (!why) {
    while (d->at < file.size && file.data[d->at] != 0xFF) ++d->at;
    while (d->at < file.size && file.data[d->at] == 0xFF) ++d->at;
    if (d->at >= file.size) break;  // no end marker: what was read is shown
    const int marker = file.data[d->at++];
    if (marker == 0xD9) break;
    if (marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) continue;
    if (file.size - d->at < 2) break;
    const size_t length = static_cast<size_t>(file.data[d->at] << 8 | file.data[d->at + 1]);
    if (length < 2 || length > file.size - d->at) {
      why = "is cut off";
      break;
    }
    const Bytes body{file.data + d->at + 2, length - 2};
    d->at += length;
    if (marker == 0xDB) why = read_quant(d, body) ? nullptr : "is damaged (DQT)";
    else if (marker == 0xC4) why = read_huffman(d, body) ? nullptr : "is damaged (DHT)";
    else if (marker == 0xC0 || marker == 0xC1 || marker == 0xC2) {
      d->progressive = marker == 0xC2;
      why = read_frame(d, body);
    } else if (marker >= 0xC3 && marker <= 0xCF && marker != 0xC8) {
      why = "is a JPEG image of a kind that is not read (lossless or arithmetic)";
    } else if (marker == 0xDD) {
      if (body.size < 2) why = "is damaged (DRI)";
      else d->restart = body.data[0] << 8 | body.data[1];
    } else if (marker == 0xDA) {
      why = read_scan(d, body);
    } else if (marker == 0xE1 && body.size > 6 && memcmp(body.data, "Exif\0\0", 6) == 0) {
      *orientation = exif_orientation({body.data + 6, body.size - 6});
    } else if (marker == 0xEE && body.size >= 12 && memcmp(body.data, "Adobe", 5) == 0) {
      d->adobe = body.data[11];
    }
  }
  if (!why && !d->scans) why = "is cut off";
  if (!why) why = to_pixels(d, out);
  destroy(d);
  return why;
}

}  // namespace lite::app
