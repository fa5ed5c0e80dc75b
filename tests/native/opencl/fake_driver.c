/* An OpenCL driver that says of itself what the variables FAKE_* say, and refuses all else.
   FAKE_DEVICES=crash or hang: what it does when its devices are asked for. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *say(const char *name, const char *otherwise) {
  const char *text = getenv(name);
  return text ? text : otherwise;
}

static int answer(const void *from, size_t size, size_t room, void *out, size_t *needed) {
  if (out && room >= size) memcpy(out, from, size);
  if (needed) *needed = size;
  return out && room < size ? -30 : 0;
}

static int text(const char *from, size_t room, void *out, size_t *needed) {
  return answer(from, strlen(from) + 1, room, out, needed);
}

int clGetPlatformIDs(unsigned room, void **platforms, unsigned *count) {
  if (room && platforms) platforms[0] = (void *)16;
  if (count) *count = 1;
  return 0;
}

int clGetPlatformInfo(void *p, unsigned what, size_t room, void *out, size_t *needed) {
  return text(what == 0x0902 ? say("FAKE_PLATFORM", "Fake") : "", room, out, needed);
}

int clGetDeviceIDs(void *p, unsigned long type, unsigned room, void **devices, unsigned *count) {
  const char *what = say("FAKE_DEVICES", "");
  if (strcmp(what, "crash") == 0) abort();
  if (strcmp(what, "hang") == 0) sleep(60);
  if (strcmp(what, "none") == 0) return -1;
  if (room && devices) devices[0] = (void *)32;
  if (count) *count = 1;
  return 0;
}

int clGetDeviceInfo(void *d, unsigned what, size_t room, void *out, size_t *needed) {
  unsigned long type = strtoul(say("FAKE_TYPE", "4"), 0, 10), limit = 1234;
  switch (what) {
    case 0x1000: return answer(&type, sizeof type, room, out, needed);
    case 0x1023: return answer(&limit, sizeof limit, room, out, needed);
    case 0x102B: return text(say("FAKE_NAME", "Fake device"), room, out, needed);
    case 0x102C: return text(say("FAKE_VENDOR", "Nobody"), room, out, needed);
    case 0x102F: return text("OpenCL 1.2 fake", room, out, needed);
    case 0x102D: return text("1.0", room, out, needed);
    case 0x1030: return text(say("FAKE_EXTENSIONS", ""), room, out, needed);
  }
  return -30;
}

#define REFUSE(name) int name(void) { return -5; }
#define REFUSE_OBJECT(name, ...)          \
  void *name(__VA_ARGS__, int *status) {  \
    *status = -5;                         \
    return 0;                             \
  }
REFUSE_OBJECT(clCreateContext, void *a, unsigned b, void *c, void *d, void *e)
REFUSE_OBJECT(clCreateCommandQueue, void *a, void *b, unsigned long c)
REFUSE_OBJECT(clCreateBuffer, void *a, unsigned long b, size_t c, void *d)
REFUSE_OBJECT(clCreateSubBuffer, void *a, unsigned long b, unsigned c, void *d)
REFUSE_OBJECT(clCreateProgramWithSource, void *a, unsigned b, void *c, void *d)
REFUSE_OBJECT(clCreateProgramWithBinary, void *a, unsigned b, void *c, void *d, void *e, void *f)
REFUSE_OBJECT(clCreateKernel, void *a, void *b)
REFUSE(clReleaseContext) REFUSE(clReleaseCommandQueue) REFUSE(clReleaseMemObject)
REFUSE(clReleaseProgram) REFUSE(clBuildProgram) REFUSE(clGetProgramInfo)
REFUSE(clGetProgramBuildInfo) REFUSE(clReleaseKernel) REFUSE(clSetKernelArg)
REFUSE(clGetKernelInfo) REFUSE(clGetKernelWorkGroupInfo) REFUSE(clWaitForEvents)
REFUSE(clGetEventInfo) REFUSE(clReleaseEvent) REFUSE(clGetEventProfilingInfo)
REFUSE(clFlush) REFUSE(clFinish) REFUSE(clEnqueueReadBuffer) REFUSE(clEnqueueWriteBuffer)
REFUSE(clEnqueueCopyBuffer) REFUSE(clEnqueueReadImage) REFUSE(clEnqueueWriteImage)
REFUSE(clEnqueueCopyImageToBuffer) REFUSE(clEnqueueCopyBufferToImage) REFUSE(clEnqueueMapBuffer)
REFUSE(clEnqueueUnmapMemObject) REFUSE(clEnqueueNDRangeKernel)
