// Activations in fp16, computed in floats.
#define LITE_FP16
#include "isa/activation.h"

#include "ops/convert.h"

namespace lite::neon {
void activate(float* x, int64_t n, const Activation& activation);
}

namespace lite::LITE_ISA {

void activate(const Real* x, Real* y, int64_t n, const Activation& activation) {
  float floats[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = n - i < kChunk ? n - i : kChunk;
    halves_to_floats(reinterpret_cast<const uint16_t*>(x + i), count, floats);
    neon::activate(floats, count, activation);
    floats_to_halves(floats, count, reinterpret_cast<uint16_t*>(y + i));
  }
}

void activate(Real* x, int64_t n, const Activation& activation) {
  if (activation.act != Act::kNone) activate(x, x, n, activation);
}

void activate_rows(Real* x, int64_t rows, ptrdiff_t stride, int64_t n, const Activation& activation) {
  for (; rows > 0; --rows, x += stride) activate(x, n, activation);
}

}  // namespace lite::LITE_ISA
