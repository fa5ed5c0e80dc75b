#include "lite_run_check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "screen.h"

namespace {

// Relative L2 error of outputs: what half storage of every layer explains, or sums in another order.
constexpr double kHalfTolerance = 2e-2, kTolerance = 1e-3;
constexpr int kFloat32 = 1, kFloat16 = 2, kBfloat16 = 3, kFloat64 = 4, kBool = 13;

struct Difference {
  double error, norm;  // sums of squares
  size_t others;       // of values that are no floats, or finite in one of the two only
};

Difference difference(const lite_tensor_info& t, const void* a, const void* b) {
  Difference d{};
  if (t.dtype != kFloat32) {
    d.others = memcmp(a, b, t.bytes) != 0;
    return d;
  }
  const float *x = static_cast<const float*>(a), *y = static_cast<const float*>(b);
  for (size_t i = 0; i < t.bytes / sizeof(float); ++i) {
    if (!isfinite(x[i]) || !isfinite(y[i])) {
      d.others += memcmp(&x[i], &y[i], sizeof(float)) != 0 && !(isnan(x[i]) && isnan(y[i]));
      continue;
    }
    d.error += (static_cast<double>(x[i]) - y[i]) * (static_cast<double>(x[i]) - y[i]);
    d.norm += static_cast<double>(y[i]) * y[i];
  }
  return d;
}

// Whether a step reads or writes halves.
bool has_halves(const lite_program* p) {
  for (int i = 0; i < lite_program_num_steps(p); ++i) {
    lite_step_info step;
    if (lite_program_step(p, i, &step) == 0 && strncmp(step.variant, "f16_", 4) == 0) return true;
  }
  return false;
}

// The first layer of a device that goes wrong, which is said; false where none does.
bool find_layer(lite_program* p, double tolerance, lite_layer_check* found) {
  char error[300];
  const int count = lite_program_check(p, tolerance, found, error, sizeof error);
  if (count < 0) say_line(stdout, "layers: not compared: %s", error);
  if (count > 0 && !found->name) say_line(stdout, "layers: %d agree with the CPU to %.0e", count, tolerance);
  if (count > 0 && found->name)
    say_line(stdout, "layer '%s' (%s, %s) is the first of %d that differs from the CPU: relative error %.2g, "
             "value %lld is %.7g instead of %.7g", found->name, found->op, found->kernel, count, found->error,
             static_cast<long long>(found->index), found->device, found->cpu);
  return count > 0 && found->name;
}

bool outputs_agree(lite_program* p, lite_program* other, double tolerance, char* error, size_t error_bytes) {
  for (int i = 0; i < lite_program_num_outputs(p); ++i) {
    lite_tensor_info mine, theirs;
    const int a = lite_program_output(p, i), b = lite_program_output(other, i);
    lite_program_tensor(p, a, &mine);
    lite_program_tensor(other, b, &theirs);
    if (mine.bytes != theirs.bytes || mine.dtype != theirs.dtype) {
      snprintf(error, error_bytes, "output '%s' has another shape on the CPU", mine.name);
      return false;
    }
    const Difference d = difference(mine, lite_program_data(p, a), lite_program_data(other, b));
    const double relative = d.norm > 0 ? sqrt(d.error / d.norm) : sqrt(d.error);
    say_line(stdout, "output '%s': relative error %.2g against the CPU", mine.name, relative);
    if (relative <= tolerance && !d.others) continue;
    snprintf(error, error_bytes,
             "output '%s' differs from the CPU's: relative error %.2g, %zu other values; run with "
             "--backend cpu", mine.name, relative, d.others);
    return false;
  }
  return true;
}

// Layers that the CPU took over because they were wrong on the device.
class Corrections {
 public:
  // The layer, or all that its kernel runs where one of them was wrong before. False where the device
  // keeps it.
  bool move(lite_program* p, const lite_layer_check& wrong) {
    char variant[sizeof variants_[0]], reason[200], error[300];
    snprintf(variant, sizeof variant, "%s", wrong.kernel);
    snprintf(reason, sizeof reason, "%.80s is wrong on this device (relative error %.2g)", wrong.kernel,
             wrong.error);
    const char* layers[kMost] = {wrong.name};
    int count = 1;
    const bool again = known(variant);
    for (int i = 0; again && i < lite_program_num_steps(p) && count < kMost; ++i) {
      lite_step_info step;
      lite_program_step(p, i, &step);
      if (strcmp(step.variant, variant) == 0 && strcmp(step.name, wrong.name) != 0) layers[count++] = step.name;
    }
    if (!again && count_ < kMost) snprintf(variants_[count_++], sizeof variant, "%s", variant);
    if (lite_program_leave(p, layers, count, reason, error, sizeof error)) {
      say_line(stdout, "layer '%s' stays on the device: %s", wrong.name, error);
      return false;
    }
    return true;
  }

