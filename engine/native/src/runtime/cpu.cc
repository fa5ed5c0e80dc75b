// CPU features by CPUID (x86-64) or HWCAP (AArch64).
#include <stdio.h>

#include <array>

#include "dispatch.h"

#if defined(__linux__)
#include <unistd.h>
#endif
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
                           {"avx2bytes", &CpuFeatures::avx2bytes},
                           {"avxvnni", &CpuFeatures::avxvnni},
                           {"avx512", &CpuFeatures::avx512},
                           {"avx512vnni", &CpuFeatures::avx512vnni},
                           {"avx512bf16", &CpuFeatures::avx512bf16},
                           {"amx", &CpuFeatures::amx}};
const char* const kBaseline = "sse2";

struct Registers {
  unsigned a, b, c, d;
};
// Asked of the processor itself: not every compiler's runtime library has __builtin_cpu_supports.
Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r{leaf, 0, subleaf, 0};
  __asm__("cpuid" : "+a"(r.a), "=b"(r.b), "+c"(r.c), "=d"(r.d));
  return r;
}
bool bit(unsigned word, int n) { return word >> n & 1; }
bool bits(unsigned word, unsigned mask) { return (word & mask) == mask; }

// The states that the operating system saves (XCR0).
constexpr unsigned kYmm = 3u << 1, kZmm = kYmm | 7u << 5, kTiles = 3u << 17;
unsigned saved_states() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;  // OSXSAVE
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// The operating system lets this process use AMX tiles. Threads made later inherit that, and those
// that exist.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Bit numbers: Intel's Software Developer's Manual, volume 2A, CPUID.
CpuFeatures probe() {
  CpuFeatures cpu{};
  const Registers one = cpuid(1, 0);
  cpu.crc32 = bit(one.c, 1) && bit(one.c, 19);  // PCLMULQDQ, SSE4.1
  const unsigned states = saved_states();
  if (cpuid(0, 0).a < 7 || !bits(states, kYmm)) return cpu;
  const Registers seven = cpuid(7, 0), more = cpuid(7, 1);
  cpu.avx2 = bit(seven.b, 5) && bit(one.c, 12) && bit(one.c, 29);  // AVX2, FMA, F16C
  cpu.avx2bytes = cpu.avx2;
  cpu.avxvnni = cpu.avx2 && bit(more.a, 4);
  const bool f_dq = bit(seven.b, 16) && bit(seven.b, 17), bw_vl = bits(seven.b, 3u << 30);
  cpu.avx512 = cpu.avx2 && bits(states, kZmm) && f_dq && bw_vl;
  cpu.avx512vnni = cpu.avx512 && bit(seven.c, 11);
  cpu.vbmi = cpu.avx512 && bit(seven.c, 1);
  // AMD's Architecture Programmer's Manual, volume 3, function 8000_001A: FP256 without FP512.
  const unsigned widths = cpuid(0x80000000, 0).a >= 0x8000001a ? cpuid(0x8000001a, 0).a : 0;
  cpu.halves = cpu.avx512 && bit(widths, 2) && !bit(widths, 3);
  cpu.avx512bf16 = cpu.avx512 && bit(more.a, 5);
  const bool products = bit(seven.d, 22) && bit(seven.d, 24) && bit(seven.d, 25);
  cpu.amx = cpu.avx512vnni && cpu.avx512bf16 && products && bits(states, kTiles) && may_use_tiles();
  return cpu;
}
#elif defined(__wasm__)
// Nothing to choose at run time: a module names the instructions that it needs.
const std::array<Named, 0> kFeatures{};
const char* const kBaseline = "simd128";

CpuFeatures probe() { return CpuFeatures{}; }
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
  cpu.crc32 = caps >> 7 & 1;
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
  cpu.crc32 = has("hw.optional.armv8_crc32");
#endif
  return cpu;
}
#endif

}  // namespace

const CpuFeatures& machine() {
  static const CpuFeatures cpu = probe();
  return cpu;
}

bool detect_cpu(const char* max_isa, CpuFeatures* cpu) {
  *cpu = machine();
  cpu->narrow = cpu->halves && has_tables("avx2");
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
