// Internal interface between the runtime and its kernels. Not part of the public ABI.
//
// A kernel is a row {ops, name, prepare, run} of a table. The runtime calls prepare once per step
// (single-threaded) and run once per thread, phase and inference. Files in src/isa are compiled
// once per instruction set with -DLITE_ISA=<isa>: everything in them lives in namespace
// lite::LITE_ISA or is static, and functions of shared headers are LITE_INLINE. NOTE: an ordinary
// inline function or a std:: template compiled under wider flags may be the copy the linker keeps
// for everybody.
//
// Rules for a kernel
// - prepare trusts nothing: ranks, dims, dtypes, attributes and constant inputs are checked there,
//   run may then assume them. It reports with env.fail("...") and returns its false.
// - run must not read Tensor::data before the run starts: inputs and outputs move between runs
//   (weights do not). It never allocates, never blocks, never reads or writes outside a tensor's
//   elements (channel tails too), and partitions the work statically by (thread, threads).
// - Tensor data is aligned to its element only; use unaligned vector loads. Memory from
//   env.allocate and scratch is 64-byte aligned.
// - A kernel accepts pitch, halo and in-place operation only if it says so: without kAcceptsPitch,
//   kAcceptsHalo or kInPlace in `flags` the runtime rejects such a step before prepare. The runtime
//   fills the halo of a step's output with Tensor::halo_value in phase 0; kernels leave it alone.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LITE_INLINE inline __attribute__((always_inline))

namespace lite {

constexpr int kMaxRank = 8;
#if defined(__wasm__)
constexpr int kMaxThreads = 16;  // each has scratch memory in a page
#else
constexpr int kMaxThreads = 64;
#endif
constexpr size_t kAlign = 64;

// Values are those of the program format.
enum class DType : uint8_t {
  kF32 = 1,
  kF16 = 2,
  kBF16 = 3,
  kF64 = 4,
  kI8 = 5,
  kU8 = 6,
  kI16 = 7,
  kU16 = 8,
  kI32 = 9,
  kU32 = 10,
  kI64 = 11,
  kU64 = 12,
  kBool = 13,
};
// kDevice: memory of an OpenCL device, which no kernel of the CPU sees.
enum class Role : uint8_t { kInput = 1, kOutput = 2, kWeight = 3, kArena = 4, kDevice = 5 };

int dtype_bytes(DType);         // 0 for an unknown dtype
const char* dtype_name(DType);  // "f32", ..., "?" for an unknown one

// dims are physical, outermost first; a scalar has rank 0. Element (n,h,w,c) of a channels-last
// tensor lies at ((n*(H+top+bottom) + h+top)*(W+left+right) + w+left)*pitch + c: see strides_of.
struct Tensor {
  const char* name;
  DType dtype;
  Role role;
  uint8_t rank;
  int32_t index;
  int64_t dims[kMaxRank];
  int64_t pitch;       // elements from one innermost row to the next, >= dims[rank-1]
  int32_t halo[4];     // top, left, bottom, right; rank 4 only
  int32_t halo_value;  // integer that halo cells hold (converted to the dtype)
  int64_t size;        // product of dims
  size_t bytes;        // bytes spanned in memory, pitch and halo included
  uint8_t* data;       // weights: valid from prepare on; others: valid during run

  template <class T>
  LITE_INLINE T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

LITE_INLINE int64_t last_dim(const Tensor& t) { return t.rank ? t.dims[t.rank - 1] : 1; }
LITE_INLINE bool has_halo(const Tensor& t) {
  return (t.halo[0] | t.halo[1] | t.halo[2] | t.halo[3]) != 0;
}
LITE_INLINE bool is_dense(const Tensor& t) { return !has_halo(t) && t.pitch == last_dim(t); }
LITE_INLINE bool is_weight(const Tensor& t) { return t.role == Role::kWeight; }
LITE_INLINE bool same_dims(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}
// Number of innermost rows (pixels of a channels-last tensor).
LITE_INLINE int64_t row_count(const Tensor& t) {
  int64_t n = 1;
  for (int i = 0; i + 1 < t.rank; ++i) n *= t.dims[i];
  return n;
}
// Element strides with pitch and halo honoured; returns the offset of element (0,...,0).
LITE_INLINE int64_t strides_of(const Tensor& t, int64_t strides[kMaxRank]) {
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    strides[i] = step;
    if (i == t.rank - 1) {
      step = t.pitch;
    } else {
      int64_t extent = t.dims[i];
      if (t.rank == 4 && i == 1) extent += t.halo[0] + t.halo[2];
      if (t.rank == 4 && i == 2) extent += t.halo[1] + t.halo[3];
      step *= extent;
    }
  }
  return t.rank == 4 ? t.halo[0] * strides[1] + t.halo[1] * strides[2] : 0;
}

enum class AttrKind : uint8_t { kInts = 1, kFloats = 2, kString = 3 };

struct Attr {
  const char* name;
  AttrKind kind;
  int32_t count;  // elements of ints or floats; bytes of string (it is also 0-terminated)
  union {
    const int64_t* ints;
    const double* floats;
    const char* string;
  };
};

struct Kernel;

// Which input rows a step's output rows depend on, where its kernel can compute some rows of one
// image: row y needs the rows [y * stride - pad, y * stride - pad + span) that exist.
struct RowMap {
  int64_t stride, pad, span;  // span 0: this step cannot
  int64_t grain;              // rows are asked for in multiples of it, or up to the last one
};

// Output rows [begin, end), from and to where row 0 lies or would lie if it were still kept.
struct RowRange {
  const uint8_t* input;
  uint8_t* output;
  int64_t begin, end;
};

// The members below `attrs` are the kernel's to fill in prepare, except `shared`.
struct Step {
  const char* name;
  const char* op;
  const Kernel* kernel;
  int32_t index;
  int32_t num_inputs, num_outputs, num_attrs;
  Tensor* const* inputs;   // nullptr for an absent optional input
  Tensor* const* outputs;  // nullptr for an output that nobody wants
  const Attr* attrs;