 private:
  static constexpr int kMost = 256;

  bool known(const char* variant) const {
    for (int i = 0; i < count_; ++i)
      if (strcmp(variants_[i], variant) == 0) return true;
    return false;
  }

  char variants_[kMost][96];
  int count_ = 0;
};

}  // namespace

void fill_with_numbers(const lite_tensor_info& info, void* data) {
  uint8_t* bytes = static_cast<uint8_t*>(data);
  size_t count = 1;
  for (int d = 0; d < info.rank; ++d) count *= static_cast<size_t>(info.dims[d]);
  const size_t width = count ? info.bytes / count : 0;
  uint32_t state = 1;  // a linear congruential generator: the same numbers in every run
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    uint64_t word = state >> 24 & (width == 1 && info.dtype != kBool ? 255 : 1);
    const float number = static_cast<float>(state >> 8) * (2.0f / (1 << 24)) - 1.0f;
    const double wide = number;
    if (info.dtype == kFloat32) memcpy(&word, &number, sizeof number);
    if (info.dtype == kFloat64) memcpy(&word, &wide, sizeof wide);
    if (info.dtype == kFloat16) word = (state >> 16 & 0x83ff) | 0x3800;   // from 0.5 to 1, and from -1 to -0.5
    if (info.dtype == kBfloat16) word = (state >> 16 & 0x807f) | 0x3f00;  // the same
    memcpy(bytes + i * width, &word, width);
  }
}

bool agrees_with_cpu(lite_file* file, lite_program* p, const lite_options& options, char* error,
                     size_t error_bytes) {
  lite_options cpu = options;
  cpu.backend = 1;
  cpu.precision = nullptr;
  lite_program* other = lite_file_program(file, nullptr, &cpu, error, error_bytes);
  if (!other) return false;
  bool good = lite_program_num_inputs(p) == lite_program_num_inputs(other) &&
              lite_program_num_outputs(p) == lite_program_num_outputs(other);
  if (!good) snprintf(error, error_bytes, "the program for the CPU has other inputs or outputs");
  for (int i = 0; good && i < lite_program_num_inputs(p); ++i) {
    lite_tensor_info t;
    const int tensor = lite_program_input(p, i);
    lite_program_tensor(p, tensor, &t);
    good = lite_program_bind(other, lite_program_find(other, t.name),
                             lite_program_data(p, tensor), t.bytes) == 0;
    if (!good) snprintf(error, error_bytes, "input '%s' is another one on the CPU", t.name);
  }
  good = good && lite_program_run(other, error, error_bytes) == 0 && lite_program_run(p, error, error_bytes) == 0;
  const double tolerance = has_halves(p) ? kHalfTolerance : kTolerance;
  Corrections corrections;
  // A turn for each layer that goes wrong, at most.
  for (bool ran = good; ran;) {
    lite_layer_check wrong;
    good = outputs_agree(p, other, tolerance, error, error_bytes);
    const bool found = find_layer(p, tolerance, &wrong);
    if (good || !found || !corrections.move(p, wrong)) break;
    ran = good = lite_program_run(p, error, error_bytes) == 0;
  }
  lite_program_free(other);
  return good;
}
