// Products with matrices of which few words are not 0, four bytes each: a float, or the integers that
// one instruction multiplies.
//
// Rows of x are turned around a block at a time, so that a word of the weights multiplies vectors of
// rows: each one that is not 0 costs its load, its index and one product for every kLanes rows. Where
// kWide columns in a row have their zeros in common, one load of x serves them all.
// Source: Elsen 2020, "Fast Sparse ConvNets" (theirs keeps activations as [channel][pixel]).
#pragma once

#include "transpose.h"

namespace lite::LITE_ISA {

// Vectors of rows: as many sums as hide the latency of a product, in one set or in two.
#if defined(__aarch64__)
constexpr int kMostVectors = 8;
#else
constexpr int kMostVectors = 4;
#endif
constexpr int kBlock = kMostVectors * kLanes;
constexpr int kWide = 4;
// Vectors whose sums of kWide columns fit the registers.
constexpr int kWideVectors = kVectorRegisters >= 32 ? 4 : 2;
// A word of kWide columns costs about this share of kWide words of one column each.
constexpr double kWideCost = 0.7;

template <class Word>
struct SparseMatrix {
  int64_t words, columns;   // words of a column
  int32_t width;            // of the columns that share an index: 1 or kWide
  const int64_t* begin;     // [(columns + width - 1) / width + 1], into index
  const int32_t* index;     // of the word, times kBlock
  const Word* value;        // [index][width]
  const Word* bias;         // [columns], padded to whole vectors
  int64_t entries;          // products per row
};

// `at(word, column)` gives the word, `zero(word, column)` whether it is 0; the bias is not set.
template <class Word, class At, class Zero>
bool pack_sparse(Env& env, int64_t words, int64_t columns, const At& at, const Zero& zero,
                 SparseMatrix<Word>* s) {
  if (words > INT32_MAX / kBlock) return env.fail("inner dim too large");
  const int64_t groups = (columns + kWide - 1) / kWide;
  const auto shared = [&](int64_t w, int64_t first, int64_t width) {
    for (int64_t c = first; c < first + width && c < columns; ++c)
      if (!zero(w, c)) return true;
    return false;
  };
  int64_t single = 0, wide = 0;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t w = 0; w < words; ++w) {
      wide += shared(w, g * kWide, kWide);
      for (int64_t c = g * kWide; c < (g + 1) * kWide && c < columns; ++c) single += !zero(w, c);
    }
  const bool joined = static_cast<double>(wide) * kWide * kWideCost < static_cast<double>(single);
  s->words = words;
  s->columns = columns;
  s->width = joined ? kWide : 1;
  s->entries = joined ? wide * kWide : single;
  const int64_t lists = joined ? groups : columns, count = joined ? wide : single;
  const size_t padded = static_cast<size_t>(columns + kLanes + kWide);
  int64_t* begin = static_cast<int64_t*>(env.allocate((static_cast<size_t>(lists) + 1) * 8));
  int32_t* index = static_cast<int32_t*>(env.allocate((static_cast<size_t>(count) + 1) * 4));
  Word* value = static_cast<Word*>(
      env.allocate((static_cast<size_t>(s->entries) + 1) * sizeof(Word)));
  Word* bias = static_cast<Word*>(env.allocate(padded * sizeof(Word)));
  if (!begin || !index || !value || !bias) return env.out_of_memory();
  int64_t i = 0;
  for (int64_t list = 0; list < lists; ++list) {
    for (int64_t w = 0; w < words; ++w) {
      if (!shared(w, list * s->width, s->width)) continue;
      index[i] = static_cast<int32_t>(w * kBlock);
      for (int64_t c = 0; c < s->width; ++c) {
        const int64_t column = list * s->width + c;
        value[i * s->width + c] = column < columns ? at(w, column) : Word{};
      }
      ++i;
    }
    begin[list + 1] = i;
  }
  s->begin = begin;
  s->index = index;
  s->value = value;
  s->bias = bias;
  return true;
}

// kLanes rows of words, `stride` apart, of which the last of `rows` is repeated, to [word][kBlock].
LITE_INLINE void turn_rows(const float* x, int64_t stride, int64_t rows, int64_t words, float* to) {
  int64_t k = 0;
  if (rows >= kLanes) {
    for (; k + kLanes <= words; k += kLanes) {
      F square[kLanes];
      const float* from = x + k;
      LITE_UNROLL for (int i = 0; i < kLanes; ++i, from += stride) square[i] = load(from);
      transpose(square);
      LITE_UNROLL for (int i = 0; i < kLanes; ++i) store(to + (k + i) * kBlock, square[i]);
    }
  }
  for (; k < words; k += kLanes) {
    const int some = static_cast<int>(words - k < kLanes ? words - k : kLanes);
    F square[kLanes];
    for (int i = 0; i < kLanes; ++i)
      square[i] = load_part(x + (i < rows ? i : rows - 1) * stride + k, some);
    transpose(square);
    for (int i = 0; i < some; ++i) store(to + (k + i) * kBlock, square[i]);
  }
}

