/* The OpenCL library that it is linked with, whose launches fail from number LAUNCHES_BEFORE on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

typedef int (*launch)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *,
                      unsigned, void *, void *);

int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset,
                           const size_t *grid, const size_t *group, unsigned count, void *events,
                           void *event) {
  static int number;
  const char *before = getenv("LAUNCHES_BEFORE");
  if (before && number++ >= atoi(before)) return -36; /* CL_INVALID_COMMAND_QUEUE */
  launch real = (launch)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
  return real(queue, kernel, dimensions, offset, grid, group, count, events, event);
}
