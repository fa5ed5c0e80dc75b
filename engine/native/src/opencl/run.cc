// One run of a program with an OpenCL part: launches are enqueued in order, and waited for where the
// CPU reads what they wrote.
#include <stdlib.h>

#include "executor.h"
#include "host_steps.h"

namespace lite::opencl {

namespace {

// A run under way. Once something failed, nothing more is asked of the device.
struct Turn {
  lite_program* p;
  Executor& x;
  bool pending;  // the device may still be at work

  bool failed(const char* what, cl_int status) {
    return p->env.fail("OpenCL: %s failed at '%s': %s", x.device->info.name, what,
                       error_name(status));
  }

  bool finish(const char* what) {
    if (!pending) return true;
    pending = false;
    const cl_int status = x.device->cl.clFinish(x.device->queue);
    return status == CL_SUCCESS || failed(what, status);
  }

  cl_mem memory_of(const Tensor& t, size_t* offset) const {
    const Storage& storage = p->program.storage[t.index];
    *offset = storage.root == t.index ? 0 : storage.offset;
    const int32_t place = x.place_of[storage.root];
    return place < 0 ? nullptr : x.buffers[place];
  }

  bool write(const Tensor& to, const uint8_t* data, const char* what, cl_event* event) {
    size_t at;
    cl_mem memory = memory_of(to, &at);
    if (!to.bytes) return true;
    pending = true;
    const cl_int status = x.device->cl.clEnqueueWriteBuffer(x.device->queue, memory, 0, at, to.bytes,
                                                           data, 0, nullptr, event);
    return status == CL_SUCCESS || failed(what, status);
  }

  bool read(const Tensor& from, uint8_t* data, const char* what, cl_event* event) {
    size_t at;
    cl_mem memory = memory_of(from, &at);
    if (!from.bytes) return true;
    pending = true;
    const cl_int status = x.device->cl.clEnqueueReadBuffer(x.device->queue, memory, 0, at, from.bytes,
                                                          data, 0, nullptr, event);
    return status == CL_SUCCESS || failed(what, status);
  }

  // Ports that lie on the device: a plan that goes on from another one's values.
  bool move_ports(const int32_t* ports, int count, bool in) {
    for (int i = 0; i < count; ++i) {
      const Tensor& t = p->program.tensors[ports[i]];
      if (x.place_of[p->program.storage[t.index].root] < 0) continue;
      if (!(in ? write(t, t.data, t.name, nullptr) : read(t, t.data, t.name, nullptr)))
        return false;
    }
    return true;
  }

  bool launch(const DeviceStep& row, const char* name, cl_event* first, cl_event* last) {
    for (uint32_t i = 0; i < row.count; ++i) {
      const Launch& l = x.plan.launches[row.first + i];
      cl_event* event = !x.device->timed ? nullptr : i == 0 ? first : i + 1 == row.count ? last : nullptr;
      pending = true;
      const cl_int status =
          x.device->cl.clEnqueueNDRangeKernel(x.device->queue, x.kernels[row.first + i],
                                             l.dimensions, nullptr, l.grid, l.group, 0, nullptr,
                                             event);
      if (status == CL_SUCCESS) continue;
      x.failed_row = static_cast<int32_t>(row.origin);
      return failed(name, status);
    }
    return true;
  }

  // What the CPU takes over, by way of memory that the next copy uses again.
  bool fetch(const Tensor& from, const Tensor& to, const char* what, cl_event* event) {
    if (!read(from, x.staging, what, event) || !finish(what)) return false;
    to_host(from, x.staging, to);
    return true;
  }

  bool store(const Tensor& from, const Tensor& to, const char* what, cl_event* event) {
    // Between the rows lie those of others.
    if (!is_dense(to) && !(read(to, x.staging, what, nullptr) && finish(what))) return false;
    from_host(from, to, x.staging);
    return write(to, x.staging, what, event) && finish(what);
  }

  // Nanoseconds between the start of one event and the end of another.
  int64_t between(cl_event first, cl_event last) {
    uint64_t start = 0, end = 0;
    const Functions& cl = x.device->cl;
    cl.clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr);
    cl.clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
    return end > start ? static_cast<int64_t>(end - start) : 0;
  }

  bool step(int index, int64_t* duration) {
    const DeviceStep& row = x.plan.steps[x.step_of[index]];
    const Step& s = p->program.steps[index];
    cl_event first = nullptr, last = nullptr;
    cl_event* noted = x.device->timed ? &first : nullptr;
    bool good;
    if (row.action == Action::kUpload)
      good = write(*s.outputs[0], s.inputs[0]->data, s.name, noted);
    else if (row.action == Action::kDownload)
      good = read(*s.inputs[0], s.outputs[0]->data, s.name, noted);
    else if (row.action == Action::kFetch)
      good = fetch(*s.inputs[0], *s.outputs[0], s.name, noted);
    else if (row.action == Action::kStore)
      good = store(*s.inputs[0], *s.outputs[0], s.name, noted);
    else
      good = launch(row, s.name, &first, &last);
    if (good && first) {
      good = finish(s.name);
      if (good) *duration = between(first, last ? last : first);
    }
    if (first) x.device->cl.clReleaseEvent(first);
    if (last) x.device->cl.clReleaseEvent(last);
    return good;
  }

  // Copies of what a step of the device wrote.
  bool copy_taps(int index) {
    for (int i = 0; i < p->program.num_tensors && p->step_taps[index]; ++i) {
      if (!p->tapped[i] || p->tap_step[i] != index) continue;
      const Tensor& t = p->program.tensors[i];
      size_t at;
      if (!memory_of(t, &at)) {
        if (!finish(t.name)) return false;
        if (t.data) copy_dense(t, p->taps[i]);
        continue;
      }
      Tensor whole = t;
      whole.data = static_cast<uint8_t*>(malloc(t.bytes + 1));
      if (!whole.data) return p->env.out_of_memory();
      const bool good = read(t, whole.data, t.name, nullptr) && finish(t.name);
      if (good) copy_dense(whole, p->taps[i]);
      free(whole.data);
      if (!good) return false;
    }
    return true;
  }

  bool steps() {
    const int count = p->program.num_steps;
    int64_t now = 0;
    for (int i = 0; i < count;) {
      if (x.step_of[i] < 0) {
        int end = i;
        while (end < count && x.step_of[end] < 0) ++end;
        if (!finish(p->program.steps[i].name) || !run_range(p, i, end)) return false;
        now = p->end_ns[end - 1];
        i = end;
        continue;
      }
      int64_t duration = 0;
      if (!step(i, &duration) || !copy_taps(i)) return false;
      p->end_ns[i] = now += duration;
      ++i;
    }
    return true;
  }
};

}  // namespace

bool run(lite_program* p) {
  Turn turn{p, *p->opencl, false};
  const Program& program = p->program;
  const bool good = turn.move_ports(program.inputs, program.num_inputs, true) && turn.steps() &&
                    turn.move_ports(program.outputs, program.num_outputs, false) &&
                    turn.finish("the end");
  // The device must be done with the caller's memory, whatever happened.
  if (!good) turn.x.device->cl.clFinish(turn.x.device->queue);
  return good;
}

}  // namespace lite::opencl
