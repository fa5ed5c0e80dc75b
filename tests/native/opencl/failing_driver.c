/* The OpenCL library that it is linked with, whose launches fail from number LAUNCHES_BEFORE on,
   builds of programs from number BUILDS_BEFORE, buffers from number BUFFERS_BEFORE, kernels from number
   KERNELS_BEFORE; that does not make the kernel KERNEL_FAILS, and does not launch the kernel LAUNCH_FAILS, or LAUNCH_FORGOTTEN, of which
   it says that it did (without an event), and says that it has LOCAL_MEMORY bytes of local memory. */
#include "replaced.h"

enum { DEVICE_INFO = 3, CREATE_BUFFER = 14, BUILD = 30, CREATE_KERNEL = 34, KERNEL_INFO = 39, LAUNCH = 59 };

static void *original(const char *name, int index) {
  return table ? table[index] : dlsym(RTLD_NEXT, name);
}

typedef int (*info)(void *, unsigned, size_t, void *, size_t *);

int clGetDeviceInfo(void *device, unsigned what, size_t room, void *out, size_t *needed) {
  const char *bytes = getenv("LOCAL_MEMORY");
  if (bytes && what == 0x1023 /* CL_DEVICE_LOCAL_MEM_SIZE */ && out && room == 8) {
    *(unsigned long *)out = strtoul(bytes, 0, 10);
    return 0;
  }
  return ((info)original("clGetDeviceInfo", DEVICE_INFO))(device, what, room, out, needed);
}

typedef int (*launch)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *,
                      unsigned, void *, void *);

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset,
                           const size_t *grid, const size_t *group, unsigned count, void *events,
                           void *event) {
  static int number;
  if (fails("LAUNCHES_BEFORE", &number)) return -36; /* CL_INVALID_COMMAND_QUEUE */
  char name[200] = "";
  const char *not = getenv("LAUNCH_FAILS"), *forgotten = getenv("LAUNCH_FORGOTTEN");
  int (*ask)(void *, unsigned, size_t, void *, size_t *) = original("clGetKernelInfo", KERNEL_INFO);
  ask(kernel, 0x1190 /* CL_KERNEL_FUNCTION_NAME */, sizeof name, name, 0);
  if (not && !strcmp(name, not)) return -54; /* CL_INVALID_WORK_GROUP_SIZE */
  if (forgotten && !strcmp(name, forgotten)) return 0;
  launch real = (launch)original("clEnqueueNDRangeKernel", LAUNCH);
  return real(queue, kernel, dimensions, offset, grid, group, count, events, event);
}

typedef int (*build)(void *, unsigned, void *, const char *, void *, void *);

int clBuildProgram(void *program, unsigned count, void *devices, const char *options, void *call,
                   void *data) {
  static int number;
  if (fails("BUILDS_BEFORE", &number)) return -11; /* CL_BUILD_PROGRAM_FAILURE */
  build real = (build)original("clBuildProgram", BUILD);
  return real(program, count, devices, options, call, data);
}

typedef void *(*create)(void *, unsigned long, size_t, void *, int *);

void *clCreateBuffer(void *context, unsigned long flags, size_t size, void *data, int *status) {
  static int number;
  if (fails("BUFFERS_BEFORE", &number)) {
    *status = -4; /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    return 0;
  }
  create real = (create)original("clCreateBuffer", CREATE_BUFFER);
  return real(context, flags, size, data, status);
}

typedef void *(*make)(void *, const char *, int *);

void *clCreateKernel(void *program, const char *name, int *status) {
  static int number;
  const char *not = getenv("KERNEL_FAILS");
  if (fails("KERNELS_BEFORE", &number) || (not && !strcmp(name, not))) {
    *status = -5; /* CL_OUT_OF_RESOURCES */
    return 0;
  }
  make real = (make)original("clCreateKernel", CREATE_KERNEL);
  return real(program, name, status);
}

static void replace(void) {
  changed[DEVICE_INFO] = clGetDeviceInfo;
  changed[CREATE_BUFFER] = clCreateBuffer;
  changed[BUILD] = clBuildProgram;
  changed[CREATE_KERNEL] = clCreateKernel;
  changed[LAUNCH] = clEnqueueNDRangeKernel;
}
