#include "strided_copy.h"

#include "shuffle.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lite {

namespace {

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Short runs without a call; the last 16 bytes may be some that are there already.
template <class T>
LITE_INLINE void copy_run(const T* from, T* to, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
  if (bytes < 16 || bytes > 512) {
    memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const char* source = reinterpret_cast<const char*>(from);
  char* target = reinterpret_cast<char*>(to);
  int64_t left = bytes;
  for (; left >= 64; left -= 64, source += 64, target += 64) memcpy(target, source, 64);
  for (; left >= 16; left -= 16, source += 16, target += 16) memcpy(target, source, 16);
  if (left > 0) memcpy(target + left - 16, source + left - 16, 16);
}

template <class T>
LITE_INLINE void copy_row(const T* from, T* to, const CopyAxis& axis) {
  if (axis.from == 1 && axis.to == 1) {
    copy_run(from, to, axis.count);
  } else {
    for (int64_t i = 0; i < axis.count; ++i) to[i * axis.to] = from[i * axis.from];
  }
}

// 16 bytes of elements. low() and high() interleave the halves of two.
template <class T>
struct Lanes;

template <>
struct Lanes<uint8_t> {
  typedef uint8_t V __attribute__((vector_size(16)));
  static LITE_INLINE V low(V a, V b) {
    return LITE_SHUFFLE(V, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  }
  static LITE_INLINE V high(V a, V b) {
    return LITE_SHUFFLE(V, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
};
template <>
struct Lanes<uint16_t> {
  typedef uint16_t V __attribute__((vector_size(16)));
  static LITE_INLINE V low(V a, V b) { return LITE_SHUFFLE(V, a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
  static LITE_INLINE V high(V a, V b) { return LITE_SHUFFLE(V, a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
};
template <>
struct Lanes<uint32_t> {
  typedef uint32_t V __attribute__((vector_size(16)));
  static LITE_INLINE V low(V a, V b) { return LITE_SHUFFLE(V, a, b, 0, 4, 1, 5); }
  static LITE_INLINE V high(V a, V b) { return LITE_SHUFFLE(V, a, b, 2, 6, 3, 7); }
};

template <class T>
constexpr int kCount = 16 / sizeof(T);

template <class T>
LITE_INLINE typename Lanes<T>::V load_lanes(const T* from) {
  typename Lanes<T>::V v;
  memcpy(&v, from, sizeof v);
  return v;
}

// Vectors of two planes to pixels.
#if defined(__aarch64__)
LITE_INLINE void store_pixels(Lanes<uint8_t>::V a, Lanes<uint8_t>::V b, uint8_t* to) {
  vst2q_u8(to, uint8x16x2_t{{a, b}});
}
LITE_INLINE void store_pixels(Lanes<uint16_t>::V a, Lanes<uint16_t>::V b, uint16_t* to) {
  vst2q_u16(to, uint16x8x2_t{{a, b}});
}
LITE_INLINE void store_pixels(Lanes<uint32_t>::V a, Lanes<uint32_t>::V b, uint32_t* to) {
  vst2q_u32(to, uint32x4x2_t{{a, b}});
}
#else
template <class V, class T>
LITE_INLINE void store_pixels(V a, V b, T* to) {
  const V low = Lanes<T>::low(a, b), high = Lanes<T>::high(a, b);
  memcpy(to, &low, sizeof low);
  memcpy(to + kCount<T>, &high, sizeof high);
}
#endif

// kCount<T> pixels of two planes.
template <class T>
LITE_INLINE void interleave_pair(const T* from, int64_t plane, T* to) {
  store_pixels(load_lanes(from), load_lanes(from + plane), to);
}

// Four pixels of three planes. Each shuffle takes two elements of either operand, which is one
// instruction on x86 and for WebAssembly.
LITE_INLINE void interleave_four(const uint32_t* from, int64_t plane, uint32_t* to) {
  typedef Lanes<uint32_t>::V Four;
  Four in[3];
  for (int x = 0; x < 3; ++x) in[x] = load_lanes(from + x * plane);
#if defined(__aarch64__)
  vst3q_u32(to, uint32x4x3_t{{in[0], in[1], in[2]}});
#else
  const Four even = LITE_SHUFFLE(Four, in[0], in[1], 0, 2, 4, 6);   // a0 a2 b0 b2
  const Four odd = LITE_SHUFFLE(Four, in[1], in[2], 1, 3, 5, 7);    // b1 b3 c1 c3
  const Four mixed = LITE_SHUFFLE(Four, in[2], in[0], 0, 2, 5, 7);  // c0 c2 a1 a3
  const Four out[] = {LITE_SHUFFLE(Four, even, mixed, 0, 2, 4, 6),
                      LITE_SHUFFLE(Four, odd, even, 0, 2, 5, 7),
                      LITE_SHUFFLE(Four, mixed, odd, 1, 3, 5, 7)};
  for (int x = 0; x < 3; ++x) memcpy(to + 4 * x, &out[x], sizeof out[x]);
#endif
}

// A square of kCount<T> rows and columns, turned: to interleave the upper with the lower half of its
// rows moves the top bit of each element's index to the bottom, often enough rows become columns.
template <class T>
LITE_INLINE void turn_square(const T* from, int64_t ld_from, T* to, int64_t ld_to) {
  constexpr int kRows = kCount<T>;
  typename Lanes<T>::V a[kRows], b[kRows];
  for (int i = 0; i < kRows; ++i) a[i] = load_lanes(from + i * ld_from);
  for (int round = 1; round < kRows; round *= 2) {
    for (int i = 0; i < kRows / 2; ++i) {
      b[2 * i] = Lanes<T>::low(a[i], a[i + kRows / 2]);
      b[2 * i + 1] = Lanes<T>::high(a[i], a[i + kRows / 2]);
    }
    memcpy(a, b, sizeof a);
  }
  for (int i = 0; i < kRows; ++i) memcpy(to + i * ld_to, &a[i], sizeof a[i]);
}

typedef Lanes<uint8_t>::V Bytes;
typedef Lanes<uint16_t>::V Lanes16;
typedef uint64_t Longs __attribute__((vector_size(16)));

// Sixteen pixels of three planes of bytes: as four bytes each, of which two pixels at a time lose the
// fourth. Writes two bytes more than theirs.
LITE_INLINE void interleave_sixteen(const uint8_t* from, int64_t plane, uint8_t* to) {
  Bytes in[3];
  for (int x = 0; x < 3; ++x) in[x] = load_lanes(from + x * plane);
  const Bytes none{};
  const Bytes ab[2] = {Lanes<uint8_t>::low(in[0], in[1]), Lanes<uint8_t>::high(in[0], in[1])};
  const Bytes c[2] = {Lanes<uint8_t>::low(in[2], none), Lanes<uint8_t>::high(in[2], none)};
  for (int half = 0; half < 2; ++half) {
    const Lanes16 low = (Lanes16)ab[half], high = (Lanes16)c[half];
    const Longs four[2] = {(Longs)Lanes<uint16_t>::low(low, high),
                           (Longs)Lanes<uint16_t>::high(low, high)};
    for (int i = 0; i < 2; ++i) {
      const Longs two = (four[i] & 0xffffff) | (four[i] >> 8 & 0xffffff000000);
      for (int j = 0; j < 2; ++j, to += 6) {
        const uint64_t six = two[j];
        memcpy(to, &six, sizeof six);
      }
    }
  }
}

// A few planes into pixels (images, channel shuffles): the inner loop is unrolled by the compiler.
template <int kPlanes, class T>
void interleave(const T* from, T* to, const CopyAxis& slow, const CopyAxis& fast) {
  const int64_t count = slow.count, step = slow.to, plane = fast.from;
  int64_t i = 0;
  if constexpr (sizeof(T) <= 4 && kPlanes == 2) {
    for (; step == kPlanes && i + kCount<T> <= count; i += kCount<T>)
      interleave_pair(from + i, plane, to + i * kPlanes);
    if (step == kPlanes && i < count && count >= kCount<T>) {  // once more with those before it
      interleave_pair(from + count - kCount<T>, plane, to + (count - kCount<T>) * kPlanes);
      return;
    }
  }
  if constexpr (sizeof(T) == 4 && kPlanes == 3) {
    for (; step == kPlanes && i + 4 <= count; i += 4)
      interleave_four(from + i, plane, to + i * kPlanes);
  }
  if constexpr (sizeof(T) == 1 && kPlanes == 3) {
    for (; step == kPlanes && i + 16 < count; i += 16)
      interleave_sixteen(from + i, plane, to + i * kPlanes);
  }
  for (; i < count; ++i)
    for (int x = 0; x < kPlanes; ++x) to[i * step + x] = from[i + x * plane];
}

// A transposed pair of axes in square blocks: each cache line is read and written while it is near.
template <class T>
void copy_turned(const T* from, T* to, const CopyAxis& slow, const CopyAxis& fast) {
  if (slow.from == 1 && fast.to == 1) {
    if (fast.count == 2) return interleave<2>(from, to, slow, fast);
    if (fast.count == 3) return interleave<3>(from, to, slow, fast);
    if (fast.count == 4) return interleave<4>(from, to, slow, fast);
  }
  constexpr int64_t kBlock = 16;
  const bool squares = sizeof(T) <= 4 && slow.from == 1 && fast.to == 1 && slow.count >= kCount<T> &&
                       fast.count >= kCount<T>;
  for (int64_t i = 0; i < slow.count; i += kBlock) {
    const int64_t i_end = i + kBlock < slow.count ? i + kBlock : slow.count;
    for (int64_t j = 0; j < fast.count; j += kBlock) {
      const int64_t j_end = j + kBlock < fast.count ? j + kBlock : fast.count;
      if constexpr (sizeof(T) <= 4) {
        constexpr int64_t kSide = kCount<T>;
        if (squares) {  // the last ones step back
          for (int64_t y = i; y < i_end; y += kSide) {
            const int64_t row = y + kSide <= i_end ? y : i_end - kSide;
            for (int64_t x = j; x < j_end; x += kSide) {
              const int64_t column = x + kSide <= j_end ? x : j_end - kSide;
              turn_square(from + row + column * fast.from, fast.from, to + row * slow.to + column,
                          slow.to);
            }
          }
          continue;
        }
      }
      for (int64_t y = i; y < i_end; ++y)
        for (int64_t x = j; x < j_end; ++x)
          to[y * slow.to + x * fast.to] = from[y * slow.from + x * fast.from];
    }
  }
}

template <class T>
void copy_all(const CopyAxis* axes, int rank, int turned, const T* from, T* to) {
  if (rank == 0) {
    *to = *from;
    return;
  }
  if (rank == 1) {
    copy_row(from, to, axes[0]);
    return;
  }
  if (rank == 2 && turned == 0) {
    copy_turned(from, to, axes[0], axes[1]);
    return;
  }
  if (rank == 2) {
    for (int64_t i = 0; i < axes[0].count; ++i)
      copy_row(from + i * axes[0].from, to + i * axes[0].to, axes[1]);
    return;
  }
  if (rank == 3 && turned == 1) {
    for (int64_t i = 0; i < axes[0].count; ++i)
      copy_turned(from + i * axes[0].from, to + i * axes[0].to, axes[1], axes[2]);
    return;
  }
  // Outer axes by recursion; the turned one waits so that it meets the last axis.
  const int outer = turned == 0 ? 1 : 0;
  CopyAxis rest[kMaxCopyRank];
  int count = 0;
  for (int i = 0; i < rank; ++i)
    if (i != outer) rest[count++] = axes[i];
  const int next = turned < 0 ? -1 : turned == 0 ? 0 : turned - 1;
  const CopyAxis& axis = axes[outer];
  for (int64_t i = 0; i < axis.count; ++i)
    copy_all(rest, count, next, from + i * axis.from, to + i * axis.to);
}

template <class T>
void copy_share(const CopyPlan& plan, const uint8_t* from, uint8_t* to, int thread, int threads) {
  CopyAxis axes[kMaxCopyRank];
  memcpy(axes, plan.axes, sizeof axes);
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  if (threads > 1) {
    // The outermost axis with enough entries is cut; failing that, the longest one.
    int cut = -1;
    for (int i = 0; i < plan.rank && cut < 0; ++i)
      if (axes[i].count >= 4 * threads) cut = i;
    for (int i = 0; i < plan.rank && plan.axes[0].count > 0; ++i)
      if (cut < 0 || (axes[cut].count < 4 * threads && axes[i].count > axes[cut].count)) cut = i;
    if (cut < 0) {
      if (thread != 0) return;
    } else {
      int64_t begin, end;
      // Whole cache lines of one-byte elements keep threads off each other's lines.
      const int64_t grain = cut == plan.rank - 1 ? 64 : 1;
      share(axes[cut].count, grain, thread, threads, &begin, &end);
      if (begin == end) return;
      source += begin * axes[cut].from;
      target += begin * axes[cut].to;
      axes[cut].count = end - begin;
    }
  }
  copy_all(axes, plan.rank, plan.turned, source, target);
}

}  // namespace

void plan_copy(const CopyAxis* axes, int rank, int element, CopyPlan* plan) {
  plan->element = element;
  plan->rank = 0;
  plan->total = 1;
  plan->turned = -1;
  for (int i = 0; i < rank; ++i) {
    plan->total *= axes[i].count;
    if (axes[i].count == 1) continue;
    int at = plan->rank++;
    for (; at > 0 && magnitude(plan->axes[at - 1].to) < magnitude(axes[i].to); --at)
      plan->axes[at] = plan->axes[at - 1];
    plan->axes[at] = axes[i];
  }
  int merged = 0;
  for (int i = 1; i < plan->rank; ++i) {
    CopyAxis& outer = plan->axes[merged];
    const CopyAxis& inner = plan->axes[i];
    if (outer.from == inner.from * inner.count && outer.to == inner.to * inner.count)
      outer = {outer.count * inner.count, inner.from, inner.to};
    else plan->axes[++merged] = inner;
  }
  if (plan->rank) plan->rank = merged + 1;
  for (int i = 0; i + 1 < plan->rank; ++i)
    if (plan->axes[i].from == 1 && plan->axes[plan->rank - 1].from != 1) plan->turned = i;
}

void run_copy(const CopyPlan& plan, const uint8_t* from, uint8_t* to, int thread, int threads) {
  if (plan.total == 0) return;
  switch (plan.element) {
    case 1: return copy_share<uint8_t>(plan, from, to, thread, threads);
    case 2: return copy_share<uint16_t>(plan, from, to, thread, threads);
    case 4: return copy_share<uint32_t>(plan, from, to, thread, threads);
    default: return copy_share<uint64_t>(plan, from, to, thread, threads);
  }
}

}  // namespace lite