// Vectors side by side; AArch64 loads four with one instruction.
template <class Math, int kVectors>
LITE_INLINE void load_row(const typename Math::Word* x, typename Math::Vector (&row)[kVectors]) {
#if defined(__aarch64__)
  constexpr int kFours = kVectors / 4 * 4;
  LITE_UNROLL for (int v = 0; v < kFours; v += 4) {
    const float32x4x4_t four = vld1q_f32_x4(reinterpret_cast<const float*>(x) + v * kLanes);
    LITE_UNROLL for (int i = 0; i < 4; ++i)
        row[v + i] = reinterpret_cast<typename Math::Vector>(four.val[i]);
  }
#else
  constexpr int kFours = 0;
#endif
  LITE_UNROLL for (int v = kFours; v < kVectors; ++v) row[v] = load(x + v * kLanes);
}

// One column after the other. Math has Word, Vector and Sum, and from(bias), add(sum, x, word),
// total(a, b) and total(a).
template <class Math, int kVectors>
LITE_INLINE void single_columns(const SparseMatrix<typename Math::Word>& s,
                                const typename Math::Word* x, int64_t n0, int count,
                                typename Math::Word* to) {
  using Word = typename Math::Word;
  constexpr bool kTwoSets = kVectors <= 4;
  constexpr int kStep = kVectors % 4 == 0 ? 4 : kVectors;
  const int32_t* index = s.index;  // words that are written may alias what s points to
  const Word* value = s.value;
  for (int c = 0; c < count; ++c) {
    int64_t i = s.begin[n0 + c];
    const int64_t end = s.begin[n0 + c + 1];
    typename Math::Sum one[kVectors], two[kVectors];
    LITE_UNROLL for (int v = 0; v < kVectors; ++v)
        one[v] = Math::from(s.bias[n0 + c]), two[v] = Math::from(0);
    const auto add = [&](typename Math::Sum(&sums)[kVectors], int64_t at) {
      const typename Math::Vector w = splat(value[at]);
      const Word* a = x + index[at];
      LITE_UNROLL for (int v = 0; v < kVectors; v += kStep) {
        typename Math::Vector row[kStep];
        load_row<Math>(a, row);
        a += kStep * kLanes;
#if defined(__aarch64__)
        if (v + kStep < kVectors) asm("" : "+r"(a));  // else gcc computes it from the index again
#endif
        LITE_UNROLL for (int i = 0; i < kStep; ++i) Math::add(sums[v + i], row[i], w);
      }
    };
    for (; i + 1 < end; i += 2) {
      add(one, i);
      if constexpr (kTwoSets) add(two, i + 1);
      else add(one, i + 1);
    }
    if (i < end) add(one, i);
    LITE_UNROLL for (int v = 0; v < kVectors; ++v)
        store(to + c * kBlock + v * kLanes,
              kTwoSets ? Math::total(one[v], two[v]) : Math::total(one[v]));
  }
}

// kWide columns at a time.
template <class Math, int kVectors>
LITE_INLINE void wide_columns(const SparseMatrix<typename Math::Word>& s,
                              const typename Math::Word* x, int64_t n0, int count,
                              typename Math::Word* to) {
  using Word = typename Math::Word;
  const int32_t* index = s.index;  // as above
  const Word* value = s.value;
  for (int c0 = 0; c0 < count; c0 += kWide) {
    const int64_t list = (n0 + c0) / kWide, end = s.begin[list + 1];
    typename Math::Sum sum[kWide][kVectors];
    LITE_UNROLL for (int c = 0; c < kWide; ++c)
      LITE_UNROLL for (int v = 0; v < kVectors; ++v) sum[c][v] = Math::from(s.bias[n0 + c0 + c]);
    for (int64_t i = s.begin[list]; i < end; ++i) {
      typename Math::Vector row[kVectors];
      load_row<Math>(x + index[i], row);
      LITE_UNROLL for (int c = 0; c < kWide; ++c) {
        const typename Math::Vector w = splat(value[i * kWide + c]);
        LITE_UNROLL for (int v = 0; v < kVectors; ++v) Math::add(sum[c][v], row[v], w);
      }
    }
    LITE_UNROLL for (int c = 0; c < kWide; ++c)
      LITE_UNROLL for (int v = 0; v < kVectors; ++v)
        store(to + (c0 + c) * kBlock + v * kLanes, Math::total(sum[c][v]));
  }
}

template <class Math, int kVectors>
LITE_INLINE void sparse_columns(const SparseMatrix<typename Math::Word>& s, int vectors,
                                const typename Math::Word* x, int64_t n0, int count,
                                typename Math::Word* to) {
  if (s.width == 1) {
    if (vectors == kVectors) return single_columns<Math, kVectors>(s, x, n0, count, to);
    if constexpr (kVectors > 1) sparse_columns<Math, kVectors - 1>(s, vectors, x, n0, count, to);
    return;
  }
  int v = 0;
  for (; v + kWideVectors <= vectors; v += kWideVectors)
    wide_columns<Math, kWideVectors>(s, x + v * kLanes, n0, count, to + v * kLanes);
  for (; v < vectors; ++v) wide_columns<Math, 1>(s, x + v * kLanes, n0, count, to + v * kLanes);
}

// Sums of kLanes columns from n0 on, `count` of which there are, over `vectors` vectors of rows, to
// [column][kBlock].
template <class Math>
LITE_INLINE void sparse_columns(const SparseMatrix<typename Math::Word>& s, int vectors,
                                const typename Math::Word* x, int64_t n0, int count,
                                typename Math::Word* to) {
  sparse_columns<Math, kMostVectors>(s, vectors, x, n0, count, to);
}

}  // namespace lite::LITE_ISA
