// DEFLATE (RFC 1951) in the zlib wrapping (RFC 1950). Codes are read bit by bit over the canonical lengths.
#include "image.h"

namespace lite::app {

namespace {

constexpr int kMaxBits = 15, kMaxCodes = 288;

struct Codes {
  uint16_t count[kMaxBits + 1];  // of codes of each length
  uint16_t symbol[kMaxCodes];    // in the order of codes
};

struct Stream {
  Bytes in;
  size_t at = 0, limit = 0;
  uint32_t held = 0;
  int bits = 0;
  bool bad = false;
  Array<uint8_t>* out;

  uint32_t take(int count) {
    while (bits < count) {
      if (at >= in.size) return bad = true, 0;
      held |= static_cast<uint32_t>(in.data[at++]) << bits;
      bits += 8;
    }
    const uint32_t value = held & ((1u << count) - 1);
    held >>= count;
    bits -= count;
    return value;
  }
  int symbol(const Codes& codes) {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMaxBits && !bad; ++length) {
      code |= static_cast<int>(take(1));
      const int count = codes.count[length];
      if (code - count < first) return codes.symbol[index + code - first];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    return bad = true, 0;
  }
  bool put(uint8_t byte) { return out->size() < limit && out->push(byte); }
};

// Canonical codes of `n` lengths; false where more codes are given than there can be.
bool make_codes(const uint8_t* lengths, int n, Codes* codes) {
  memset(codes, 0, sizeof *codes);
  for (int i = 0; i < n; ++i) ++codes->count[lengths[i]];
  codes->count[0] = 0;
  int left = 1;
  uint16_t offset[kMaxBits + 2] = {};
  for (int length = 1; length <= kMaxBits; ++length) {
    left = left * 2 - codes->count[length];
    if (left < 0) return false;
    offset[length + 1] = static_cast<uint16_t>(offset[length] + codes->count[length]);
  }
  for (int i = 0; i < n; ++i)
    if (lengths[i]) codes->symbol[offset[lengths[i]]++] = static_cast<uint16_t>(i);
  return true;
}

bool block(Stream& s, const Codes& literals, const Codes& distances) {
  static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t back[] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                  33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                  1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  for (;;) {
    const int code = s.symbol(literals);
    if (s.bad) return false;
    if (code < 256) {
      if (!s.put(static_cast<uint8_t>(code))) return false;
      continue;
    }
    if (code == 256) return true;
    if (code - 257 >= 29) return false;
    const size_t length = base[code - 257] + s.take(more[code - 257]);
    const int d = s.symbol(distances);
    if (s.bad || d >= 30) return false;
    const size_t distance = back[d] + s.take(d < 4 ? 0 : d / 2 - 1);
    if (s.bad || distance > s.out->size()) return false;
    for (size_t i = 0; i < length; ++i)
      if (!s.put((*s.out)[s.out->size() - distance])) return false;
  }
}

bool stored(Stream& s) {
  s.held = 0;
  s.bits = 0;
  const uint32_t length = s.take(16), check = s.take(16);
  if (s.bad || length != (check ^ 0xFFFF)) return false;
  for (uint32_t i = 0; i < length; ++i)
    if (!s.put(static_cast<uint8_t>(s.take(8))) || s.bad) return false;
  return true;
}

bool dynamic(Stream& s) {
  static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  const int literals = static_cast<int>(s.take(5)) + 257;
  const int distances = static_cast<int>(s.take(5)) + 1;
  const int given = static_cast<int>(s.take(4)) + 4;
  if (s.bad || literals > 286 || distances > 30) return false;
  uint8_t lengths[320] = {};
  for (int i = 0; i < given; ++i) lengths[order[i]] = static_cast<uint8_t>(s.take(3));
  Codes codes, far;
  if (!make_codes(lengths, 19, &codes)) return false;
  uint8_t found[320] = {};
  for (int i = 0; i < literals + distances;) {
    const int symbol = s.symbol(codes);
    if (s.bad) return false;
    if (symbol < 16) {
      found[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && !i) return false;
    const uint8_t value = symbol == 16 ? found[i - 1] : 0;
    int repeat = static_cast<int>(symbol == 16   ? 3 + s.take(2)
                                  : symbol == 17 ? 3 + s.take(3)
                                                 : 11 + s.take(7));
    if (s.bad || i + repeat > literals + distances) return false;
    while (repeat--) found[i++] = value;
  }
  return found[256] && make_codes(found, literals, &codes) &&
         make_codes(found + literals, distances, &far) && block(s, codes, far);
}

bool fixed(Stream& s) {
  uint8_t lengths[kMaxCodes];
  for (int i = 0; i < kMaxCodes; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  Codes literals, distances;
  uint8_t five[30];
  memset(five, 5, sizeof five);
  return make_codes(lengths, kMaxCodes, &literals) && make_codes(five, 30, &distances) &&
         block(s, literals, distances);
}

}  // namespace

const char* inflate(Bytes in, size_t limit, Array<uint8_t>* out) {
  if (in.size < 6 || (in.data[0] & 15) != 8 || (in.data[0] << 8 | in.data[1]) % 31 || in.data[1] & 32)
    return "is damaged (zlib header)";
  Stream s;
  s.in = in;
  s.at = 2;
  s.limit = limit;
  s.out = out;
  for (bool last = false; !last;) {
    last = s.take(1);
    const uint32_t kind = s.take(2);
    if (s.bad) return "is cut off";
    if (!(kind == 0 ? stored(s) : kind == 1 ? fixed(s) : kind == 2 ? dynamic(s) : false))
      return s.bad ? "is cut off" : "is damaged (compressed data)";
  }
  return nullptr;
}

}  // namespace lite::app
