#include "device_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "constants.h"
#include "step_kernels.h"

namespace lite::opencl {

namespace {

// `mappable`: the driver puts it where the host can see it, too.
bool buffer(lite_program* p, size_t bytes, const void* data, bool mappable, cl_mem* out) {
  Executor& x = *p->opencl;
  cl_int status = CL_SUCCESS;
  if (bytes < 4) bytes = 4;
  x.device_bytes += bytes;
  if (p->memory.limit_bytes && x.device_bytes > p->memory.limit_bytes)
    return p->env.fail("OpenCL: more than %zu bytes of buffers", p->memory.limit_bytes);
  cl_bitfield flags = CL_MEM_READ_WRITE;
  if (data) flags |= CL_MEM_COPY_HOST_PTR;
  else if (mappable) flags |= CL_MEM_ALLOC_HOST_PTR;
  *out = x.device->cl.clCreateBuffer(x.device->context, flags, bytes, const_cast<void*>(data), &status);
  if (status == CL_SUCCESS && *out) return true;
  *out = nullptr;
  char what[64];
  snprintf(what, sizeof what, "a buffer of %zu bytes", bytes);
  return refused(p, what, status);
}

// Buffers of the program's tensors; weights are written into theirs.
bool make_buffers(lite_program* p) {
  Executor& x = *p->opencl;
  for (int i = 0; i < p->program.num_tensors; ++i) {
    if (x.place_of[i] < 0) continue;
    const int32_t place = x.place_of[i];
    cl_mem& made = x.buffers[place];
    const bool mappable = x.borders.count && x.borders.mappable[place];
    if (!made && !buffer(p, x.plan.buffers[place], nullptr, mappable, &made)) return false;
    const Tensor& t = p->program.tensors[i];
    if (t.role != Role::kWeight || !t.bytes) continue;
    const cl_int status = x.device->cl.clEnqueueWriteBuffer(x.device->queue, made, 1, 0, t.bytes,
                                                           t.data, 0, nullptr, nullptr);
    if (status != CL_SUCCESS) return refused(p, t.name, status);
  }
  return true;
}

bool make_constants(lite_program* p, const void* const* weights, const size_t* weight_bytes,
                    size_t num_weights) {
  Executor& x = *p->opencl;
  for (uint32_t i = 0; i < x.plan.num_constants; ++i) {
    const Constant& c = x.plan.constants[i];
    if (!x.needed.constants[i]) continue;
    if (c.weight >= num_weights)
      return p->env.fail("OpenCL: weight %u is not in the table", c.weight);
    Array made;
    if (!evaluate(c, weights[c.weight], weight_bytes[c.weight], p->memory.limit_bytes, p->env,
                  &made))
      return false;
    x.constant_bytes[i] = made.bytes;
    bool good = true;
    bool image = false;
    for (uint32_t k = 0; k < x.plan.num_images; ++k) {
      const Image& m = x.plan.images[k];
      if (m.constant != static_cast<int32_t>(i) || !x.needed.images[k]) continue;
      image = true;
      // Words of four bytes take any array of as many: they are packed integers.
      const bool fits = (made.dtype == m.dtype || m.dtype == DType::kU32) &&
                        made.bytes == size_t{4} * dtype_bytes(m.dtype) * m.width * m.height;
      good = good && (fits || p->env.fail("OpenCL: an image does not fit its weight"));
      if (!good) break;
      const size_t origin[3] = {}, region[3] = {m.width, m.height, 1};
      const cl_int status =
          x.device->cl.clEnqueueWriteImage(x.device->queue, x.images[k], 1, origin, region, 0, 0,
                                          made.data, 0, nullptr, nullptr);
      good = status == CL_SUCCESS || refused(p, "an image", status);
    }
    if (good && !image) good = buffer(p, made.bytes, made.bytes ? made.data : nullptr, false, &x.constants[i]);
    free(made.data);
    if (!good) return false;
  }
  return true;
}

bool make_images(lite_program* p) {
  Executor& x = *p->opencl;
  for (uint32_t i = 0; i < x.plan.num_images; ++i) {
    const Image& m = x.plan.images[i];
    if (!x.needed.images[i]) continue;
    if (!x.device->cl.clCreateImage)
      return p->env.fail("OpenCL: %s is older than images", x.device->info.name);
    const cl_image_format format = {CL_RGBA, m.dtype == DType::kU32   ? CL_UNSIGNED_INT32
                                             : m.dtype == DType::kF16 ? CL_HALF_FLOAT
                                                                      : CL_FLOAT};
    cl_image_desc shape{};
    shape.type = CL_MEM_OBJECT_IMAGE2D;
    shape.width = m.width;
    shape.height = m.height;
    cl_int status = CL_SUCCESS;
    x.images[i] = x.device->cl.clCreateImage(x.device->context, CL_MEM_READ_WRITE, &format, &shape,
                                            nullptr, &status);
    if (status == CL_SUCCESS && x.images[i]) continue;
    x.images[i] = nullptr;
    return refused(p, "an image", status);
  }
  for (uint32_t i = 0; i < x.plan.num_scratch; ++i)
    if (x.needed.scratch[i] && !buffer(p, x.plan.scratch[i], nullptr, false, &x.scratch[i])) return false;
  return true;
}

}  // namespace

bool make_memory(lite_program* p, const void* const* weights, const size_t* weight_bytes, size_t num_weights) {
  return make_buffers(p) && make_images(p) && make_constants(p, weights, weight_bytes, num_weights);
}

void release_memory(Executor* x) {
  const Functions& cl = x->device->cl;
  // Those of ports stay with them.
  for (uint32_t i = 0; i < x->borders.count; ++i) {
    Border& b = x->borders.all[i];
    const int32_t place = b.place;
    if (b.port && b.port->memory.buffer == x->buffers[place]) x->buffers[place] = nullptr;
  }
  const struct {
    cl_mem* all;
    uint32_t count;
  } memory[] = {{x->buffers, x->plan.num_buffers},
                {x->constants, x->plan.num_constants},
                {x->scratch, x->plan.num_scratch},
                {x->images, x->plan.num_images}};
  for (const auto& m : memory)
    for (uint32_t i = 0; i < m.count; ++i)
      if (m.all[i]) cl.clReleaseMemObject(m.all[i]);
}

}  // namespace lite::opencl
