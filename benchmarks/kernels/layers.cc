// Times and checks single convolution layers, straight through the kernel interface.
//
//   layers [--check] [--threads N] [--isa NAME] [--seconds S] [--cold MB] < layers.txt
//
// One layer per line: kernel H W C N kh kw stride pad dilation group activation residual
// (activation "-" for none). Prints the minimal ms and GFLOP/s; --check also compares float layers
// with a double-precision loop; --cold writes so many MB of other data
// between runs (2: past the second-level cache, 64: past all caches).
// Integer kernels (i8_...) run on u8 activations and i8 weights.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <string>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/dispatch.h"
#include "runtime/thread_pool.h"

using namespace lite;

namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

struct Random {
  uint32_t state = 1;
  float next() {
    state = state * 1664525u + 1013904223u;
    return static_cast<int32_t>(state >> 8) / 8388608.0f - 1.0f;
  }
};

struct Buffer {
  std::vector<float> memory;
  Tensor tensor{};
  void make(const char* name, std::vector<int64_t> dims, Role role, Random* random,
            DType dtype = DType::kF32) {
    tensor.name = name;
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.rank = static_cast<uint8_t>(dims.size());
    tensor.size = 1;
    for (size_t i = 0; i < dims.size(); ++i) tensor.size *= tensor.dims[i] = dims[i];
    tensor.pitch = dims.back();
    tensor.bytes = tensor.size * dtype_bytes(dtype);
    memory.assign(tensor.size + 16, 0.0f);
    if (random) for (float& v : memory) v = random->next();
    uintptr_t at = reinterpret_cast<uintptr_t>(memory.data());
    tensor.data = reinterpret_cast<uint8_t*>((at + 63) / 64 * 64);
    if (random && dtype == DType::kI32) memset(tensor.data, 0, tensor.bytes);
  }
};

// Activations as they are without parameters, which the layers' lines do not have.
double apply(const std::string& act, double v) {
  if (act == "Relu") return v > 0 ? v : 0;
  if (act == "HardSwish") return v * fmin(fmax(v / 6 + 0.5, 0), 1);
  if (act == "HardSigmoid") return fmin(fmax(0.2 * v + 0.5, 0), 1);
  if (act == "LeakyRelu") return v > 0 ? v : 0.01 * v;
  if (act == "Sigmoid") return 1 / (1 + exp(-v));
  if (act == "Silu") return v / (1 + exp(-v));
  return v;
}

struct Layer {
  char kernel[64], act[32];
  int h, w, c, n, kh, kw, s, p, d, g, residual;
};

double reference_error(const Layer& l, int oh, int ow, const float* x, const float* w,
                       const float* b, const float* r, const float* y, bool transposed) {
  const int cg = l.c / l.g, ng = l.n / l.g;
  double worst = 0, square = 0;
  Random pick;
  const long total = static_cast<long>(oh) * ow * l.n;
  const int samples = total < 20000 ? static_cast<int>(total) : 20000;
  for (int q = 0; q < samples; ++q) {
    const long e = samples == total ? q
                                    : static_cast<long>((pick.next() + 1) / 2 * (total - 1));
    const int n = e % l.n, ox = e / l.n % ow, oy = static_cast<int>(e / l.n / ow), g = n / ng;
    double sum = b[n];
    for (int ky = 0; ky < l.kh; ++ky)
      for (int kx = 0; kx < l.kw; ++kx) {
        int iy = oy * l.s - l.p + ky * l.d, ix = ox * l.s - l.p + kx * l.d;
        if (transposed) {
          iy = oy + l.p - ky * l.d, ix = ox + l.p - kx * l.d;
          if (iy % l.s || ix % l.s) continue;
          iy /= l.s, ix /= l.s;
        }
        if (iy < 0 || ix < 0 || iy >= l.h || ix >= l.w) continue;
        for (int c = 0; c < cg; ++c) {
          const long at = transposed
                              ? ((static_cast<long>(g * cg + c) * ng + n % ng) * l.kh + ky) * l.kw + kx
                              : ((static_cast<long>(n) * cg + c) * l.kh + ky) * l.kw + kx;
          sum += static_cast<double>(x[(static_cast<long>(iy) * l.w + ix) * l.c + g * cg + c]) * w[at];
        }
      }
    if (r) sum += r[e];
    sum = apply(l.act, sum);
    worst = fmax(worst, fabs(sum - y[e]));
    if (!(fabs(y[e]) < 1e30)) worst = INFINITY;
    square += sum * sum;
  }
  return worst / sqrt(square / samples + 1e-30);
}

