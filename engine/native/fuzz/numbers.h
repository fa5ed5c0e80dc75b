// Models' outputs made of the fuzzer's bytes.
#pragma once

#include "lite_runtime.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct Numbers {
  const uint8_t* data;
  size_t size, at;
  float room[LITE_APP_MAX_OUTPUTS][4096];
  uint8_t next() { return at < size ? data[at++] : 0; }
};

// As many outputs as the input says, of ranks and dims that it says.
inline int give(void* user, int, const lite_array*, lite_array* outputs, char*, size_t) {
  Numbers* n = static_cast<Numbers*>(user);
  const int count = 1 + n->next() % 4;
  for (int i = 0; i < count; ++i) {
    lite_array& out = outputs[i];
    out = {1, 1 + n->next() % 4, {}, n->room[i], 4};
    size_t total = 1;
    for (int k = 0; k < out.rank; ++k) {
      out.dims[k] = n->next() % 65;
      if (total * static_cast<size_t>(out.dims[k]) > 4096) out.dims[k] = 1;
      total *= static_cast<size_t>(out.dims[k]);
    }
    out.bytes = total * 4;
    for (size_t k = 0; k < total; ++k)
      n->room[i][k] = static_cast<float>(static_cast<int8_t>(n->next())) / 64.f;
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
