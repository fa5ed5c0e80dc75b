#include "device_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "constants.h"
#include "shared_context.h"
#include "step_kernels.h"

namespace lite::opencl {

namespace {

size_t device_bytes(size_t bytes) { return bytes < 4 ? 4 : bytes; }

// What a program uses counts as its own, also where others use it too.
bool count_bytes(lite_program* p, size_t bytes) {
  Executor& x = *p->opencl;
  x.device_bytes += device_bytes(bytes);
  return !p->memory.limit_bytes || x.device_bytes <= p->memory.limit_bytes ||
         p->env.fail("OpenCL: more than %zu bytes of buffers", p->memory.limit_bytes);
}

// `mappable`: the driver puts it where the host can see it, too.
bool buffer(lite_program* p, size_t bytes, const void* data, bool mappable, cl_mem* out) {
  Executor& x = *p->opencl;
  cl_int status = CL_SUCCESS;
  if (!count_bytes(p, bytes)) return false;
  bytes = device_bytes(bytes);
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

// A constant's array, made when it is first asked for.
struct Made {
  Array array;
  bool known;
  bool make(const Constant& c, const ConstantSource& source, lite_program* p) {
    known = known || evaluate(c, source.data, source.bytes, p->memory.limit_bytes, p->env, &array);
    return known;
  }
};

bool make_image(lite_program* p, const Image& image, cl_mem* out) {
  const Device& device = *p->opencl->device;
  if (!device.cl.clCreateImage) return p->env.fail("OpenCL: %s is older than images", device.info.name);
  const cl_image_format format = {CL_RGBA, image.dtype == DType::kU32   ? CL_UNSIGNED_INT32
                                           : image.dtype == DType::kF16 ? CL_HALF_FLOAT
                                                                        : CL_FLOAT};
  cl_image_desc shape{};
  shape.type = CL_MEM_OBJECT_IMAGE2D;
  shape.width = image.width;
  shape.height = image.height;
  cl_int status = CL_SUCCESS;
  *out = device.cl.clCreateImage(device.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &status);
  if (status == CL_SUCCESS && *out) return true;
  *out = nullptr;
  return refused(p, "an image", status);
}

bool fill_image(lite_program* p, const Image& m, const Array& array, cl_mem image) {
  // Words of four bytes take any array of as many: they are packed integers.
  const bool fits = (array.dtype == m.dtype || m.dtype == DType::kU32) &&
                    array.bytes == size_t{4} * dtype_bytes(m.dtype) * m.width * m.height;
  if (!fits) return p->env.fail("OpenCL: an image does not fit its weight");
  const Device& device = *p->opencl->device;
  const size_t origin[3] = {}, region[3] = {m.width, m.height, 1};
  const cl_int status = device.cl.clEnqueueWriteImage(device.queue, image, 1, origin, region, 0, 0, array.data, 0,
                                                      nullptr, nullptr);
  return status == CL_SUCCESS || refused(p, "an image", status);
}

// One that another program uses, else a new one.
bool take_constant(lite_program* p, const Constant& c, const ConstantSource& source, Made* made, size_t* bytes,
                   cl_mem* out) {
  Executor& x = *p->opencl;
  *out = find_constant(x.device->shared, c, source, bytes);
  if (*out) return source.image || count_bytes(p, *bytes);
  if (!made->make(c, source, p)) return false;
  const Array& array = made->array;
  *bytes = array.bytes;
  const bool good = source.image
                        ? make_image(p, *source.image, out) && fill_image(p, *source.image, array, *out)
                        : buffer(p, array.bytes, array.bytes ? array.data : nullptr, false, out);
  if (good && add_constant(x.device->shared, c, source, array.bytes, *out)) return true;
  if (*out) x.device->cl.clReleaseMemObject(*out);
  *out = nullptr;
  return good ? p->env.out_of_memory() : false;
}

bool make_constants(lite_program* p, const void* const* weights, const size_t* weight_bytes,
                    size_t num_weights) {
  Executor& x = *p->opencl;
  for (uint32_t i = 0; i < x.plan.num_constants; ++i) {
    const Constant& c = x.plan.constants[i];
    if (!x.needed.constants[i]) continue;
    if (c.weight >= num_weights)
      return p->env.fail("OpenCL: weight %u is not in the table", c.weight);
    ConstantSource source{weights[c.weight], weight_bytes[c.weight], 0, nullptr};
    source.sum = sum_of(p->cache, source.data, source.bytes);
    Made made{};
    bool good = true;
    for (uint32_t k = 0; k < x.plan.num_images && good; ++k) {
      const Image& m = x.plan.images[k];
      if (m.constant != static_cast<int32_t>(i) || !x.needed.images[k]) continue;
      source.image = &m;
      good = take_constant(p, c, source, &made, &x.constant_bytes[i], &x.images[k]);
    }
    if (!source.image) good = take_constant(p, c, source, &made, &x.constant_bytes[i], &x.constants[i]);
    free(made.array.data);
    if (!good) return false;
  }
  return true;
}

bool make_scratch(lite_program* p) {
  Executor& x = *p->opencl;
  for (uint32_t i = 0; i < x.plan.num_images; ++i)
    if (x.needed.images[i] && x.plan.images[i].constant < 0 && !make_image(p, x.plan.images[i], &x.images[i]))
      return false;
  for (uint32_t i = 0; i < x.plan.num_scratch; ++i)
    if (x.needed.scratch[i] && !buffer(p, x.plan.scratch[i], nullptr, false, &x.scratch[i])) return false;
  return true;
}

}  // namespace

bool make_memory(lite_program* p, const void* const* weights, const size_t* weight_bytes, size_t num_weights) {
  return make_buffers(p) && make_scratch(p) && make_constants(p, weights, weight_bytes, num_weights);
}

void release_memory(Executor* x) {
  const Functions& cl = x->device->cl;
  // Those of ports stay with them.
  for (uint32_t i = 0; i < x->borders.count; ++i) {
    Border& b = x->borders.all[i];
    const int32_t place = b.place;
    if (b.port && b.port->memory.buffer == x->buffers[place]) x->buffers[place] = nullptr;
  }
  SharedContext* shared = x->device->shared;
  for (uint32_t i = 0; i < x->plan.num_constants; ++i)
    if (x->constants[i]) drop_constant(shared, x->constants[i]);
  for (uint32_t i = 0; i < x->plan.num_images; ++i) {
    if (!x->images[i]) continue;
    if (x->plan.images[i].constant >= 0) drop_constant(shared, x->images[i]);
    else cl.clReleaseMemObject(x->images[i]);
  }
  for (uint32_t i = 0; i < x->plan.num_buffers; ++i)
    if (x->buffers[i]) cl.clReleaseMemObject(x->buffers[i]);
  for (uint32_t i = 0; i < x->plan.num_scratch; ++i)
    if (x->scratch[i]) cl.clReleaseMemObject(x->scratch[i]);
}

}  // namespace lite::opencl
