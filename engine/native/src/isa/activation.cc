#include "activation.h"

namespace lite::LITE_ISA {

namespace {

template <Act A>
void map(const float* x, float* y, int64_t rows, ptrdiff_t stride, int64_t n, float p, float q) {
  const F a = splat(p), b = splat(q);
  for (; rows > 0; --rows, x += stride, y += stride) {
    int64_t i = 0;
#if defined(__aarch64__)  // where a load may bring two vectors
    if constexpr (A == Act::kSigmoid || A == Act::kSilu) {
      for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
        const F u = load(x + i), v = load(x + i + kLanes);
        const F first = activate_vector<A>(u, a, b), second = activate_vector<A>(v, a, b);
        store(y + i, first);
        store(y + i + kLanes, second);
      }
    }
#endif
    for (; i + kLanes <= n; i += kLanes) store(y + i, activate_vector<A>(load(x + i), a, b));
    const int rest = static_cast<int>(n - i);
    if (rest) store_part(y + i, activate_vector<A>(load_part(x + i, rest), a, b), rest);
  }
}

using Map = void (*)(const float*, float*, int64_t, ptrdiff_t, int64_t, float, float);
// In the order of Act.
constexpr Map kMaps[] = {
    map<Act::kNone>,      map<Act::kClip>,     map<Act::kLeakyRelu>, map<Act::kHardSigmoid>,
    map<Act::kHardSwish>, map<Act::kSigmoid>,  map<Act::kSilu>,      map<Act::kSwish>,
    map<Act::kTanh>,      map<Act::kGelu>,     map<Act::kGeluTanh>,  map<Act::kElu>,
    map<Act::kSelu>,      map<Act::kSoftplus>, map<Act::kSoftsign>,  map<Act::kMish>,
    map<Act::kExp>,       map<Act::kErf>,
};

}  // namespace

void activate(const float* x, float* y, int64_t n, const Activation& activation) {
  kMaps[static_cast<int>(activation.act)](x, y, 1, 0, n, activation.a, activation.b);
}

void activate_rows(float* x, int64_t rows, ptrdiff_t stride, int64_t n, const Activation& activation) {
  kMaps[static_cast<int>(activation.act)](x, x, rows, stride, n, activation.a, activation.b);
}

void activate(float* x, int64_t n, const Activation& activation) {
  if (activation.act != Act::kNone) activate(x, x, n, activation);
}

}  // namespace lite::LITE_ISA
