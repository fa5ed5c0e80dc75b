#include "shared_context.h"

#include <stdlib.h>
#include <string.h>

#include "../runtime/spin_lock.h"

namespace lite::opencl {

namespace {

struct SharedConstant {
  Constant made;         // with its own steps
  ConstantSource source;
  Image image;           // of a source that has one
  size_t bytes;
  cl_mem memory;
  int users;
  SharedConstant* next;
};

bool same_steps(const Constant& a, const Constant& b) {
  for (int i = 0; i < a.num_steps; ++i) {
    const ConstantStep &x = a.steps[i], &y = b.steps[i];
    if (x.operation != y.operation || x.count != y.count ||
        memcmp(x.values, y.values, x.count * sizeof *x.values) != 0)
      return false;
  }
  return true;
}

bool same(const SharedConstant& known, const Constant& c, const ConstantSource& source) {
  const Constant& made = known.made;
  const Image *a = known.source.image, *b = source.image;
  return known.source.data == source.data && known.source.bytes == source.bytes &&
         known.source.sum == source.sum && made.dtype == c.dtype && made.rank == c.rank &&
         memcmp(made.dims, c.dims, c.rank * sizeof *c.dims) == 0 && made.num_steps == c.num_steps &&
         same_steps(made, c) && !a == !b &&
         (!a || (a->width == b->width && a->height == b->height && a->dtype == b->dtype));
}

std::atomic_flag busy = ATOMIC_FLAG_INIT;

}  // namespace

struct SharedContext {
  Functions cl;
  cl_device_id device;
  cl_context context;
  int users;
  bool abandoned;
  bool tried, matrix_units;  // whether they were tried, and work
  SharedConstant* constants;
  SharedContext* next;
};

namespace {

SharedContext* contexts = nullptr;

SharedContext* enter_known(const Functions& cl, cl_device_id device) {
  for (SharedContext* s = contexts; s; s = s->next)
    if (s->device == device && s->cl.clCreateContext == cl.clCreateContext && !s->abandoned) {
      ++s->users;
      return s;
    }
  return nullptr;
}

}  // namespace

SharedContext* enter_context(const Functions& cl, cl_device_id device, cl_int* status) {
  *status = CL_SUCCESS;
  {
    const SpinLock lock(&busy);
    if (SharedContext* known = enter_known(cl, device)) return known;
  }
  SharedContext* made = static_cast<SharedContext*>(calloc(1, sizeof(SharedContext)));
  *status = CL_OUT_OF_HOST_MEMORY;
  if (!made) return nullptr;
  made->cl = cl;
  made->device = device;
  made->users = 1;
  made->context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, status);
  if (*status != CL_SUCCESS) {
    free(made);
    return nullptr;
  }
  SharedContext* known;
  {
    const SpinLock lock(&busy);
    known = enter_known(cl, device);  // another thread was faster
    if (!known) {
      made->next = contexts;
      contexts = made;
    }
  }
  if (!known) return made;
  cl.clReleaseContext(made->context);
  free(made);
  return known;
}

cl_context context_of(const SharedContext* shared) { return shared->context; }

void leave_context(SharedContext* shared) {
  {
    const SpinLock lock(&busy);
    if (--shared->users) return;
    SharedContext** at = &contexts;
    while (*at != shared) at = &(*at)->next;
    *at = shared->next;
  }
  shared->cl.clReleaseContext(shared->context);
  free(shared);
}

bool know_matrix_units(SharedContext* shared, bool* work) {
  const SpinLock lock(&busy);
  if (shared->tried) *work = shared->matrix_units;
  return shared->tried;
}

void note_matrix_units(SharedContext* shared, bool work) {
  const SpinLock lock(&busy);
  shared->tried = true;
  shared->matrix_units = work;
}

void abandon_context(SharedContext* shared) {
  const SpinLock lock(&busy);
  shared->abandoned = true;
}

cl_mem find_constant(SharedContext* shared, const Constant& constant, const ConstantSource& source,
                     size_t* bytes) {
  const SpinLock lock(&busy);
  for (SharedConstant* c = shared->constants; c; c = c->next) {
    if (!same(*c, constant, source)) continue;
    ++c->users;
    *bytes = c->bytes;
    return c->memory;
  }
  return nullptr;
}

bool add_constant(SharedContext* shared, const Constant& constant, const ConstantSource& source, size_t bytes,
                  cl_mem memory) {
  const size_t steps_bytes = constant.num_steps * sizeof(ConstantStep);
  SharedConstant* c = static_cast<SharedConstant*>(calloc(1, sizeof(SharedConstant) + steps_bytes));
  if (!c) return false;
  *c = {constant, source, {}, bytes, memory, 1, nullptr};
  c->made.steps = reinterpret_cast<ConstantStep*>(c + 1);
  memcpy(c + 1, constant.steps, steps_bytes);
  if (source.image) {
    c->image = *source.image;
    c->source.image = &c->image;
  }
  const SpinLock lock(&busy);
  c->next = shared->constants;
  shared->constants = c;
  return true;
}

void drop_constant(SharedContext* shared, cl_mem memory) {
  SharedConstant* unused;
  {
    const SpinLock lock(&busy);
    SharedConstant** at = &shared->constants;
    while ((*at)->memory != memory) at = &(*at)->next;
    unused = *at;
    if (--unused->users) return;
    *at = unused->next;
  }
  shared->cl.clReleaseMemObject(memory);
  free(unused);
}

}  // namespace lite::opencl
