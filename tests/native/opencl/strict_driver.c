/* The OpenCL library that it is linked with, as strict as the specification: the host sees a buffer through
   mappings only. Each is a block of its own, filled from the buffer, at another address each time, without
   rights to write where it is mapped to be read, written back when it is unmapped, and nobody's memory then.
   Kernels and copies are refused (CL_INVALID_OPERATION) while the host may write what they use, and kernels
   that write what the host reads. MAPS_BEFORE, UNMAPS_BEFORE, READS_BEFORE: from that number on they fail.
   The device says that it shares the host's memory, with UNIFIED=0 that it does not. COUNTS names a file that gets a line for each map,
   unmap, read and write, and for each buffer that is released while it is mapped: M, U, R, W or L, and the
   bytes. */
#include "replaced.h"

#include <stdio.h>
#include <sys/mman.h>

enum { DEVICE_INFO = 3, RELEASE_MEM = 18, SET_ARG = 38, READ = 48, WRITE = 49, MAP = 56, UNMAP = 58, LAUNCH = 59,
       MOST = 4096, ARGS = 64, REFUSED = -59 /* CL_INVALID_OPERATION */ };

static struct { void *buffer, *at; size_t offset, size; int writes; } mappings[MOST];
static struct { void *kernel, *args[ARGS]; } kernels[MOST];

static void *original(int index) {
  static const char *const names[TABLE] = {
      [DEVICE_INFO] = "clGetDeviceInfo", [RELEASE_MEM] = "clReleaseMemObject", [SET_ARG] = "clSetKernelArg",
      [READ] = "clEnqueueReadBuffer", [WRITE] = "clEnqueueWriteBuffer", [LAUNCH] = "clEnqueueNDRangeKernel"};
  return table ? table[index] : dlsym(RTLD_NEXT, names[index]);
}

static void note(char what, size_t bytes) {
  FILE *file = getenv("COUNTS") ? fopen(getenv("COUNTS"), "a") : 0;
  if (!file) return;
  fprintf(file, "%c %zu\n", what, bytes);
  fclose(file);
}

/* Whether the host may see a buffer, or write it, too. */
static int mapped(void *buffer, int writes) {
  for (int i = 0; i < MOST; ++i)
    if (mappings[i].buffer == buffer && mappings[i].writes >= writes) return 1;
  return 0;
}

typedef int (*info)(void *, unsigned, size_t, void *, size_t *);
int clGetDeviceInfo(void *device, unsigned what, size_t room, void *out, size_t *needed) {
  const char *unified = getenv("UNIFIED");
  int status = ((info)original(DEVICE_INFO))(device, what, room, out, needed);
  if (what == 0x1035 /* CL_DEVICE_HOST_UNIFIED_MEMORY */ && out) *(unsigned *)out = unified ? atoi(unified) : 1;
  return status;
}

typedef int (*copy)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *);
int clEnqueueReadBuffer(void *queue, void *buffer, unsigned wait, size_t offset, size_t size, void *to, unsigned count,
                       void *events, void *event) {
  static int number;
  if (mapped(buffer, 1)) return REFUSED;
  if (fails("READS_BEFORE", &number)) return -5; /* CL_OUT_OF_RESOURCES */
  note('R', size);
  return ((copy)original(READ))(queue, buffer, wait, offset, size, to, count, events, event);
}

int clEnqueueWriteBuffer(void *queue, void *buffer, unsigned wait, size_t offset, size_t size, void *from,
                        unsigned count, void *events, void *event) {
  if (mapped(buffer, 0)) return REFUSED;
  note('W', size);
  return ((copy)original(WRITE))(queue, buffer, wait, offset, size, from, count, events, event);
}

