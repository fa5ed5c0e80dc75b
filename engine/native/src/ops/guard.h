// What masked instructions touch, said to AddressSanitizer: gcc does not tell it.
#pragma once

#include "lite_kernel.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace lite {

LITE_INLINE void touches(const void* p, size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  void* bad = __asan_region_is_poisoned(const_cast<void*>(p), bytes);
  if (bad) (void)*static_cast<volatile uint8_t*>(bad);  // this it sees
#else
  (void)p, (void)bytes;
#endif
}

}  // namespace lite
