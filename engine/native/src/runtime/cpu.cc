// CPU features by CPUID (x86-64) or HWCAP (AArch64).
#include <stdio.h>
#include <unistd.h>

#include "dispatch.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace lite {

namespace {

struct Named {
  const char* name;
  bool CpuFeatures::* flag;
};

#if defined(__x86_64__)
// Lowest first; limiting to a row switches the rows after it off.
const Named kFeatures[] = {{"avx2", &CpuFeatures::avx2},
                           {"avxvnni", &CpuFeatures::avxvnni},
                           {"avx512", &CpuFeatures::avx512},
                           {"avx512vnni", &CpuFeatures::avx512vnni},
                           {"avx512bf16", &CpuFeatures::avx512bf16},
                           {"amx", &CpuFeatures::amx}};
const char* const kBaseline = "sse2";

// AMX tiles with int8 and bf16 products: the processor has them, the operating system saves them
// (XCR0) and lets this process use them. Threads made later inherit that, and those that exist.
bool have_amx() {
#if defined(__linux__)
  unsigned eax = 7, ebx, ecx = 0, edx;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  const bool tiles = edx >> 24 & 1, int8 = edx >> 25 & 1, bf16 = edx >> 22 & 1;
  if (!tiles || !int8 || !bf16) return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileStates = 3u << 17;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return (low & kTileStates) == kTileStates &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

CpuFeatures probe() {
  CpuFeatures cpu{};
  __builtin_cpu_init();  // checks that the operating system saves the wide registers, too
  cpu.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = cpu.avx2 && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
  cpu.avx512vnni = cpu.avx512 && __builtin_cpu_supports("avx512vnni");
  cpu.avx512bf16 = cpu.avx512 && __builtin_cpu_supports("avx512bf16");
  cpu.amx = cpu.avx512vnni && cpu.avx512bf16 && have_amx();
  unsigned eax = 7, ebx, ecx = 1, edx;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  cpu.avxvnni = cpu.avx2 && (eax >> 4 & 1);
  return cpu;
}
#else
const Named kFeatures[] = {{"neonfp16", &CpuFeatures::fp16},
                           {"neondot", &CpuFeatures::dot},
                           {"neonbf16", &CpuFeatures::bf16},
                           {"neoni8mm", &CpuFeatures::i8mm},
                           {"sve", &CpuFeatures::sve}};
const char* const kBaseline = "neon";

CpuFeatures probe() {
  CpuFeatures cpu{};
  cpu.neon = true;
#if defined(__aarch64__) && defined(__linux__)
  // Bit numbers of the kernel's asm/hwcap.h, which older C libraries lack.
  const unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
  cpu.fp16 = (caps >> 9 & 1) && (caps >> 10 & 1);  // FPHP and ASIMDHP
  cpu.dot = caps >> 20 & 1;                        // ASIMDDP
  cpu.sve = caps >> 22 & 1;
  cpu.i8mm = caps2 >> 13 & 1;
  cpu.bf16 = caps2 >> 14 & 1;
#elif defined(__aarch64__) && defined(__APPLE__)
  auto has = [](const char* name) {
    int value = 0;
    size_t bytes = sizeof value;
    return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value != 0;
  };
  cpu.fp16 = has("hw.optional.arm.FEAT_FP16");
  cpu.dot = has("hw.optional.arm.FEAT_DotProd");
  cpu.i8mm = has("hw.optional.arm.FEAT_I8MM");
  cpu.bf16 = has("hw.optional.arm.FEAT_BF16");
#endif
  return cpu;
}
#endif

const CpuFeatures& machine() {
  static const CpuFeatures cpu = probe();
  return cpu;
}

}  // namespace

bool detect_cpu(const char* max_isa, CpuFeatures* cpu) {
  *cpu = machine();
  if (!max_isa || !*max_isa) return true;
  bool found = strcmp(max_isa, kBaseline) == 0;
  for (const Named& feature : kFeatures) {
    if (found) cpu->*feature.flag = false;
    found = found || strcmp(max_isa, feature.name) == 0;
  }
  return found;
}

void detect_caches(size_t* l1_bytes, size_t* l2_bytes) {
  long l1 = -1, l2 = -1;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
  *l1_bytes = l1 > 0 ? static_cast<size_t>(l1) : 32 << 10;
  *l2_bytes = l2 > 0 ? static_cast<size_t>(l2) : 512 << 10;
}

const char* cpu_feature_text() {
  struct Text {
    char text[128];
    Text() {
      int at = snprintf(text, sizeof text, "%s", kBaseline);
      for (const Named& feature : kFeatures)
        if (machine().*feature.flag)
          at += snprintf(text + at, sizeof text - at, " %s", feature.name);
    }
  };
  static const Text text;
  return text.text;
}

}  // namespace lite
