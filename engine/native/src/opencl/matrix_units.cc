// NVIDIA's matrix units through PTX: whether a convolution on them gives the right numbers
// (backends/opencl/matrix_units.py does the same).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "ops/convert.h"

namespace lite::opencl {

namespace {

constexpr int kHeight = 6, kWidth = 8, kChannels = 40, kOutputs = 40, kRows = 64;
constexpr int kPixels = kHeight * kWidth, kDepth = 9 * kChannels, kMostDepth = 9 * kChannels + 64;

struct Numbers {
  float x[kPixels * kChannels], w[kRows * kMostDepth], y[kPixels * kOutputs], bias[kRows];
  uint16_t half[kRows * kMostDepth];
};

// In [-1, 1), with all the bits that the type holds there (fp16: 10), so that none may be lost.
void fill(float* out, int count, bool half, uint32_t* seed) {
  const int bits = half ? 10 : 23;
  for (int i = 0; i < count; ++i) {
    *seed = *seed * 1664525u + 1013904223u;
    out[i] = static_cast<float>(*seed >> (31 - bits)) / static_cast<float>(1 << bits) - 1;
  }
}

double expected(const Numbers& n, int deep, int pixel, int output) {
  double sum = 0;
  for (int tap = 0; tap < 9; ++tap) {
    const int row = pixel / kWidth + tap / 3 - 1, column = pixel % kWidth + tap % 3 - 1;
    if (row < 0 || row >= kHeight || column < 0 || column >= kWidth) continue;
    const float* x = n.x + (row * kWidth + column) * kChannels;
    const float* w = n.w + output * deep + tap * kChannels;
    for (int c = 0; c < kChannels; ++c) sum += static_cast<double>(x[c]) * w[c];
  }
  return sum;
}

struct Trial {
  const ListedDevice& device;
  cl_context context;
  cl_command_queue queue;
  bool half;
  Numbers* numbers;
  cl_mem buffers[4] = {};

  size_t item() const { return half ? 2 : 4; }

  cl_mem buffer(const float* from, int count, bool as_half, cl_int* status) {
    if (*status != CL_SUCCESS) return nullptr;
    const void* data = from;
    if (as_half) {
      floats_to_halves(from, count, numbers->half);
      data = numbers->half;
    }
    return device.cl.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                    count * (as_half ? 2 : 4), const_cast<void*>(data), status);
  }

  cl_int run(cl_program program, int deep) {
    const Functions& cl = device.cl;
    cl_int status = CL_SUCCESS;
    buffers[0] = buffer(numbers->x, kPixels * kChannels, half, &status);
    buffers[1] = buffer(numbers->w, kRows * deep, half, &status);
    buffers[2] = buffer(numbers->bias, kRows, false, &status);
    buffers[3] = buffer(numbers->y, kPixels * kOutputs, half, &status);
    cl_kernel kernel = status == CL_SUCCESS ? cl.clCreateKernel(program, "conv_mma", &status) : nullptr;
    if (status != CL_SUCCESS) return status;
    const int order[] = {0, 1, 2, 3, 3, 2};
    const int32_t sizes[] = {kPixels, kHeight, kWidth, kChannels, kHeight, kWidth, kOutputs, 3, 3,
                             1,       1,       1,      1,         1,       1,      deep,     deep,
                             deep,    kChannels, 0,    kOutputs,  0};
    cl_uint at = 0;
    for (int i : order) status |= cl.clSetKernelArg(kernel, at++, sizeof(cl_mem), &buffers[i]);
    for (int32_t size : sizes) status |= cl.clSetKernelArg(kernel, at++, sizeof size, &size);
    const size_t items[3] = {128, 1, 1};
    if (status == CL_SUCCESS)
      status = cl.clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, items, items, 0, nullptr,
                                         nullptr);
    void* out = half ? static_cast<void*>(numbers->half) : numbers->y;
    if (status == CL_SUCCESS)
      status = cl.clEnqueueReadBuffer(queue, buffers[3], 1, 0, kPixels * kOutputs * item(), out, 0,
                                      nullptr, nullptr);
    if (half) halves_to_floats(numbers->half, kPixels * kOutputs, numbers->y);
    cl.clReleaseKernel(kernel);
    return status;
  }

  void release() {
    for (cl_mem& b : buffers)
      if (b) device.cl.clReleaseMemObject(b);
  }
};

const KernelText* conv_mma() {
  for (int i = 0; const KernelText* text = kernel_text(i); ++i)
    if (strcmp(text->name, "conv_mma") == 0) return text;
  return nullptr;
}

// 3x3 with padding, depth beyond the last whole step.
bool convolves(const ListedDevice& d, cl_context context, cl_command_queue queue, bool half,
               Numbers* n) {
  const int step = half ? 32 : 16, deep = (kDepth + step - 1) / step * step;
  uint32_t seed = 3;
  memset(n, 0, sizeof *n);
  fill(n->x, kPixels * kChannels, half, &seed);
  for (int o = 0; o < kOutputs; ++o) fill(n->w + o * deep, kDepth, half, &seed);
  const KernelText* text = conv_mma();
  char defines[160];
  snprintf(defines, sizeof defines,
           "%s#define BM 64\n#define BN 64\n#define TM 8\n#define STAGES 4\n#define BK %d",
           half ? "#define HALF\n#define OCTS\n" : "", step);
  const char* identity[4] = {"", d.info.name, "", ""};
  Programs programs;
  programs.open(&d.cl, context, d.id, identity, false, nullptr);
  char error[300];
  cl_program program = text ? programs.get(*text, defines, error, sizeof error) : nullptr;
  Trial trial{d, context, queue, half, n};
  const bool ran = program && trial.run(program, deep) == CL_SUCCESS;
  trial.release();
  programs.close();
  if (!ran) return false;
  double wrong = 0, all = 0;
  for (int p = 0; p < kPixels; ++p) {
    for (int o = 0; o < kOutputs; ++o) {
      const double exact = expected(*n, deep, p, o), got = n->y[p * kOutputs + o];
      wrong += (got - exact) * (got - exact);
      all += exact * exact;
    }
  }
  return sqrt(wrong) < (half ? 2e-3 : 1e-6) * sqrt(all);  // what the type of the numbers allows
}

}  // namespace

bool matrix_units_work(const ListedDevice& d, cl_context context, cl_command_queue queue) {
  if (d.info.device_class != DeviceClass::kNvidia) return false;
  Numbers* numbers = static_cast<Numbers*>(malloc(sizeof(Numbers)));
  const bool work = numbers && convolves(d, context, queue, false, numbers) &&
                    convolves(d, context, queue, true, numbers);
  free(numbers);
  return work;
}

}  // namespace lite::opencl
