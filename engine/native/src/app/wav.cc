#include "sound.h"

namespace lite::app {

namespace {

uint32_t little(const uint8_t* p, int count) {
  uint32_t value = 0;
  for (int i = count - 1; i >= 0; --i) value = value << 8 | p[i];
  return value;
}

float sample(const uint8_t* p, int bits, bool floats) {
  const uint32_t raw = little(p, bits / 8);
  if (floats) {
    float value;
    memcpy(&value, &raw, 4);
    return value == value ? (value < -1 ? -1 : value > 1 ? 1 : value) : 0;
  }
  if (bits == 8) return (static_cast<float>(raw) - 128) / 128;
  const int32_t wide = static_cast<int32_t>(raw << (32 - bits));
  return static_cast<float>(wide >> (32 - bits)) / static_cast<float>(uint32_t{1} << (bits - 1));
}

}  // namespace

const char* decode_wav(Bytes file, Sound* out) {
  if (file.size < 12 || memcmp(file.data, "RIFF", 4) != 0 || memcmp(file.data + 8, "WAVE", 4) != 0)
    return "is not a WAV file";
  int form = 0, channels = 0, bits = 0;
  for (size_t at = 12; at + 8 <= file.size;) {
    const uint8_t* chunk = file.data + at;
    size_t size = little(chunk + 4, 4);
    const size_t there = file.size - at - 8;
    if (memcmp(chunk, "fmt ", 4) == 0 && size >= 16 && size <= there) {
      form = static_cast<int>(little(chunk + 8, 2));
      channels = static_cast<int>(little(chunk + 10, 2));
      const uint32_t rate = little(chunk + 12, 4);
      bits = static_cast<int>(little(chunk + 22, 2));
      if (form == 0xFFFE && size >= 26) form = static_cast<int>(little(chunk + 32, 2));
      const bool known = (form == 1 && (bits == 8 || bits == 16 || bits == 24 || bits == 32)) ||
                         (form == 3 && bits == 32);
      if (!known || channels < 1 || rate < 1 || rate > 1000000) return "is a WAV file of a kind that is not read";
      out->rate = static_cast<int>(rate);
    } else if (memcmp(chunk, "data", 4) == 0 && channels) {
      if (size > there) size = there;  // a recorder that was stopped
      const size_t step = static_cast<size_t>(channels) * (bits / 8), count = size / step;
      if (!out->samples.resize(count)) return "does not fit in memory";
      for (size_t i = 0; i < count; ++i) out->samples[i] = sample(chunk + 8 + i * step, bits, form == 3);
      return count ? nullptr : "holds no samples";
    }
    if (size > there) break;
    at += 8 + size + size % 2;
  }
  return "holds no samples";
}

}  // namespace lite::app
