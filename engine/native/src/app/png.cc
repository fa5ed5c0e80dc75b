// PNG (W3C, third edition): every colour type and depth, interlaced ones too. 16-bit samples keep their upper
// byte; transparency is dropped, as a conversion to RGB does.
#include "image.h"
#include "runtime/crc32.h"

namespace lite::app {

namespace {

struct Header {
  int64_t width = 0, height = 0;
  int depth = 0, type = 0;
  bool interlaced = false;
  int samples() const { return type == 2 ? 3 : type == 4 ? 2 : type == 6 ? 4 : 1; }
  size_t row(int64_t w) const { return (static_cast<size_t>(w) * samples() * depth + 7) / 8; }
};

uint32_t big(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

bool known(const Header& h) {
  const int d = h.depth;
  if (h.type == 0) return d == 1 || d == 2 || d == 4 || d == 8 || d == 16;
  if (h.type == 3) return d == 1 || d == 2 || d == 4 || d == 8;
  return (h.type == 2 || h.type == 4 || h.type == 6) && (d == 8 || d == 16);
}

int paeth(int a, int b, int c) {
  const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

// Undoes a row's filter; `above` is null for the first.
bool unfilter(uint8_t* row, const uint8_t* above, size_t bytes, size_t step, int filter) {
  if (filter > 4) return false;
  for (size_t i = 0; i < bytes; ++i) {
    const int a = i >= step ? row[i - step] : 0, b = above ? above[i] : 0;
    const int c = above && i >= step ? above[i - step] : 0;
    const int add[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
    row[i] = static_cast<uint8_t>(row[i] + add[filter]);
  }
  return true;
}

void pixel(const Header& h, const uint8_t* row, int64_t x, const Array<uint8_t>& palette, uint8_t* to) {
  const int bytes = h.depth / 8;
  if (h.type == 2 || h.type == 6 || h.type == 4) {
    const uint8_t* p = row + x * h.samples() * bytes;
    for (int c = 0; c < 3; ++c) to[c] = p[h.type == 4 ? 0 : c * bytes];
    return;
  }
  const size_t bit = static_cast<size_t>(x) * h.depth;
  const int shown = h.depth == 16 ? row[x * 2]
                                  : row[bit / 8] >> (8 - h.depth - bit % 8) & ((1 << h.depth) - 1);
  for (int c = 0; c < 3; ++c) {
    const size_t at = static_cast<size_t>(shown) * 3 + c;
    to[c] = h.type == 3     ? (at < palette.size() ? palette[at] : 0)
            : h.depth < 8 ? static_cast<uint8_t>(shown * 255 / ((1 << h.depth) - 1))
                          : static_cast<uint8_t>(shown);
  }
}

struct Pass {
  int x, y, dx, dy;
};

const char* unpack(const Header& h, uint8_t* data, size_t size, const Array<uint8_t>& palette,
                   Image* out) {
  static const Pass whole[] = {{0, 0, 1, 1}};
  static const Pass seven[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  const size_t step = h.samples() * h.depth >= 8 ? h.samples() * h.depth / 8 : 1;
  for (int i = 0; i < (h.interlaced ? 7 : 1); ++i) {
    const Pass& p = h.interlaced ? seven[i] : whole[0];
    const int64_t columns = (h.width - p.x + p.dx - 1) / p.dx, rows = (h.height - p.y + p.dy - 1) / p.dy;
    if (columns < 1 || rows < 1) continue;
    const size_t bytes = h.row(columns);
    const uint8_t* above = nullptr;
    for (int64_t y = 0; y < rows; ++y) {
      if (size < bytes + 1) return "is cut off";
      if (!unfilter(data + 1, above, bytes, step, data[0])) return "is damaged (filter)";
      for (int64_t x = 0; x < columns; ++x)
        pixel(h, data + 1, x, palette,
              out->at(static_cast<int>(p.x + x * p.dx), static_cast<int>(p.y + y * p.dy)));
      above = data + 1;
      data += bytes + 1;
      size -= bytes + 1;
    }
  }
  return nullptr;
}

}  // namespace

const char* decode_png(Bytes file, Image* out, int* orientation) {
  Header h;
  Array<uint8_t> packed, palette, raw;
  bool ended = false;
  for (size_t at = 8; !ended;) {
    if (file.size - at < 12) return "is cut off";
    const size_t size = big(file.data + at);
    const char* kind = reinterpret_cast<const char*>(file.data) + at + 4;
    const uint8_t* data = file.data + at + 8;
    if (size > file.size - at - 12) return "is cut off";
    if (memcmp(kind, "IHDR", 4) == 0) {
      if (size != 13 || h.width) return "is damaged (IHDR)";
      h.width = big(data);
      h.height = big(data + 4);
      h.depth = data[8];
      h.type = data[9];
      h.interlaced = data[12] == 1;
      if (!known(h) || data[10] || data[11] || data[12] > 1) return "is damaged (IHDR)";
      if (h.width < 1 || h.height < 1 || h.width > kMaxPixels / h.height)
        return "has a size that is out of reach";
    } else if (!h.width) {
      return "is damaged (IHDR)";
    } else if (memcmp(kind, "PLTE", 4) == 0 || memcmp(kind, "IDAT", 4) == 0) {
      Array<uint8_t>& into = kind[0] == 'P' ? palette : packed;
      const size_t before = into.size();
      if (before + size > into.size() && !into.reserve((before + size) * 2)) return "does not fit in memory";
      if (!into.resize(before + size)) return "does not fit in memory";
      if (size) memcpy(into.data() + before, data, size);
    } else if (memcmp(kind, "eXIf", 4) == 0) {
      *orientation = exif_orientation({data, size});
    } else if (memcmp(kind, "IEND", 4) == 0) {
      ended = true;
    }
    at += size + 12;
  }
  const size_t most = (h.row(h.width) + 8) * static_cast<size_t>(h.height) * (h.interlaced ? 2 : 1) + 64;
  if (const char* why = inflate({packed.data(), packed.size()}, most, &raw)) return why;
  if (!out->make(h.width, h.height)) return "does not fit in memory";
  return unpack(h, raw.data(), raw.size(), palette, out);
}

namespace {

bool put32(Array<uint8_t>* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    if (!out->push(static_cast<uint8_t>(value >> shift))) return false;
  return true;
}

bool chunk(Array<uint8_t>* out, const char* kind, const uint8_t* data, size_t size) {
  const size_t start = out->size() + 4;
  if (!out->reserve(start + size + 8) || !put32(out, static_cast<uint32_t>(size))) return false;
  for (int i = 0; i < 4; ++i) out->push(static_cast<uint8_t>(kind[i]));
  for (size_t i = 0; i < size; ++i) out->push(data[i]);
  return put32(out, crc32(out->data() + start, size + 4));
}

}  // namespace

bool encode_png(const Image& image, Array<uint8_t>* out) {
  const size_t row = static_cast<size_t>(image.width) * 3 + 1, total = row * image.height;
  Array<uint8_t> data;
  if (total > UINT32_MAX / 2 || !data.reserve(total + total / 65535 * 5 + 64)) return false;
  data.push(0x78);
  data.push(1);
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < total; ++i) {
    if (i % 65535 == 0) {
      const size_t left = total - i, size = left < 65535 ? left : 65535;
      data.push(left <= 65535);
      for (int k = 0; k < 2; ++k) {  // the length and its complement
        const size_t v = k ? ~size : size;
        data.push(static_cast<uint8_t>(v));
        data.push(static_cast<uint8_t>(v >> 8));
      }
    }
    const uint8_t byte = i % row ? image.pixels[i - i / row - 1] : 0;
    data.push(byte);
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  uint8_t head[13] = {};
  for (int i = 0; i < 4; ++i) {
    head[i] = static_cast<uint8_t>(static_cast<uint32_t>(image.width) >> (24 - 8 * i));
    head[4 + i] = static_cast<uint8_t>(static_cast<uint32_t>(image.height) >> (24 - 8 * i));
  }
  head[8] = 8;
  head[9] = 2;
  out->clear();
  static const uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  for (const uint8_t c : magic)
    if (!out->push(c)) return false;
  return put32(&data, b << 16 | a) && chunk(out, "IHDR", head, 13) &&
         chunk(out, "IDAT", data.data(), data.size()) && chunk(out, "IEND", nullptr, 0);
}

}  // namespace lite::app