  int32_t shares;        // of each thread, set by the runtime for kDivisible kernels, else 1
  bool one_thread;       // set by the runtime: the first thread runs it alone, as the only one
  bool by_rows;          // set by the runtime: asked to compute some rows too (Kernel::run_rows)
  int32_t phases;        // 1 by default; a barrier follows each
  size_t scratch_bytes;  // per thread, handed to run as `scratch`
  RowMap rows;           // of kernels with run_rows, where by_rows
  size_t shared_bytes;   // one block for all threads of the step
  void* shared;          // that block, set by the runtime before the first run
  void* state;           // the kernel's own, from env.allocate
  char variant[96];      // full name shown in profiles; "<kernel>__<isa>" by default
};

// Attribute look-up; a missing or differently typed attribute gives the default (count 0).
const Attr* find_attr(const Step&, const char* name);
int64_t attr_int(const Step&, const char* name, int64_t otherwise);
double attr_float(const Step&, const char* name, double otherwise);  // an int is accepted too
const char* attr_string(const Step&, const char* name, const char* otherwise);
const int64_t* attr_ints(const Step&, const char* name, int* count);
const double* attr_floats(const Step&, const char* name, int* count);
LITE_INLINE Tensor* input_of(const Step& s, int i) {
  return i < s.num_inputs ? s.inputs[i] : nullptr;
}
LITE_INLINE Tensor* output_of(const Step& s, int i) {
  return i < s.num_outputs ? s.outputs[i] : nullptr;
}

struct CpuFeatures {
  bool avx2, avx512, avx512vnni, avx512bf16, avxvnni, amx;  // avx2 implies FMA; avx512 = F BW DQ VL
  bool avx2bytes;                                      // avx2, and its products of bytes are wanted
  bool neon, fp16, dot, i8mm, bf16, sve;               // fp16 = arithmetic (FEAT_FP16)
  bool vbmi;   // shuffles of 128 bytes; implies avx512
  bool halves; // wide operations take their units twice, as AVX-512 of AMD's Zen 4 does; implies avx512
  bool narrow; // halves, and this library has AVX2's kernels, too
  bool crc32;  // what checksums need: carry-less products on x86, FEAT_CRC32 on ARM
};

struct Allocator;
struct Program;
struct WeightCache;

// What a kernel packs from constant inputs. Programs that pack the same bytes in the same way share one copy.
constexpr int kViewNumbers = 12;  // of `numbers`: how convolution weights lie in memory; the rest is the kernel's own
struct Recipe {
  const char* maker;        // which function, of which instruction set
  const void* source;       // a constant input, or a part of it
  size_t source_bytes;
  int64_t numbers[24];      // all that the result depends on beside those bytes
};

// What prepare may ask of the runtime.
struct Env {
  int threads;
  int shares;                 // of `threads`, those that one thread takes if none is slow: Step::shares
  CpuFeatures cpu;            // already lowered by the max-ISA limit
  size_t l1_bytes, l2_bytes;  // data cache sizes per core, defaults where unknown
  Allocator* allocator;
  WeightCache* weights;
  const Program* program;  // while its steps are prepared
  char* error;
  size_t error_bytes;

  // Whether two tensors' elements share bytes; `start` is where `a` starts, from b's first byte.
  bool overlap(const Tensor& a, const Tensor& b, int64_t* start) const;

