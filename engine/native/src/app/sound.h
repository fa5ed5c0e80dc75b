// Sound files and what models are fed of them: mel-frequency cepstral coefficients, with the numbers of
// lite_engine/ops/tensorflow_audio.py.
#pragma once

#include "image.h"
#include "json.h"

namespace lite::app {

struct Sound {
  Array<float> samples;  // of the first channel, -1...1
  int rate = 0;          // of them in a second
};

// WAV: 8, 16, 24 or 32 bits of PCM, or 32-bit floats. Null, or why not.
const char* decode_wav(Bytes file, Sound* out);

struct Features {
  int64_t rate = 16000, samples = 16000, window = 640, stride = 320;
  int64_t filters = 40, coefficients = 10;
  double low = 20, high = 4000;  // Hz

  // Null, or what is wrong with it.
  const char* read(Json::Value from);
  int64_t frames() const { return samples < window ? 0 : 1 + (samples - window) / stride; }
  // (frames, coefficients) floats: cut or filled with silence, Hann windows, magnitudes, triangles on the mel
  // scale, logarithms, DCT-II. Null, or why not.
  const char* apply(const Sound& sound, Array<uint8_t>* out) const;
};

}  // namespace lite::app
