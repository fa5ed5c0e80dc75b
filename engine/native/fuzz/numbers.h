// Models' outputs made of the fuzzer's bytes.
#pragma once

#include "lite_runtime.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct Numbers {
  const uint8_t* data;
  size_t size, at;
  alignas(8) float room[LITE_APP_MAX_OUTPUTS][8192];
  uint8_t next() { return at < size ? data[at++] : 0; }
};

// As many outputs as the input says, of the ranks, types and dims that it says.
inline int give(void* user, int, const lite_array*, lite_array* outputs, char*, size_t) {
  Numbers* n = static_cast<Numbers*>(user);
  const int count = 1 + n->next() % 4;
  for (int i = 0; i < count; ++i) {
    lite_array& out = outputs[i];
    const uint8_t kind = n->next();
    static const int types[][2] = {{1, 4}, {6, 1}, {9, 4}, {11, 8}};  // f32, u8, i32, i64 and their bytes
    const int* type = types[kind / 5 % 4];
    out = {type[0], 1 + kind % 5, {}, n->room[i], 4};
    size_t total = 1;
    for (int k = 0; k < out.rank; ++k) {
      out.dims[k] = n->next() % 65;
      if (total * static_cast<size_t>(out.dims[k]) > 4096) out.dims[k] = 1;
      total *= static_cast<size_t>(out.dims[k]);
    }
    out.bytes = total * static_cast<size_t>(type[1]);
    for (size_t k = 0; k < total; ++k) {
      const int8_t value = static_cast<int8_t>(n->next());
      switch (type[0]) {
        case 1: n->room[i][k] = static_cast<float>(value) / 64.f; break;
        case 6: reinterpret_cast<uint8_t*>(n->room[i])[k] = static_cast<uint8_t>(value); break;
        case 9: reinterpret_cast<int32_t*>(n->room[i])[k] = value; break;
        default: reinterpret_cast<int64_t*>(n->room[i])[k] = value;
      }
    }
  }
  return count;
}

// Where the text ends and the numbers begin: behind the first zero byte.
inline size_t text_of(const uint8_t* data, size_t size, Numbers* numbers) {
  const void* zero = size ? memchr(data, 0, size) : nullptr;
  const size_t text = zero ? static_cast<size_t>(static_cast<const uint8_t*>(zero) - data) : size;
  numbers->data = data;
  numbers->size = size;
  numbers->at = text < size ? text + 1 : size;
  return text;
}