  // 64-byte aligned, zeroed, freed with the program, counted as packed memory.
  // nullptr when memory is exhausted or a test injects a failure: return env.out_of_memory().
  void* allocate(size_t bytes);
  // The same for what a recipe packs. Where *made is true, another step or program has packed it: do not write to it.
  void* allocate_packed(const Recipe&, size_t bytes, bool* made);
  bool fail(const char* format, ...) __attribute__((format(printf, 2, 3)));  // false
  bool out_of_memory();                                                      // false
};

// Threads that will run a step: Env::threads counts the shares of kDivisible kernels.
LITE_INLINE int threads_of(const Step& step, const Env& env) { return env.threads / step.shares; }

// a * b and a + b for sizes that come from a file: false on overflow.
LITE_INLINE bool mul_size(size_t a, size_t b, size_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}
LITE_INLINE bool add_size(size_t a, size_t b, size_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

enum : uint32_t {
  kAcceptsPitch = 1,
  kAcceptsHalo = 2,
  kInPlace = 4,    // an output may start where an input of the same byte size starts
  kOneThread = 8,  // run is called by one thread only, with thread 0 of threads 1
  kOverlaps = 16,  // its prepare checks where inputs and outputs share memory (views of one buffer)
  kDivisible = 32, // run may be called for more shares than there are threads, several by one thread
};

struct Kernel {
  const char* ops;   // operators it implements, separated by single spaces
  const char* name;  // the part before "__"
  bool (*prepare)(Step&, Env&);
  void (*run)(const Step&, int phase, int thread, int threads, void* scratch);
  uint32_t flags;
  // Whether this instruction set serves the step well; if not, the next lower one is asked.
  // nullptr: always. May allocate nothing.
  bool (*suits)(const Step&, Env&) = nullptr;
  // Computes some rows with one thread where Step::rows allows it; nullptr: never.
  void (*run_rows)(const Step&, const RowRange&, void* scratch) = nullptr;
};

struct KernelTable {
  const Kernel* kernels;
  int count;
};

// Balanced static share [begin, end) of `total` items for one thread, cut at multiples of `grain`.
LITE_INLINE void share(int64_t total, int64_t grain, int thread, int threads, int64_t* begin,
                       int64_t* end) {
  const int64_t blocks = (total + grain - 1) / grain;
  const int64_t low = blocks * thread / threads * grain;
  const int64_t high = blocks * (thread + 1) / threads * grain;
  *begin = low < total ? low : total;
  *end = high < total ? high : total;
}

void set_variant(Step&, const char* format, ...) __attribute__((format(printf, 2, 3)));
void append_variant(Step&, const char* suffix);  // where there is room

// Fused activation (attributes `activation` and `activation_params`) parsed once in prepare;
// src/isa/activation.h applies it. Their operators: src/ops/activation_table.h.
enum class Act : uint8_t {
  kNone,
  kClip /* lo, hi: also Relu */,
  kLeakyRelu /* alpha */,
  kHardSigmoid /* alpha, beta */,
  kHardSwish,
  kSigmoid,
  kSilu,
  kSwish /* alpha */,
  kTanh,
  kGelu,
  kGeluTanh,
  kElu /* alpha */,
  kSelu /* alpha, gamma */,
  kSoftplus,
  kSoftsign,
  kMish,
  kExp,
  kErf,
};
struct Activation {
  Act act;
  float a, b;  // kClip: lo, hi (infinite when open)
};
bool parse_activation(const Step&, Env&, Activation*);

}  // namespace lite

// Registration: a file `src/isa/gemm.cc` ends with
//     LITE_KERNEL_TABLE(gemm, kGemm)      // kGemm: static const Kernel kGemm[] = {...};
// on a line of its own inside no namespace, by which CMake finds it; one in src/ops/*.cc uses
// LITE_BASE_KERNEL_TABLE. src/kernel_list.inc names those that must come before others, and with
// LITE_ONE_ISA_KERNELS(isa, file) those built for one ISA only. The highest ISA the machine (and the
// limit) allows wins.
#define LITE_KERNEL_TABLE(file, array)                                                 \
  namespace lite {                                                                     \
  namespace LITE_ISA {                                                                 \
  extern const KernelTable file##_kernels;                                             \
  const KernelTable file##_kernels = {array, (int)(sizeof(array) / sizeof(array[0]))}; \
  }                                                                                    \
  }
#define LITE_BASE_KERNEL_TABLE(file, array)                                            \
  namespace lite {                                                                     \
  namespace base {                                                                     \
  extern const KernelTable file##_kernels;                                             \
  const KernelTable file##_kernels = {array, (int)(sizeof(array) / sizeof(array[0]))}; \
  }                                                                                    \
  }
#define LITE_TEXT_(x) #x
#define LITE_TEXT(x) LITE_TEXT_(x)
// The ISA of the file being compiled as text, "avx2".
#define LITE_ISA_NAME LITE_TEXT(LITE_ISA)