struct Work {
  const Step* step;
  int threads, phases;
  Barrier* barrier;
  std::vector<void*>* scratch;
};
void work(void* context, int thread) {
  const Work& w = *static_cast<Work*>(context);
  for (int phase = 0; phase < w.phases; ++phase) {
    w.step->kernel->run(*w.step, phase, thread, w.threads, (*w.scratch)[thread]);
    w.barrier->wait(w.threads, [] {});
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool check = false;
  size_t cold_bytes = 0;
  int threads = 1;
  const char* max_isa = nullptr;
  double seconds = 0.05;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--check")) check = true;
    else if (!strcmp(argv[i], "--cold")) cold_bytes = strtoul(argv[++i], nullptr, 10) << 20;
    else if (!strcmp(argv[i], "--threads")) threads = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--isa")) max_isa = argv[++i];
    else if (!strcmp(argv[i], "--seconds")) seconds = atof(argv[++i]);
  }
  ThreadPool* pool = acquire_pool(threads, false);
  std::vector<float> flush(cold_bytes / sizeof(float));
  char line[512];
  Layer l;
  double total_ms = 0, total_flop = 0;
  int bad = 0;
  while (fgets(line, sizeof line, stdin)) {
    if (line[0] == '#' ||
        sscanf(line, "%63s %d %d %d %d %d %d %d %d %d %d %31s %d", l.kernel, &l.h, &l.w, &l.c, &l.n,
               &l.kh, &l.kw, &l.s, &l.p, &l.d, &l.g, l.act, &l.residual) != 13)
      continue;
    const bool transposed = strstr(l.kernel, "deconv") != nullptr;
    const int rh = (l.kh - 1) * l.d + 1, rw = (l.kw - 1) * l.d + 1;
    const int oh = transposed ? (l.h - 1) * l.s + rh - 2 * l.p : (l.h + 2 * l.p - rh) / l.s + 1;
    const int ow = transposed ? (l.w - 1) * l.s + rw - 2 * l.p : (l.w + 2 * l.p - rw) / l.s + 1;
    Random random;
    Buffer x, w, b, r, y;
    const bool bytes = strncmp(l.kernel, "i8_", 3) == 0;
    const DType type = bytes ? DType::kU8 : DType::kF32, w_type = bytes ? DType::kI8 : DType::kF32;
    x.make("x", {1, l.h, l.w, l.c}, Role::kInput, &random, type);
    if (transposed) w.make("w", {l.c, l.n / l.g, l.kh, l.kw}, Role::kWeight, &random);
    else w.make("w", {l.n, l.c / l.g, l.kh, l.kw}, Role::kWeight, &random, w_type);
    b.make("b", {l.n}, Role::kWeight, &random, bytes ? DType::kI32 : DType::kF32);
    y.make("y", {1, oh, ow, l.n}, Role::kOutput, nullptr, type);
    if (l.residual) r.make("r", {1, oh, ow, l.n}, Role::kArena, &random);
    Tensor* const residual = l.residual ? &r.tensor : nullptr;
    Tensor* inputs[9] = {&x.tensor, &w.tensor, &b.tensor, residual};
    Tensor* const integer_inputs[9] = {&x.tensor, nullptr, nullptr, &w.tensor, nullptr,
                                       nullptr,   nullptr, nullptr, &b.tensor};
    if (bytes) memcpy(inputs, integer_inputs, sizeof inputs);
    Tensor* outputs[] = {&y.tensor};
    const int64_t strides[] = {l.s, l.s}, dilations[] = {l.d, l.d}, group[] = {l.g};
    const int64_t pads[] = {l.p, l.p, l.p, l.p};
    const double scale[] = {0.01};
    Attr attrs[8] = {};
    attrs[0] = {"strides", AttrKind::kInts, 2, {strides}};
    attrs[1] = {"dilations", AttrKind::kInts, 2, {dilations}};
    attrs[2] = {"pads", AttrKind::kInts, 4, {pads}};
    attrs[3] = {"group", AttrKind::kInts, 1, {group}};
    attrs[4].name = "activation";
    attrs[4].kind = AttrKind::kString;
    attrs[4].string = strcmp(l.act, "-") ? l.act : "";
    const char* scales[] = {"x_scale", "w_scale", "y_scale"};
    for (int i = 0; i < 3; ++i) {
      attrs[5 + i].name = scales[i];
      attrs[5 + i].kind = AttrKind::kFloats;
      attrs[5 + i].count = 1;
      attrs[5 + i].floats = scale;
    }
    Step step{};
    step.name = "layer";
    step.op = bytes ? "QLinearConv" : transposed ? "ConvTranspose" : "Conv";
    step.num_inputs = bytes ? 9 : 4;
    step.num_outputs = 1;
    step.num_attrs = bytes ? 8 : 5;
    step.inputs = inputs;
    step.outputs = outputs;
    step.attrs = attrs;
    step.phases = 1;
    Allocator allocator{};
    char error[256] = "";
    Env env{};
    env.threads = threads;
    if (!detect_cpu(max_isa, &env.cpu)) {
      fprintf(stderr, "error: --isa %s is none of: %s\n", max_isa, isa_text());
      return 1;
    }
    detect_caches(&env.l1_bytes, &env.l2_bytes);
    env.allocator = &allocator;
    env.error = error;
    env.error_bytes = sizeof error;
    const char* isa;
    step.kernel = find_kernel(l.kernel, env.cpu, &step, &env, &isa);
    if (!step.kernel) {
      printf("no kernel %s\n", l.kernel);
      return 1;
    }
    if (!step.kernel->prepare(step, env)) {
      printf("%s: %s\n", line, error);
      allocator.release();
      continue;
    }
    step.shared = aligned_alloc(64, (step.shared_bytes / 64 + 2) * 64);
    std::vector<void*> scratch;
    for (int i = 0; i < threads; ++i)
      scratch.push_back(aligned_alloc(64, (step.scratch_bytes / 64 + 2) * 64));
    Barrier barrier;
    Work task{&step, threads, step.phases, &barrier, &scratch};
    double best = 1e9, start = now();
    int runs = 0;
    do {
      for (size_t i = 0; i < flush.size(); i += 16) flush[i] += 1;
      const double t0 = now();
      run_on_pool(pool, work, &task);
      const double t = now() - t0;
      if (t < best) best = t;
    } while (++runs < 3 || now() - start < seconds);
    const double flop = 2.0 * (transposed ? l.h * l.w : oh * ow) * l.n * (l.c / l.g) * l.kh * l.kw;
    total_ms += best * 1e3;
    total_flop += flop;
    printf("%4dx%-4d %4d->%-4d k%dx%d s%d g%-4d %9.4f ms %7.1f GFLOP/s  %s", l.h, l.w, l.c, l.n,
           l.kh, l.kw, l.s, l.g, best * 1e3, flop / best * 1e-9, step.variant);
    if (check && !bytes) {
      const double e =
          reference_error(l, oh, ow, x.tensor.as<float>(), w.tensor.as<float>(),
                          b.tensor.as<float>(), l.residual ? r.tensor.as<float>() : nullptr,
                          y.tensor.as<float>(), transposed);
      printf("  error %.1e%s", e, e < 1e-4 ? "" : "  WRONG");
      bad += !(e < 1e-4);
    }
    printf("\n");
    for (void* p : scratch) free(p);
    free(step.shared);
    allocator.release();
  }
  printf("total %.3f ms, %.1f GFLOP/s\n", total_ms, total_flop / total_ms * 1e-6);
  release_pool(pool);
  return bad != 0;
}
