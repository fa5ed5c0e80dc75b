#include "activation.h"

namespace lite::LITE_ISA {

namespace {

#if defined(__aarch64__)
constexpr bool kByGroups = true;
#else
constexpr bool kByGroups = false;
#endif

// Groups of kVectors vectors, `stride` numbers apart.
template <Act A, int kVectors>
LITE_INLINE void map_groups(const float* x, float* y, int64_t count, ptrdiff_t stride, F a, F b) {
  for (; count > 0; --count, x += stride, y += stride) {
    F v[kVectors];
    LITE_UNROLL for (int k = 0; k < kVectors; ++k) v[k] = load(x + k * kLanes);
    LITE_UNROLL for (int k = 0; k < kVectors; ++k) v[k] = activate_vector<A>(v[k], a, b);
    LITE_UNROLL for (int k = 0; k < kVectors; ++k) store(y + k * kLanes, v[k]);
  }
}

template <Act A>
void map(const float* x, float* y, int64_t rows, ptrdiff_t stride, int64_t n, float p, float q) {
  const F a = splat(p), b = splat(q);
  int64_t begin = 0;
  if constexpr (kByGroups) {
    // Of two vectors where the registers hold what both need; short rows are walked down their columns.
    constexpr bool kPair = A == Act::kLeakyRelu || A == Act::kSigmoid || A == Act::kSilu;
    constexpr int kVectors = kPair ? 2 : 1;
    constexpr int64_t kGroup = kVectors * kLanes;
    begin = n / kGroup * kGroup;
    const bool down = n < 8 * kLanes;
    const int64_t groups = n / kGroup, lines = down ? groups : rows;
    const ptrdiff_t line = down ? kGroup : stride, next = down ? stride : kGroup;
    for (int64_t i = 0; i < lines; ++i)
      map_groups<A, kVectors>(x + i * line, y + i * line, down ? rows : groups, next, a, b);
    if (begin == n) return;
  }
  for (; rows > 0; --rows, x += stride, y += stride) {
    int64_t i = begin;
    for (; !kByGroups && i + kLanes <= n; i += kLanes)
      store(y + i, activate_vector<A>(load(x + i), a, b));
    for (; i < n; i += kLanes) {
      const int rest = static_cast<int>(n - i < kLanes ? n - i : kLanes);
      store_part(y + i, activate_vector<A>(load_part(x + i, rest), a, b), rest);
    }
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
