#pragma once

// Elements of two vectors by constant numbers; `Mask` is the vector of as many integers.
#if defined(__clang__)
#define LITE_SHUFFLE(Mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else  // gcc knows that one from 12 on
#define LITE_SHUFFLE(Mask, a, b, ...) __builtin_shuffle(a, b, Mask{__VA_ARGS__})
#endif
