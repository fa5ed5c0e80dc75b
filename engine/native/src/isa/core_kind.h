// Which kind of core runs this thread, where the better order of instructions depends on it.
#pragma once

#include "lite_kernel.h"

#if defined(__linux__)
#include <sys/auxv.h>
#endif

namespace lite::LITE_ISA {

// Whether this core issues instructions in order, so that a load has to stand well before its use.
// Cores of one machine may differ. A core that does not say is taken for one that reorders.
inline bool issues_in_order() {
#if defined(__linux__)
  constexpr unsigned long kIdentifies = 1ul << 11;  // HWCAP_CPUID: the system answers for MIDR_EL1
  if (!(getauxval(AT_HWCAP) & kIdentifies)) return false;
  uint64_t id;
  asm volatile("mrs %0, MIDR_EL1" : "=r"(id));
  switch ((id >> 24 & 0xff) << 12 | (id >> 4 & 0xfff)) {  // who made it, and what
    case 0x41d02:  // Arm: Cortex-A34
    case 0x41d03:  // A53
    case 0x41d04:  // A35
    case 0x41d05:  // A55
    case 0x41d46:  // A510
    case 0x41d80:  // A520
    case 0x51801:  // Qualcomm: Kryo 2xx, 3xx and 4xx Silver
    case 0x51803:
    case 0x51805:
      return true;
  }
#endif
  return false;
}

}  // namespace lite::LITE_ISA