void *clEnqueueMapBuffer(void *queue, void *buffer, unsigned wait, unsigned long flags, size_t offset, size_t size,
                        unsigned count, void *events, void *event, int *status) {
  static int number;
  const int writes = (flags & 2 /* CL_MAP_WRITE */) != 0;
  *status = writes && mapped(buffer, 1) ? REFUSED : -12; /* CL_MAP_FAILURE */
  if (*status == REFUSED || fails("MAPS_BEFORE", &number)) return 0;
  for (int i = 0; i < MOST; ++i) {
    if (mappings[i].buffer) continue;
    void *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *status = ((copy)original(READ))(queue, buffer, 1, offset, size, at, count, events, event);
    if (*status) return 0;
    if (!writes) mprotect(at, size, PROT_READ);
    mappings[i].buffer = buffer, mappings[i].at = at, mappings[i].offset = offset, mappings[i].size = size;
    mappings[i].writes = writes;
    note('M', size);
    return at;
  }
  abort();
}

int clEnqueueUnmapMemObject(void *queue, void *buffer, void *at, unsigned count, void *events, void *event) {
  static int number;
  if (fails("UNMAPS_BEFORE", &number)) return -5; /* CL_OUT_OF_RESOURCES */
  for (int i = 0; i < MOST; ++i) {
    if (mappings[i].buffer != buffer || mappings[i].at != at) continue;
    int way = mappings[i].writes ? WRITE : READ;
    mprotect(at, mappings[i].size, PROT_READ | PROT_WRITE);
    int status = ((copy)original(way))(queue, buffer, 1, mappings[i].offset, mappings[i].size, at, count, events, event);
    mprotect(at, mappings[i].size, PROT_NONE); /* for ever: nothing else gets this address */
    mappings[i].buffer = 0;
    note('U', mappings[i].size);
    return status;
  }
  return -30; /* CL_INVALID_VALUE */
}

typedef int (*set)(void *, unsigned, size_t, const void *);
int clSetKernelArg(void *kernel, unsigned index, size_t size, const void *value) {
  int i = 0;
  while (i < MOST && kernels[i].kernel && kernels[i].kernel != kernel) ++i;
  if (i == MOST || index >= ARGS) abort();
  kernels[i].kernel = kernel;
  kernels[i].args[index] = size == sizeof(void *) ? *(void *const *)value : 0;
  return ((set)original(SET_ARG))(kernel, index, size, value);
}

typedef int (*launch)(void *, void *, unsigned, const size_t *, const size_t *, const size_t *, unsigned, void *, void *);
int clEnqueueNDRangeKernel(void *queue, void *kernel, unsigned dimensions, const size_t *offset, const size_t *grid,
                         const size_t *group, unsigned count, void *events, void *event) {
  int k = 0;
  while (k < MOST && kernels[k].kernel != kernel) ++k;
  for (int a = 0; k < MOST && a < ARGS; ++a)
    if (kernels[k].args[a] && mapped(kernels[k].args[a], 1)) return REFUSED;
  int status = ((launch)original(LAUNCH))(queue, kernel, dimensions, offset, grid, group, count, events, event);
  for (int a = 0; !status && k < MOST && a < ARGS; ++a)
    for (int i = 0; kernels[k].args[a] && i < MOST; ++i) {
      if (mappings[i].buffer != kernels[k].args[a]) continue;
      void *now = malloc(mappings[i].size);
      status = ((copy)original(READ))(queue, mappings[i].buffer, 1, mappings[i].offset, mappings[i].size, now, 0, 0, 0);
      if (!status && memcmp(now, mappings[i].at, mappings[i].size)) status = REFUSED;
      free(now);
    }
  return status;
}

typedef int (*release)(void *);
int clReleaseMemObject(void *buffer) {
  if (mapped(buffer, 0)) note('L', 0);
  return ((release)original(RELEASE_MEM))(buffer);
}

static void replace(void) {
  changed[DEVICE_INFO] = clGetDeviceInfo, changed[RELEASE_MEM] = clReleaseMemObject, changed[SET_ARG] = clSetKernelArg;
  changed[READ] = clEnqueueReadBuffer, changed[WRITE] = clEnqueueWriteBuffer, changed[MAP] = clEnqueueMapBuffer, changed[UNMAP] = clEnqueueUnmapMemObject;
  changed[LAUNCH] = clEnqueueNDRangeKernel;
}
