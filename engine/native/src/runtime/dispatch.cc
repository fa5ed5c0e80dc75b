// Finds kernels by name in the tables of all files, highest instruction set first.
#include "dispatch.h"

#include "../plugins/plugins.h"

#include <stdio.h>

// Declarations: lite::<isa>::<file>_kernels.
#define LITE_BASE_KERNELS(file)            \
  namespace base {                         \
  extern const KernelTable file##_kernels; \
  }
#define LITE_ONE_ISA_KERNELS(isa, file)    \
  namespace isa {                          \
  extern const KernelTable file##_kernels; \
  }
#if defined(LITE_ONE_SET)  // a sanitized build has the set of the machine that it runs on
#define LITE_ISA_KERNELS(file) LITE_ONE_ISA_KERNELS(LITE_ONE_SET, file)
#elif defined(__x86_64__)
#define LITE_ISA_KERNELS(file)             \
  namespace sse2 {                         \
  extern const KernelTable file##_kernels; \
  }                                        \
  namespace avx2 {                         \
  extern const KernelTable file##_kernels; \
  }                                        \
  namespace avx512 {                       \
  extern const KernelTable file##_kernels; \
  }
#elif defined(__wasm__)
#define LITE_ISA_KERNELS(file) LITE_ONE_ISA_KERNELS(simd128, file)
#else
#define LITE_ISA_KERNELS(file)             \
  namespace neon {                         \
  extern const KernelTable file##_kernels; \
  }
#endif
namespace lite {
#include LITE_KERNEL_LIST
}
#undef LITE_BASE_KERNELS
#undef LITE_ONE_ISA_KERNELS
#undef LITE_ISA_KERNELS

namespace lite {

namespace {

struct Entry {
  const char* isa;
  const KernelTable* table;
};

const Entry kEntries[] = {
#define LITE_BASE_KERNELS(file) {"base", &base::file##_kernels},
#define LITE_ONE_ISA_KERNELS(isa, file) {LITE_TEXT(isa), &isa::file##_kernels},
#if defined(LITE_ONE_SET)
#define LITE_ISA_KERNELS(file) LITE_ONE_ISA_KERNELS(LITE_ONE_SET, file)
#elif defined(__x86_64__)
#define LITE_ISA_KERNELS(file)                                      \
  {"sse2", &sse2::file##_kernels}, {"avx2", &avx2::file##_kernels}, \
      {"avx512", &avx512::file##_kernels},
#elif defined(__wasm__)
#define LITE_ISA_KERNELS(file) LITE_ONE_ISA_KERNELS(simd128, file)
#else
#define LITE_ISA_KERNELS(file) {"neon", &neon::file##_kernels},
#endif
#include LITE_KERNEL_LIST
};

// Lowest first. A row is usable when its feature is there.
struct Isa {
  const char* name;
  bool (*usable)(const CpuFeatures&);
};
const Isa kIsas[] = {
    {"base", [](const CpuFeatures&) { return true; }},
#if defined(__x86_64__)
    {"sse2", [](const CpuFeatures&) { return true; }},
    {"avx2", [](const CpuFeatures& cpu) { return cpu.avx2; }},
    {"avx2bytes", [](const CpuFeatures& cpu) { return cpu.avx2bytes; }},
    {"avxvnni", [](const CpuFeatures& cpu) { return cpu.avxvnni; }},
    {"avx512", [](const CpuFeatures& cpu) { return cpu.avx512; }},
    {"avx512vnni", [](const CpuFeatures& cpu) { return cpu.avx512vnni; }},
    {"avx512bf16", [](const CpuFeatures& cpu) { return cpu.avx512bf16; }},
    {"amx", [](const CpuFeatures& cpu) { return cpu.amx; }},
#elif defined(__wasm__)
    {"simd128", [](const CpuFeatures&) { return true; }},
#else
    {"neon", [](const CpuFeatures&) { return true; }},
    {"neonfp16", [](const CpuFeatures& cpu) { return cpu.fp16; }},
    {"neondot", [](const CpuFeatures& cpu) { return cpu.dot; }},
    {"neonbf16", [](const CpuFeatures& cpu) { return cpu.bf16; }},
    {"neoni8mm", [](const CpuFeatures& cpu) { return cpu.i8mm; }},
#endif
};
constexpr int kNumIsas = sizeof(kIsas) / sizeof(kIsas[0]);

}  // namespace

bool has_tables(const char* isa) {
  for (const Entry& entry : kEntries)
    if (strcmp(entry.isa, isa) == 0) return true;
  return false;
}

const Kernel* find_kernel(const char* name, const CpuFeatures& cpu, const Step* step, Env* env,
                          const char** isa) {
  if (step && strcmp(name, kPluginKernel) == 0) return plugin_kernel(step->op, isa);
  for (int level = kNumIsas - 1; level >= 0; --level) {
    if (!kIsas[level].usable(cpu)) continue;
    for (const Entry& entry : kEntries) {
      if (strcmp(entry.isa, kIsas[level].name) != 0) continue;
      for (int i = 0; i < entry.table->count; ++i) {
        const Kernel& kernel = entry.table->kernels[i];
        if (strcmp(kernel.name, name) != 0) continue;
        if (step && kernel.suits && !kernel.suits(*step, *env)) continue;
        *isa = kIsas[level].name;
        return &kernel;
      }
    }
  }
  return nullptr;
}

const Kernel* kernel_at(int index, const char** isa) {
  for (const Entry& entry : kEntries) {
    *isa = entry.isa;
    if (index < entry.table->count) return &entry.table->kernels[index];
    index -= entry.table->count;
  }
  return nullptr;
}

const char* isa_text() {
  struct Text {
    char text[128];
    Text() {
      CpuFeatures cpu;
      detect_cpu(nullptr, &cpu);
      int at = 0;
      for (const Isa& isa : kIsas)
        if (isa.usable(cpu) && strcmp(isa.name, "base") != 0 && has_tables(isa.name))
          at += snprintf(text + at, sizeof text - at, at ? " %s" : "%s", isa.name);
    }
  };
  static const Text text;
  return text.text;
}

}  // namespace lite
