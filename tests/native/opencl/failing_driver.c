/* The OpenCL library that it is linked with, whose launches fail from number LAUNCHES_BEFORE on,
   builds of programs from number BUILDS_BEFORE, buffers from number BUFFERS_BEFORE; that does not make
   the kernel KERNEL_FAILS, and does not launch the kernel LAUNCH_FAILS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char *name, int *number) {
  const char *before = getenv(name);
  return before && (*number)++ >= atoi(before);
}

typedef int (*launch)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *,
                      unsigned, void *, void *);

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset,
                           const size_t *grid, const size_t *group, unsigned count, void *events,
                           void *event) {
  static int number;
  if (fails("LAUNCHES_BEFORE", &number)) return -36; /* CL_INVALID_COMMAND_QUEUE */
  char name[200] = "";
  const char *not = getenv("LAUNCH_FAILS");
  int (*ask)(void *, unsigned, size_t, void *, size_t *) = dlsym(RTLD_NEXT, "clGetKernelInfo");
  if (not && !ask(kernel, 0x1190 /* CL_KERNEL_FUNCTION_NAME */, sizeof name, name, 0) &&
      !strcmp(name, not))
    return -54; /* CL_INVALID_WORK_GROUP_SIZE */
  launch real = (launch)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
  return real(queue, kernel, dimensions, offset, grid, group, count, events, event);
}

typedef int (*build)(void *, unsigned, void *, const char *, void *, void *);

int clBuildProgram(void *program, unsigned count, void *devices, const char *options, void *call,
                   void *data) {
  static int number;
  if (fails("BUILDS_BEFORE", &number)) return -11; /* CL_BUILD_PROGRAM_FAILURE */
  build real = (build)dlsym(RTLD_NEXT, "clBuildProgram");
  return real(program, count, devices, options, call, data);
}

typedef void *(*create)(void *, unsigned long, size_t, void *, int *);

void *clCreateBuffer(void *context, unsigned long flags, size_t size, void *data, int *status) {
  static int number;
  if (fails("BUFFERS_BEFORE", &number)) {
    *status = -4; /* CL_MEM_OBJECT_ALLOCATION_FAILURE */
    return 0;
  }
  create real = (create)dlsym(RTLD_NEXT, "clCreateBuffer");
  return real(context, flags, size, data, status);
}

typedef void *(*make)(void *, const char *, int *);

void *clCreateKernel(void *program, const char *name, int *status) {
  const char *not = getenv("KERNEL_FAILS");
  if (not && !strcmp(name, not)) {
    *status = -5; /* CL_OUT_OF_RESOURCES */
    return 0;
  }
  make real = (make)dlsym(RTLD_NEXT, "clCreateKernel");
  return real(program, name, status);
}
