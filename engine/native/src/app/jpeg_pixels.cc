// Coefficients to pixels with the integers of the Independent JPEG Group's library, so that a picture has the
// same bytes here and in Python: the inverse DCT of Loeffler, Ligtenberg and Moschytz (1989) with 13-bit
// constants, triangle filters between the samples of a halved component, and 16-bit YCbCr constants.
#include "jpeg.h"

namespace lite::app::jpeg {

namespace {

uint8_t clamped(int64_t v) { return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); }

// One dimension: eight values, `stride` apart, in place; rounded after `shift` bits.
void idct_line(int64_t* p, int stride, int shift) {
  const auto in = [&](int i) -> int64_t { return p[i * stride]; };
  int64_t z1 = (in(2) + in(6)) * 4433;
  const int64_t even2 = z1 - in(6) * 15137, even3 = z1 + in(2) * 6270;
  const int64_t even0 = (in(0) + in(4)) * 8192, even1 = (in(0) - in(4)) * 8192;
  const int64_t a = even0 + even3, d = even0 - even3, b = even1 + even2, c = even1 - even2;
  int64_t t0 = in(7), t1 = in(5), t2 = in(3), t3 = in(1);
  z1 = (t0 + t3) * -7373;
  const int64_t z2 = (t1 + t2) * -20995;
  int64_t z3 = t0 + t2, z4 = t1 + t3;
  const int64_t z5 = (z3 + z4) * 9633;
  z3 = z3 * -16069 + z5;
  z4 = z4 * -3196 + z5;
  t0 = t0 * 2446 + z1 + z3;
  t1 = t1 * 16819 + z2 + z4;
  t2 = t2 * 25172 + z2 + z3;
  t3 = t3 * 12299 + z1 + z4;
  const int64_t half = int64_t{1} << (shift - 1);
  const int64_t sums[8] = {a + t3, b + t2, c + t1, d + t0, d - t0, c - t1, b - t2, a - t3};
  for (int i = 0; i < 8; ++i) p[i * stride] = (sums[i] + half) >> shift;
}

void idct(const int16_t* block, const uint16_t* quant, uint8_t* out, size_t stride) {
  int64_t work[64];
  for (int i = 0; i < 64; ++i) work[i] = int64_t{block[i]} * quant[i];
  for (int x = 0; x < 8; ++x) idct_line(work + x, 8, 11);
  for (int y = 0; y < 8; ++y) idct_line(work + 8 * y, 1, 18);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) out[y * stride + x] = clamped(work[8 * y + x] + 128);
}

// A component's samples, whole blocks.
struct Plane {
  Array<uint8_t> samples;
  size_t stride = 0;
  int width = 0, height = 0;  // samples that count
  const uint8_t* row(int y) const {
    const int there = y < 0 ? 0 : y >= height ? height - 1 : y;
    return &samples[there * stride];
  }
};

// The row `y` of the picture from a component that has 1/h of its columns and 1/v of its rows; `sums` and
// `out` have room for a row. Factors of two are interpolated, others repeat samples.
void upsample(const Plane& p, int h, int v, int y, int32_t* sums, uint8_t* out, int width) {
  const bool smooth = p.width > 2;
  const bool blend = v == 2 && h <= 2 && (smooth || h == 1);
  const uint8_t* near = p.row(y / v);
  const uint8_t* far = p.row(y / 2 + (y % 2 ? 1 : -1));
  if (h == 2 && v == 1 && smooth) {
    const int n = p.width;
    for (int x = 0; x < width; ++x) {
      const int i = x / 2, other = x % 2 ? i + 1 : i - 1;
      out[x] = other < 0 || other >= n
                   ? near[i]
                   : static_cast<uint8_t>((3 * near[i] + near[other] + (x % 2 ? 2 : 1)) >> 2);
    }
  } else if (h == 2 && blend) {
    for (int i = 0; i < p.width; ++i) sums[i] = 3 * near[i] + far[i];
    for (int x = 0; x < width; ++x) {
      const int i = x / 2, other = x % 2 ? i + 1 : i - 1, round = x % 2 ? 7 : 8;
      const int next = other < 0 || other >= p.width ? sums[i] : sums[other];
      out[x] = static_cast<uint8_t>((3 * sums[i] + next + round) >> 4);
    }
  } else if (h == 1 && blend) {
    for (int x = 0; x < width; ++x)
      out[x] = static_cast<uint8_t>((3 * near[x] + far[x] + (y % 2 ? 2 : 1)) >> 2);
  } else {
    for (int x = 0; x < width; ++x) out[x] = near[x / h];
  }
}

void colour(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, bool rgb, int width, uint8_t* to) {
  for (int x = 0; x < width; ++x, to += 3) {
    if (rgb) {
      to[0] = y[x], to[1] = cb[x], to[2] = cr[x];
      continue;
    }
    const int32_t b = cb[x] - 128, r = cr[x] - 128;
    to[0] = clamped(y[x] + ((91881 * r + 32768) >> 16));
    to[1] = clamped(y[x] + ((-22554 * b - 46802 * r + 32768) >> 16));
    to[2] = clamped(y[x] + ((116130 * b + 32768) >> 16));
  }
}

}  // namespace

const char* to_pixels(Decoder* d, Image* out) {
  Plane planes[3];
  for (int i = 0; i < d->components; ++i) {
    const Component& c = d->component[i];
    if (!d->quant_given[c.table]) return "is damaged (no quantisation table)";
    Plane& p = planes[i];
    p.stride = static_cast<size_t>(c.wide) * 8;
    p.width = c.samples_wide;
    p.height = c.samples_high;
    if (!p.samples.resize(p.stride * c.high * 8)) return "does not fit in memory";
    for (int y = 0; y < c.rows; ++y)
      for (int x = 0; x < c.columns; ++x)
        idct(d->block(c, x, y), d->quant[c.table], &p.samples[y * 8 * p.stride + x * 8], p.stride);
  }
  Array<uint8_t> rows[3];
  Array<int32_t> sums;
  const size_t room = static_cast<size_t>(d->width) + 8;
  if (!out->make(d->width, d->height) || !sums.resize(room)) return "does not fit in memory";
  for (auto& row : rows)
    if (!row.resize(room)) return "does not fit in memory";
  const bool letters = d->component[0].id == 'R' && d->component[1].id == 'G' && d->component[2].id == 'B';
  const bool rgb = d->components == 1 || (d->adobe >= 0 ? d->adobe == 0 : letters);
  for (int y = 0; y < d->height; ++y) {
    for (int i = 0; i < d->components; ++i)
      upsample(planes[i], d->h_max / d->component[i].h, d->v_max / d->component[i].v, y, sums.data(),
               rows[i].data(), d->width);
    const int b = d->components == 1 ? 0 : 1, r = d->components == 1 ? 0 : 2;
    colour(rows[0].data(), rows[b].data(), rows[r].data(), rgb, d->width, out->at(0, y));
  }
  return nullptr;
}

}  // namespace lite::app::jpeg
