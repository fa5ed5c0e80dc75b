// Devices as JSON, written by the process that asks the driver.
#include <unistd.h>

#include "device.h"
#include "text.h"

namespace lite::opencl {

namespace {

const char* truth(bool value) { return value ? "true" : "false"; }

bool try_matrix_units(const ListedDevice& d) {
  if (d.info.device_class != DeviceClass::kNvidia || !d.info.fp16) return false;
  cl_int status;
  cl_context context = d.cl.clCreateContext(nullptr, 1, &d.id, nullptr, nullptr, &status);
  if (status != CL_SUCCESS) return false;
  cl_command_queue queue = d.cl.clCreateCommandQueue(context, d.id, 0, &status);
  const bool work = status == CL_SUCCESS && matrix_units_work(d, context, queue);
  if (status == CL_SUCCESS) d.cl.clReleaseCommandQueue(queue);
  d.cl.clReleaseContext(context);
  return work;
}

void describe(const ListedDevice& d, const char* reason, Text* out) {
  const DeviceInfo& info = d.info;
  const struct {
    const char *key, *text;
  } texts[] = {{"platform", info.platform}, {"name", info.name},
               {"vendor", info.vendor},     {"kind", info.kind},
               {"device_class", class_name(info.device_class)}, {"version", info.version},
               {"driver", info.driver},     {"extensions", info.extensions ? info.extensions : ""},
               {"reason", reason}};
  out->add("{");
  for (const auto& t : texts) {
    out->add("\"%s\": ", t.key);
    out->add_json(t.text);
    out->add(", ");
  }
  out->add("\"compute_units\": %u, \"global_memory_bytes\": %llu, \"largest_buffer_bytes\": %llu, "
           "\"local_memory_bytes\": %llu, \"work_group_size\": %zu, \"work_item_sizes\": "
           "[%zu, %zu, %zu], \"lanes\": %d, \"images\": [%u, %u], \"fp16\": %s, "
           "\"integer_dot\": %s, \"fast_fma\": %s, \"unified_memory\": %s, \"matrix_units\": %s}",
           info.compute_units, static_cast<unsigned long long>(info.global_memory),
           static_cast<unsigned long long>(info.largest_buffer),
           static_cast<unsigned long long>(info.local_memory), info.group_size,
           info.group_sizes[0], info.group_sizes[1], info.group_sizes[2], info.lanes,
           info.image_columns, info.image_rows, truth(info.fp16), truth(info.dots & kDotKhr),
           truth(info.fast_fma), truth(info.unified_memory), truth(info.matrix_units));
}

}  // namespace

void describe_devices(const Platform& platform, bool tried, int fd) {
  if (!tried) {
    cl_uint count = 0;
    platform.cl.clGetDeviceIDs(platform.id, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    return;
  }
  static ListedDevice devices[kMaxDevices];
  const int count = list_devices(platform, devices, kMaxDevices);
  for (int i = 0; i < count; ++i) {
    char reason[256] = "";
    if (runs_trivially(devices[i], reason, sizeof reason))
      devices[i].info.matrix_units = try_matrix_units(devices[i]);
    Text line;
    line.add("D ");
    describe(devices[i], reason, &line);
    line.add("\n");
    for (size_t at = 0; at < line.size;) {
      const ssize_t done = write(fd, line.data + at, line.size - at);
      if (done <= 0) break;
      at += done;
    }
    line.release();
  }
}

}  // namespace lite::opencl
