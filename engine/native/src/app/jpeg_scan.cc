// JPEG's entropy-coded data: Huffman codes of baseline (ITU-T T.81, annex F) and progressive scans (annex G).
// Data that ends early reads as zero bits, as libjpeg has it.
#include "jpeg.h"

namespace lite::app::jpeg {

namespace {

struct Bits {
  Decoder* d;
  uint32_t held = 0;
  int count = 0;
  bool ended = false;

  int bit() {
    if (!count) {
      held = 0;
      if (!ended && d->at < d->file.size) {
        held = d->file.data[d->at];
        if (held != 0xFF) ++d->at;
        else if (d->at + 1 < d->file.size && d->file.data[d->at + 1] == 0) d->at += 2;
        else ended = true, held = 0;  // a marker
      } else {
        ended = true;
      }
      count = 8;
    }
    return held >> --count & 1;
  }
  int take(int n) {
    int value = 0;
    while (n-- > 0) value = value << 1 | bit();
    return value;
  }
  // A number of n bits of which the first tells the sign.
  int signed_take(int n) {
    if (!n) return 0;
    const int value = take(n);
    return value < 1 << (n - 1) ? value - (1 << n) + 1 : value;
  }
  int symbol(const Huffman& table) {
    int32_t code = 0;
    for (int length = 1; length <= 16; ++length) {
      code = code << 1 | bit();
      if (code <= table.last[length]) {
        const int32_t at = table.offset[length] + code - table.first[length];
        return at >= 0 && at < 256 ? table.values[at] : 0;
      }
    }
    return 0;  // no such code: damaged, read on
  }
};

struct Scan {
  Bits bits;
  int first, last, high, low;  // spectral selection, successive approximation
  int run = 0;                 // blocks that end at once
};

int16_t narrow(int64_t v) {
  return static_cast<int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
}

void dc_of(Scan& s, Component& c, int16_t* block) {
  const int size = s.bits.symbol(s.bits.d->dc[c.dc]) & 15;
  c.predicted = narrow(int64_t{c.predicted} + s.bits.signed_take(size));
  block[0] = narrow(int64_t{c.predicted} * (1 << s.low));
}

void baseline(Scan& s, Component& c, int16_t* block) {
  dc_of(s, c, block);
  const Huffman& table = s.bits.d->ac[c.ac];
  for (int k = 1; k < 64; ++k) {
    const int symbol = s.bits.symbol(table), size = symbol & 15;
    if (!size && symbol != 0xF0) return;
    k += symbol >> 4;
    if (k > 63) return;
    if (size) block[kZigzag[k]] = narrow(s.bits.signed_take(size));
  }
}

void ac_first(Scan& s, const Component& c, int16_t* block) {
  if (s.run) {
    --s.run;
    return;
  }
  const Huffman& table = s.bits.d->ac[c.ac];
  for (int k = s.first; k <= s.last; ++k) {
    const int symbol = s.bits.symbol(table), skip = symbol >> 4, size = symbol & 15;
    if (!size && skip < 15) {
      s.run = (1 << skip) - 1 + s.bits.take(skip);
      return;
    }
    k += skip;
    if (k > 63) return;
    if (size) block[kZigzag[k]] = narrow(int64_t{s.bits.signed_take(size)} * (1 << s.low));
  }
}

void refine(Scan& s, int16_t* value) {
  const int one = 1 << s.low;
  if (s.bits.bit() && !(*value & one)) *value = narrow(*value + (*value >= 0 ? one : -one));
}

void ac_refine(Scan& s, const Component& c, int16_t* block) {
  const Huffman& table = s.bits.d->ac[c.ac];
  int k = s.first;
  if (!s.run) {
    for (; k <= s.last; ++k) {
      const int symbol = s.bits.symbol(table), size = symbol & 15;
      int skip = symbol >> 4, fresh = 0;
      if (size) fresh = s.bits.bit() ? 1 << s.low : -(1 << s.low);
      else if (skip < 15) {
        s.run = (1 << skip) + s.bits.take(skip);
        break;
      }
      for (; k <= s.last; ++k) {
        int16_t* value = &block[kZigzag[k]];
        if (*value) refine(s, value);
        else if (skip-- == 0) break;
      }
      if (fresh && k <= s.last) block[kZigzag[k]] = narrow(fresh);
    }
  }
  if (!s.run) return;
  for (; k <= s.last; ++k)
    if (block[kZigzag[k]]) refine(s, &block[kZigzag[k]]);
  --s.run;
}

void decode(Scan& s, Component& c, int16_t* block) {
  if (!s.bits.d->progressive) baseline(s, c, block);
  else if (s.first) s.high ? ac_refine(s, c, block) : ac_first(s, c, block);
  else if (!s.high) dc_of(s, c, block);
  else if (s.bits.bit()) block[0] = narrow(block[0] | 1 << s.low);
}

// The byte after the restart marker that comes next, 0 where something else does.
size_t after_restart(const Decoder* d) {
  size_t at = d->at;
  while (at + 1 < d->file.size && d->file.data[at] == 0xFF && d->file.data[at + 1] == 0xFF) ++at;
  const bool there = at + 1 < d->file.size && d->file.data[at] == 0xFF && d->file.data[at + 1] >= 0xD0 &&
                     d->file.data[at + 1] <= 0xD7;
  return there ? at + 2 : 0;
}

// After `restart` units a marker follows, and everything that was predicted begins anew.
void next_interval(Scan& s) {
  Decoder* d = s.bits.d;
  s.bits.count = 0;
  s.run = 0;
  for (int i = 0; i < d->components; ++i) d->component[i].predicted = 0;
  if (const size_t at = after_restart(d)) {
    d->at = at;
    s.bits.ended = false;
  }
}

}  // namespace

const char* read_scan(Decoder* d, Bytes b) {
  if (!d->components) return "is damaged (SOS before SOF)";
  if (b.size < 1) return "is damaged (SOS)";
  const int count = b.data[0];
  if (count < 1 || count > d->components || b.size < 4 + 2 * static_cast<size_t>(count))
    return "is damaged (SOS)";
  Component* parts[3];
  for (int i = 0; i < count; ++i) {
    parts[i] = nullptr;
    for (int k = 0; k < d->components; ++k)
      if (d->component[k].id == b.data[1 + 2 * i]) parts[i] = &d->component[k];
    if (!parts[i]) return "is damaged (SOS)";
    parts[i]->dc = b.data[2 + 2 * i] >> 4 & 3;
    parts[i]->ac = b.data[2 + 2 * i] & 3;
    parts[i]->predicted = 0;
  }
  const uint8_t* tail = b.data + 1 + 2 * count;
  Scan s{{d}, tail[0], tail[1], tail[2] >> 4, tail[2] & 15};
  if (!d->progressive) s.first = s.high = s.low = 0, s.last = 63;
  if (s.last > 63 || s.first > s.last || s.low > 13 || (s.first && count > 1))
    return "is damaged (SOS)";
  for (int i = 0; i < count; ++i) {
    const bool needs_dc = !s.first && !s.high, needs_ac = s.first || !d->progressive;
    if ((needs_dc && !d->dc[parts[i]->dc].given) || (needs_ac && !d->ac[parts[i]->ac].given))
      return "is damaged (no Huffman table)";
  }
  // A scan of a few bytes may go over all blocks.
  if (++d->scans > kMostScans) return "is damaged (more scans than an image has)";
  const bool alone = count == 1;
  const int columns = alone ? parts[0]->columns : d->component[0].wide / d->component[0].h;
  const int rows = alone ? parts[0]->rows : d->component[0].high / d->component[0].v;
  int left = d->restart;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      if (d->restart && left-- == 0) {
        next_interval(s);
        left = d->restart - 1;
      }
      if (s.bits.ended) {  // the rest of the interval would be zero bits
        if (!d->restart || !after_restart(d)) return nullptr;
        continue;
      }
      if (alone) {
        decode(s, *parts[0], d->block(*parts[0], x, y));
        continue;
      }
      for (int i = 0; i < count; ++i)
        for (int v = 0; v < parts[i]->v; ++v)
          for (int h = 0; h < parts[i]->h; ++h)
            decode(s, *parts[i], d->block(*parts[i], x * parts[i]->h + h, y * parts[i]->v + v));
    }
  }
  return nullptr;
}

}  // namespace lite::app::jpeg
