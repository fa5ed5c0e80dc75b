// OpenCL 1.2 as far as the runtime calls it: types and numbers of the specification, declared here
// so that nothing is needed to build and nothing is linked. `Functions` is filled at run time.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = uint32_t;
using cl_bitfield = uint64_t;
using cl_platform_id = struct cl_platform_record*;
using cl_device_id = struct cl_device_record*;
using cl_context = struct cl_context_record*;
using cl_command_queue = struct cl_queue_record*;
using cl_mem = struct cl_mem_record*;
using cl_program = struct cl_program_record*;
using cl_kernel = struct cl_kernel_record*;
using cl_event = struct cl_event_record*;
using cl_context_properties = intptr_t;

struct cl_image_format {
  cl_uint channel_order, channel_type;
};
struct cl_image_desc {
  cl_uint type;
  size_t width, height, depth, array_size, row_pitch, slice_pitch;
  cl_uint mip_levels, samples;
  cl_mem buffer;
};
struct cl_buffer_region {
  size_t origin, size;
};

enum : cl_int {
  CL_SUCCESS = 0,
  CL_DEVICE_NOT_FOUND = -1,
  CL_DEVICE_NOT_AVAILABLE = -2,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_OUT_OF_HOST_MEMORY = -6,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_MAP_FAILURE = -12,
  CL_INVALID_BINARY = -42,
};
enum : cl_uint {
  CL_PLATFORM_VERSION = 0x0901,
  CL_PLATFORM_NAME = 0x0902,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_IMAGE2D_MAX_WIDTH = 0x1011,
  CL_DEVICE_IMAGE2D_MAX_HEIGHT = 0x1012,
  CL_DEVICE_IMAGE_SUPPORT = 0x1016,
  CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,  // bits
  CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_NAME = 0x102B,
  CL_DEVICE_VENDOR = 0x102C,
  CL_DRIVER_VERSION = 0x102D,
  CL_DEVICE_VERSION = 0x102F,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
  CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_NUM_ARGS = 0x1191,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
  CL_PROFILING_COMMAND_START = 0x1282,
  CL_PROFILING_COMMAND_END = 0x1283,
  CL_UNSIGNED_INT32 = 0x10DC,
  CL_HALF_FLOAT = 0x10DD,
  CL_FLOAT = 0x10DE,
  CL_RGBA = 0x10B5,
  CL_MEM_OBJECT_IMAGE2D = 0x10F1,
  CL_BUFFER_CREATE_TYPE_REGION = 0x1220,
};
enum : cl_bitfield {
  CL_DEVICE_TYPE_CPU = 2,
  CL_DEVICE_TYPE_GPU = 4,
  CL_DEVICE_TYPE_ALL = 0xFFFFFFFF,
  CL_FP_FMA = 1 << 5,
  CL_QUEUE_PROFILING_ENABLE = 2,
  CL_MEM_READ_WRITE = 1,
  CL_MEM_WRITE_ONLY = 2,
  CL_MEM_READ_ONLY = 4,
  CL_MEM_USE_HOST_PTR = 8,
  CL_MEM_ALLOC_HOST_PTR = 16,
  CL_MEM_COPY_HOST_PTR = 32,
  CL_MAP_READ = 1,
  CL_MAP_WRITE = 2,
};

// Functions of one platform. Those of OpenCL 1.2 are null where a driver has only 1.1.
struct Functions {
#define LITE_CL(result, name, index, arguments) result(*name) arguments;
#include "functions.inc"
#undef LITE_CL
};

// "CL_OUT_OF_RESOURCES"; "error -9999" for a number that is not of the specification.
const char* error_name(cl_int status);

}  // namespace lite::opencl
