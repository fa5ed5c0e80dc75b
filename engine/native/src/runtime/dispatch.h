// Which instruction sets this library has, which the machine has, and the kernels of each.
#pragma once

#include "lite_kernel.h"

namespace lite {

const CpuFeatures& machine();
// Features of this machine; lowered to `max_isa` when that is not nullptr. False when the name is
// no instruction set of this library.
bool detect_cpu(const char* max_isa, CpuFeatures* cpu);
void detect_caches(size_t* l1_bytes, size_t* l2_bytes);
const char* cpu_feature_text();  // of this machine, separated by spaces
const char* isa_text();          // compiled in and usable here, lowest first
bool has_tables(const char* isa);  // compiled in

// The kernel of the highest instruction set that `cpu` has and that suits the step (`step` may be
// nullptr); nullptr when there is none. `isa` receives its instruction set ("base" for portable kernels).
const Kernel* find_kernel(const char* name, const CpuFeatures& cpu, const Step* step, Env* env,
                          const char** isa);
// Row `index` of all tables, one after the other; nullptr past the end.
const Kernel* kernel_at(int index, const char** isa);

}  // namespace lite
