// What devices say of themselves.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "device.h"
#include "text.h"

namespace lite::opencl {

namespace {

// A text of a device or platform, without blanks around it; empty when it says nothing.
char* ask_text(const ListedDevice& d, cl_platform_id platform, cl_uint what) {
  size_t size = 0;
  const auto ask = [&](size_t room, char* out) {
    return platform ? d.cl.clGetPlatformInfo(platform, what, room, out, &size)
                    : d.cl.clGetDeviceInfo(d.id, what, room, out, &size);
  };
  char* text = nullptr;
  if (ask(0, nullptr) == CL_SUCCESS && size < (1 << 20))
    text = static_cast<char*>(calloc(1, size + 1));
  if (text && ask(size, text) != CL_SUCCESS) text[0] = 0;
  if (!text) return static_cast<char*>(calloc(1, 1));
  char* start = text + strspn(text, " \t\r\n");
  size_t length = strlen(start);
  while (length && isspace(static_cast<unsigned char>(start[length - 1]))) --length;
  memmove(text, start, length);
  text[length] = 0;
  return text;
}

template <size_t n>
void ask_into(char (&out)[n], const ListedDevice& d, cl_platform_id platform, cl_uint what) {
  char* text = ask_text(d, platform, what);
  snprintf(out, n, "%s", text ? text : "");
  free(text);
}

template <class T>
T ask_number(const ListedDevice& d, cl_uint what) {
  T value{};
  size_t size = 0;
  const cl_int status = d.cl.clGetDeviceInfo(d.id, what, sizeof value, &value, &size);
  return status == CL_SUCCESS ? value : T{};
}

bool has_word(const char* words, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = words; (at = strstr(at, word)); at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

// The extensions that dot products are, as in dot_products.py.
constexpr struct {
  uint8_t feature;
  const char* word;
} kDotExtensions[] = {
    {kDotKhr, "cl_khr_integer_dot_product"},
    {kDotArm, "cl_arm_integer_dot_product_int8"},
    {kDotArmAdd, "cl_arm_integer_dot_product_accumulate_int8"},
    {kDotQcom, "cl_qcom_dot_product8"},
};

bool has_part(const char* text, const char* part) { return strcasestr(text, part) != nullptr; }

constexpr char kHalfText[] =
    "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
    "kernel void h(global half *x, global float *y) {\n"
    "  const half4 a = *(global const half4 *)x;\n"
    "  const half2 s = a.xx * a.xy + a.zw;\n"
    "  y[0] = (float)s.x;\n"
    "  x[4] = s.y;\n"
    "}\n";

// NVIDIA's driver has half arithmetic without listing it: it is asked for what the kernels use.
bool compiles_half(const ListedDevice& d) {
  cl_int status;
  cl_context context = d.cl.clCreateContext(nullptr, 1, &d.id, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return false;
  const char* text = kHalfText;
  cl_program program = d.cl.clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  const bool good = status == CL_SUCCESS && d.cl.clBuildProgram(program, 1, &d.id, "-w", nullptr,
                                                               nullptr) == CL_SUCCESS;
  if (status == CL_SUCCESS) d.cl.clReleaseProgram(program);
  d.cl.clReleaseContext(context);
  return good;
}

void learn(ListedDevice* d, cl_platform_id platform) {
  DeviceInfo* info = &d->info;
  ask_into(info->platform, *d, platform, CL_PLATFORM_NAME);
  ask_into(info->name, *d, nullptr, CL_DEVICE_NAME);
  ask_into(info->vendor, *d, nullptr, CL_DEVICE_VENDOR);
  ask_into(info->version, *d, nullptr, CL_DEVICE_VERSION);
  ask_into(info->driver, *d, nullptr, CL_DRIVER_VERSION);
  info->extensions = ask_text(*d, nullptr, CL_DEVICE_EXTENSIONS);
  const char* extensions = info->extensions ? info->extensions : "";
  const cl_bitfield type = ask_number<cl_bitfield>(*d, CL_DEVICE_TYPE) & 6;
  info->kind = type == CL_DEVICE_TYPE_GPU ? "GPU" : type == CL_DEVICE_TYPE_CPU ? "CPU" : "other";
  info->device_class = class_of(info->kind, info->platform, info->name, info->vendor);
  info->compute_units = ask_number<cl_uint>(*d, CL_DEVICE_MAX_COMPUTE_UNITS);
  info->global_memory = ask_number<cl_ulong>(*d, CL_DEVICE_GLOBAL_MEM_SIZE);
  info->largest_buffer = ask_number<cl_ulong>(*d, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info->local_memory = ask_number<cl_ulong>(*d, CL_DEVICE_LOCAL_MEM_SIZE);
  info->group_size = ask_number<size_t>(*d, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  size_t size = 0;
  d->cl.clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof info->group_sizes,
                        info->group_sizes, &size);
  info->buffer_align = ask_number<cl_uint>(*d, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  const cl_uint width = ask_number<cl_uint>(*d, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  info->lanes = width >= 16 ? 16 : width >= 8 ? 8 : 4;
  if (d->cl.clCreateImage && ask_number<cl_bool>(*d, CL_DEVICE_IMAGE_SUPPORT)) {
    info->image_columns = ask_number<size_t>(*d, CL_DEVICE_IMAGE2D_MAX_WIDTH);
    info->image_rows = ask_number<size_t>(*d, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
  }
  info->fp16 = has_word(extensions, "cl_khr_fp16") ||
               (has_part(info->platform, "NVIDIA") && compiles_half(*d));
  for (const auto& [feature, word] : kDotExtensions)
    if (has_word(extensions, word)) info->dots |= feature;
  info->fast_fma = type == CL_DEVICE_TYPE_CPU &&
                   (ask_number<cl_bitfield>(*d, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_FMA);
  info->unified_memory = ask_number<cl_bool>(*d, CL_DEVICE_HOST_UNIFIED_MEMORY);
}

// Multiplies four numbers by 2 on the device; the first error.
cl_int twice(const ListedDevice& d, cl_context context, float values[4], char* log, size_t bytes) {
  const Functions& cl = d.cl;
  const char* text = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }";
  const size_t items = 4;
  cl_int status, release;
  cl_command_queue queue = cl.clCreateCommandQueue(context, d.id, 0, &status);
  if (status != CL_SUCCESS) return status;
  cl_program program = cl.clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  cl_kernel kernel = nullptr;
  cl_mem buffer = nullptr;
  if (status == CL_SUCCESS) {
    status = cl.clBuildProgram(program, 1, &d.id, "-w", nullptr, nullptr);
    if (status != CL_SUCCESS) build_error(cl, program, d.id, log, bytes);
  }
  if (status == CL_SUCCESS) kernel = cl.clCreateKernel(program, "twice", &status);
  if (status == CL_SUCCESS)
    buffer = cl.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 16, values,
                               &status);
  if (status == CL_SUCCESS) status = cl.clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
  if (status == CL_SUCCESS)
    status = cl.clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr,
                                       nullptr);
  if (status == CL_SUCCESS)
    status = cl.clEnqueueReadBuffer(queue, buffer, 1, 0, 16, values, 0, nullptr, nullptr);
  release = buffer ? cl.clReleaseMemObject(buffer) : 0;
  release |= kernel ? cl.clReleaseKernel(kernel) : 0;
  release |= program ? cl.clReleaseProgram(program) : 0;
  release |= cl.clReleaseCommandQueue(queue);
  return status != CL_SUCCESS ? status : release;
}

}  // namespace

const char* feature_name(uint8_t features) {
  if (features & kFp16) return "half arithmetic";
  if (features & kMatrixUnits) return "matrix units";
  for (const auto& [feature, word] : kDotExtensions)
    if (features & feature) return word;
  return "a feature that this runtime does not know";
}

const char* class_name(DeviceClass device_class) {
  static const char* const kNames[] = {"cpu", "gpu", "nvidia", "mali", "adreno"};
  return kNames[static_cast<int>(device_class)];
}

DeviceClass class_of(const char* kind, const char* platform, const char* name,
                     const char* vendor) {
  const auto any_has = [&](const char* part) {
    return has_part(platform, part) || has_part(name, part) || has_part(vendor, part);
  };
  if (strcmp(kind, "CPU") == 0) return DeviceClass::kCpu;
  // Other platforms on NVIDIA's GPUs take no PTX.
  if (has_part(platform, "nvidia")) return DeviceClass::kNvidia;
  if (any_has("qualcomm") || any_has("adreno")) return DeviceClass::kAdreno;
  return any_has("mali") ? DeviceClass::kMali : DeviceClass::kGpu;
}

int list_devices(const Platform& platform, ListedDevice* out, int room) {
  cl_device_id ids[kMaxDevices];
  cl_uint found = 0;
  const cl_int status =
      platform.cl.clGetDeviceIDs(platform.id, CL_DEVICE_TYPE_ALL, kMaxDevices, ids, &found);
  if (status != CL_SUCCESS) return 0;  // a platform without devices
  int count = 0;
  for (cl_uint i = 0; i < found && i < kMaxDevices && count < room; ++i) {
    ListedDevice* d = &out[count++];
    *d = ListedDevice();
    d->cl = platform.cl;
    d->id = ids[i];
    learn(d, platform.id);
  }
  return count;
}

bool runs_trivially(const ListedDevice& d, char* reason, size_t reason_bytes) {
  cl_int status;
  cl_context context = d.cl.clCreateContext(nullptr, 1, &d.id, nullptr, nullptr, &status);
  if (status != CL_SUCCESS)
    return say(reason, reason_bytes, "a trivial kernel does not run: %s", error_name(status));
  float values[4] = {0, 1, 2, 3};
  char log[200] = "";
  status = twice(d, context, values, log, sizeof log);
  d.cl.clReleaseContext(context);
  if (status != CL_SUCCESS)
    return say(reason, reason_bytes, "a trivial kernel does not run: %s",
               *log ? log : error_name(status));
  for (int i = 0; i < 4; ++i)
    if (values[i] != 2 * i) return say(reason, reason_bytes, "a trivial kernel gives wrong numbers");
  return true;
}

}  // namespace lite::opencl
