// One run of a program with an OpenCL part: launches are enqueued in order, and waited for where the
// CPU reads what they wrote.
#include <stdlib.h>

#include "executor.h"
#include "host_steps.h"
#include "shared_context.h"

namespace lite::opencl {

namespace {

// A run under way. Once something failed, nothing more is asked of the device.
struct DeviceRun {
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

  void count(const Tensor& t) {
    ++p->copies;
    p->copied_bytes += static_cast<int64_t>(t.bytes);
  }

  bool write(const Tensor& to, const uint8_t* data, const char* what, cl_event* event) {
    size_t at;
    cl_mem memory = memory_of(to, &at);
    if (!to.bytes) return true;
    pending = true;
    count(to);
    const cl_int status = x.device->cl.clEnqueueWriteBuffer(x.device->queue, memory, 0, at, to.bytes,
                                                           data, 0, nullptr, event);
    return status == CL_SUCCESS || failed(what, status);
  }

  bool read(const Tensor& from, uint8_t* data, const char* what, cl_event* event) {
    size_t at;
    cl_mem memory = memory_of(from, &at);
    if (!from.bytes) return true;
    pending = true;
    count(from);
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

  // The host's tensors of a border lie where it is mapped now.
  void follow(const Border& b, uint8_t* at) {
    const Program& program = p->program;
    if (program.tensors[b.host].data == at) return;
    for (int i = 0; i < program.num_tensors; ++i)
      if (program.storage[i].root == b.host)
        program.tensors[i].data = at + (i == b.host ? 0 : program.storage[i].offset);
  }

  // Maps a border's memory, `on`, or ends that.
  bool turn(Border& b, bool on, bool writing) {
    const char* name = p->program.tensors[b.host].name;
    Mapped& m = b.memory();
    cl_event event = nullptr;
    cl_event* noted = x.device->timed ? &event : nullptr;
    pending = true;
    const cl_int status = on ? map(*x.device, &m, writing, false, noted) : unmap(*x.device, &m, writing, noted);
    if (status != CL_SUCCESS) return failed(name, status);
    if (on) follow(b, writing ? m.write : m.read);
    if (!event) return true;
    const bool good = finish(name);
    if (good) b.ns += between(event, event);
    x.device->cl.clReleaseEvent(event);
    return good;
  }

  // The device may read a border's memory, or write it, too.
  bool give(Border& b, bool writes) {
    const Mapped& m = b.memory();
    return (!m.write || turn(b, false, true)) && (!writes || !m.read || turn(b, false, false));
  }

  // The host may.
  bool show(Border& b, bool writes) {
    const Mapped& m = b.memory();
    if (!b.active || m.write || (m.read && !writes)) return true;
    return turn(b, true, writes) && (!m.read || !writes || turn(b, false, false));
  }

  // Before the steps [first, last) run.
  bool enter(int first, int last) {
    const Borders& all = x.borders;
    if (!all.count) return true;
    for (uint32_t k = all.at[first]; k < all.at[last]; ++k) {
      Border& b = all.all[all.touches[k].border];
      const Access access = all.touches[k].access;
      if (access == Access::kHostWrites && !show(b, true)) return false;
      const bool device = access == Access::kDeviceReads || access == Access::kDeviceWrites;
      if (device && !give(b, access == Access::kDeviceWrites)) return false;
    }
    for (uint32_t k = all.at[first]; k < all.at[last]; ++k)
      if (all.touches[k].access == Access::kHostReads && !show(all.all[all.touches[k].border], false)) return false;
    return true;
  }

  // After them: what the host has done with may be another value's.
  bool leave(int first, int last) {
    const Borders& all = x.borders;
    if (!all.count) return true;
    for (uint32_t k = all.at[first]; k < all.at[last]; ++k)
      if (all.touches[k].access == Access::kHostDone && !give(all.all[all.touches[k].border], true)) return false;
    return true;
  }

  // The device gets the ports. The host may read inputs all the time, so that they are not lost with it.
  bool take_ports() {
    for (uint32_t i = 0; i < x.borders.count; ++i) {
      Border& b = x.borders.all[i];
      const Tensor& host = p->program.tensors[b.host];
      b.ns = 0;
      b.active = true;
      if (!b.port) continue;
      if (b.port->status != CL_SUCCESS) return failed(host.name, b.port->status);
      const Mapped& m = b.port->memory;
      const int tensor = b.port->tensor;
      b.ours = b.port->asked && !b.port->plain && m.write == (p->bound[tensor] ? p->bound[tensor] : p->own[tensor]);
      b.active = !b.port->plain && (b.ours || host.role == Role::kArena);
      if (host.role == Role::kArena) follow(b, p->arena + p->program.storage[b.host].offset);
      if (!b.port->plain && !give(b, true)) return false;
      if (b.active && host.role == Role::kInput && !show(b, false)) return false;
    }
    return true;
  }

  bool give_ports_back() {
    for (uint32_t i = 0; i < x.borders.count; ++i) {
      Border& b = x.borders.all[i];
      if (!b.port || !b.port->asked || b.port->plain) continue;
      const Mapped& m = b.port->memory;
      if (!m.write && !turn(b, true, true)) return false;
      if (m.read && !turn(b, false, false)) return false;
      if (!b.ours) continue;
      const int tensor = b.port->tensor;
      (p->bound[tensor] ? p->bound[tensor] : p->own[tensor]) = m.write;
    }
    return true;
  }

  bool step(int index, int64_t* duration) {
    const DeviceStep& row = x.plan.steps[x.step_of[index]];
    const Step& s = p->program.steps[index];
    cl_event first = nullptr, last = nullptr;
    cl_event* noted = x.device->timed ? &first : nullptr;
    bool good;
    Border* border = x.borders.count && x.borders.of_step[index] >= 0 ? &x.borders.all[x.borders.of_step[index]] : nullptr;
    if (!enter(index, index + 1)) return false;
    if (border && border->active) {
      good = border->upload ? give(*border, false) : show(*border, border->ours);
      *duration = border->ns;
      border->ns = 0;
      return good;
    }
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
      const int64_t copies = p->copies, bytes = p->copied_bytes;
      const bool good = read(t, whole.data, t.name, nullptr) && finish(t.name);
      p->copies = copies;  // who looks at a value does not change what a run copies
      p->copied_bytes = bytes;
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
        if (!enter(i, end) || !finish(p->program.steps[i].name) || !run_range(p, i, end) || !leave(i, end)) return false;
        now = p->end_ns[end - 1];
        i = end;
        continue;
      }
      int64_t duration = 0;
      if (!step(i, &duration) || !copy_taps(i) || !leave(i, i + 1)) return false;
      p->end_ns[i] = now += duration;
      ++i;
    }
    return enter(count, count + 1);
  }
};

}  // namespace

bool run(lite_program* p) {
  DeviceRun whole{p, *p->opencl, false};
  const Program& program = p->program;
  const bool good = whole.take_ports() && whole.move_ports(program.inputs, program.num_inputs, true) &&
                    whole.steps() && whole.move_ports(program.outputs, program.num_outputs, false) &&
                    whole.give_ports_back() && whole.finish("the end");
  if (good) return true;
  // The device must be done with the caller's memory, whatever happened.
  whole.x.device->cl.clFinish(whole.x.device->queue);
  restore_ports(p);
  abandon_context(whole.x.device->shared);
  return false;
}

}  // namespace lite::opencl
