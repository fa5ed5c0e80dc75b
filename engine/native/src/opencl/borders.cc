#include "borders.h"

#include "executor.h"

namespace lite::opencl {

namespace {

struct Finder {
  lite_program* p;
  Executor& x;
  const Program& program;
  // Per tensor that owns storage: the first and last step that touch it, the last that writes it, how many do.
  int32_t *first, *last, *written, *writes;
  int32_t* host_of;     // per tensor: the border on the host, -1: none
  bool* is_device;      // per tensor: a border's on the device
  uint64_t* sizes;      // of buffers

  template <class T>
  bool room(uint64_t count, T** out) {
    *out = static_cast<T*>(p->memory.allocate_array(count, sizeof(T)));
    return *out || p->env.out_of_memory();
  }

  int32_t root_of(const Tensor& t) const { return program.storage[t.index].root; }

  bool make_room() {
    Borders& b = x.borders;
    const uint32_t n = program.num_tensors, steps = program.num_steps;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < x.plan.num_steps; ++i) copies += x.plan.steps[i].action != Action::kLaunches;
    const uint64_t most = uint64_t{x.plan.num_buffers} + copies;
    if (!room(n, &first) || !room(n, &last) || !room(n, &written) || !room(n, &writes) || !room(n, &host_of) ||
        !room(n, &is_device) || !room(copies, &b.all) || !room(steps, &b.of_step) || !room(steps + 2, &b.at) ||
        !room(most, &b.mappable) || !room(most, &sizes) || !room(most, &x.buffers))
      return false;
    memcpy(sizes, x.plan.buffers, x.plan.num_buffers * sizeof *sizes);
    x.plan.buffers = sizes;
    for (uint32_t i = 0; i < n; ++i) {
      first[i] = INT32_MAX;
      last[i] = written[i] = host_of[i] = -1;
    }
    for (uint32_t i = 0; i < steps; ++i) b.of_step[i] = -1;
    return true;
  }

  // `each(step, tensor, writes)` for whatever steps touch, in order.
  template <class Each>
  void walk(Each each) const {
    for (int32_t s = 0; s < program.num_steps; ++s) {
      const Step& step = program.steps[s];
      for (int32_t i = 0; i < step.num_inputs + step.num_outputs; ++i)
        if (const Tensor* t = step.inputs[i]) each(s, *t, i >= step.num_inputs);  // outputs follow
    }
  }

  void find_lives() {
    walk([&](int32_t s, const Tensor& t, bool writing) {
      const int32_t root = root_of(t);
      if (first[root] == INT32_MAX) first[root] = s;
      last[root] = s;
      if (!writing) return;
      written[root] = s;
      ++writes[root];
    });
    for (int32_t i = 0; i < program.num_outputs; ++i) last[program.storage[program.outputs[i]].root] = program.num_steps;
  }

  // The input or output whose memory a tensor of the host is: itself, or an output that is the whole of it.
  int32_t port_of(int32_t host) const {
    const Role role = program.tensors[host].role;
    if (role == Role::kInput || role == Role::kOutput) return host;
    for (int32_t i = 0; i < program.num_outputs; ++i) {
      const Tensor& t = program.tensors[program.outputs[i]];
      if (root_of(t) == host && is_whole(t)) return t.index;
    }
    return -1;
  }

  // Another value's memory, or this one's own, so that between the steps which touch a border nothing else does.
  bool is_free(int32_t root) const {
    for (int32_t i = 0; i < program.num_tensors; ++i) {
      if (i == root || x.place_of[i] != x.place_of[root]) continue;
      if (program.tensors[i].role != Role::kDevice || (first[i] <= last[root] && last[i] >= first[root])) return false;
    }
    return true;
  }

  Port* find_port(int32_t tensor, size_t bytes) {
    Ports& ports = *p->ports;
    for (uint32_t i = 0; i < ports.count; ++i)
      if (ports.all[i].tensor == tensor) return ports.all[i].memory.bytes == bytes ? &ports.all[i] : nullptr;
    if (ports.count == static_cast<uint32_t>(program.num_inputs) + program.num_outputs) return nullptr;
    Port& made = ports.all[ports.count++];
    made.tensor = tensor;
    made.memory.bytes = bytes;
    return &made;
  }

  // Whether a tensor is all that its storage holds.
  bool is_whole(const Tensor& t) const {
    const int32_t root = root_of(t);
    return t.index == root || (program.storage[t.index].offset == 0 && t.bytes == program.tensors[root].bytes);
  }

  // Whether one buffer can hold both: they have the same bytes, nothing writes one of them while the
  // other still has the old ones, and neither is another border's.
  bool crosses(const Tensor& host, const Tensor& device, bool upload, int32_t copy) const {
    const int32_t here = root_of(host), there = root_of(device);
    const Tensor &owner = program.tensors[here], &buffer = program.tensors[there];
    if (!is_whole(host) || !host.bytes || x.place_of[here] >= 0 || owner.role == Role::kWeight || owner.role == Role::kDevice ||
        buffer.role != Role::kDevice || x.place_of[there] < 0)
      return false;
    if (host.dtype != device.dtype || host.bytes != device.bytes || !is_dense(host) || !is_dense(device) ||
        host_of[here] >= 0)
      return false;
    return upload ? writes[there] == 1 && written[there] == copy && written[here] < copy
                  : writes[here] == 1 && written[here] == copy && written[there] < copy;
  }

  void add(const Tensor& host, const Tensor& device, bool upload, int32_t copy) {
    const int32_t here = root_of(host), there = root_of(device), port = port_of(here);
    Borders& b = x.borders;
    // An input and an output do not share memory, whatever the network does.
    for (uint32_t i = 0; i < b.count; ++i)
      if (root_of(program.tensors[b.all[i].device]) == there && port >= 0 && b.all[i].port) return;
    Border made{here, device.index, 0, static_cast<uint32_t>(copy), upload, false, false, nullptr, {}, 0};
    if (port >= 0) {
      made.port = is_whole(device) ? find_port(port, host.bytes) : nullptr;
      if (!made.port) return;
    }
    first[there] = first[here] < first[there] ? first[here] : first[there];
    last[there] = last[here] > last[there] ? last[here] : last[there];
    if (made.port || !is_free(there)) {
      sizes[x.plan.num_buffers] = program.tensors[there].bytes;
      x.place_of[there] = static_cast<int32_t>(x.plan.num_buffers++);
    }
    if (made.port) x.buffers[x.place_of[there]] = made.port->memory.buffer;
    b.mappable[x.place_of[there]] = true;
    b.of_step[copy] = host_of[here] = static_cast<int32_t>(b.count);
    is_device[there] = true;
    made.place = x.place_of[there];
    for (uint32_t i = 0; i < b.count; ++i)  // that of others of the same value may be another one now
      if (root_of(program.tensors[b.all[i].device]) == there) b.all[i].place = made.place;
    b.all[b.count++] = made;
  }

  // `each(step, border, access)`, in order.
  template <class Each>
  void touches(Each each) const {
    const Borders& b = x.borders;
    walk([&](int32_t s, const Tensor& t, bool writing) {
      const int32_t root = root_of(t);
      if (host_of[root] >= 0 && b.of_step[s] != host_of[root])
        each(s, host_of[root], writing ? Access::kHostWrites : Access::kHostReads);
      for (uint32_t i = 0; is_device[root] && i < b.count; ++i)
        if (root_of(program.tensors[b.all[i].device]) == root && b.of_step[s] != static_cast<int32_t>(i))
          each(s, static_cast<int32_t>(i), writing ? Access::kDeviceWrites : Access::kDeviceReads);
    });
    // Outputs that are views are copied from it when all steps are done.
    for (int32_t i = 0; i < program.num_outputs; ++i)
      if (const int32_t host = host_of[program.storage[program.outputs[i]].root]; host >= 0)
        each(program.num_steps, host, Access::kHostReads);
  }

  bool note_touches() {
    Borders& b = x.borders;
    uint32_t count = b.count;
    int32_t* done;  // per border: the last step of the host
    if (!room(b.count, &done)) return false;
    for (uint32_t i = 0; i < b.count; ++i) done[i] = static_cast<int32_t>(b.all[i].copy);
    touches([&](int32_t s, int32_t border, Access access) {
      ++count;
      if ((access == Access::kHostReads || access == Access::kHostWrites) && s > done[border]) done[border] = s;
    });
    if (!room(count, &b.touches)) return false;
    uint32_t made = 0;
    int32_t step = 0;
    const auto until = [&](int32_t s) {  // ends the steps before s
      for (; step < s; b.at[++step] = made)
        for (uint32_t i = 0; i < b.count; ++i)
          if (done[i] == step && !b.all[i].port) b.touches[made++] = {i, Access::kHostDone};
    };
    touches([&](int32_t s, int32_t border, Access access) {
      until(s);
      b.touches[made++] = {static_cast<uint32_t>(border), access};
    });
    until(program.num_steps);
    b.at[program.num_steps + 1] = made;
    return true;
  }

  bool all() {
    if (!make_room()) return false;
    find_lives();
    for (uint32_t i = 0; i < x.plan.num_steps; ++i) {
      const DeviceStep& row = x.plan.steps[i];
      if (row.action == Action::kLaunches) continue;
      const Step& step = program.steps[row.step];
      const bool upload = row.action == Action::kUpload || row.action == Action::kStore;
      const Tensor &from = *step.inputs[0], &to = *step.outputs[0];
      const Tensor &host = upload ? from : to, &device = upload ? to : from;
      if (crosses(host, device, upload, static_cast<int32_t>(row.step))) add(host, device, upload, static_cast<int32_t>(row.step));
    }
    return note_touches();
  }
};

}  // namespace

bool find_borders(lite_program* p) {
  Executor& x = *p->opencl;
  return !x.device->info.unified_memory || Finder{p, x, p->program, {}, {}, {}, {}, {}, {}, {}}.all();
}

void set_borders(lite_program* p) {
  Executor& x = *p->opencl;
  for (uint32_t i = 0; i < x.borders.count; ++i) {
    Border& b = x.borders.all[i];
    const Storage& storage = p->program.storage[b.device];
    Mapped& memory = b.memory();
    memory.buffer = x.buffers[b.place];
    memory.offset = storage.root == b.device ? 0 : storage.offset;
    memory.bytes = p->program.tensors[b.device].bytes;
  }
}

cl_int map(const Device& device, Mapped* m, bool write, bool wait, cl_event* event) {
  cl_int status = CL_SUCCESS;
  const cl_bitfield flags = write ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
  void* at = device.cl.clEnqueueMapBuffer(device.queue, m->buffer, wait, flags, m->offset, m->bytes, 0, nullptr,
                                          event, &status);
  if (status == CL_SUCCESS && !at) status = CL_MAP_FAILURE;
  if (status == CL_SUCCESS) (write ? m->write : m->read) = static_cast<uint8_t*>(at);
  return status;
}

cl_int unmap(const Device& device, Mapped* m, bool write, cl_event* event) {
  uint8_t*& at = write ? m->write : m->read;
  const cl_int status = device.cl.clEnqueueUnmapMemObject(device.queue, m->buffer, at, 0, nullptr, event);
  if (status == CL_SUCCESS) at = nullptr;
  return status;
}

void release_ports(Ports* ports, const Device& device) {
  for (uint32_t i = 0; i < ports->count; ++i) {
    Mapped& m = ports->all[i].memory;
    if (m.write && !ports->all[i].plain) unmap(device, &m, true, nullptr);
    if (m.read) unmap(device, &m, false, nullptr);
  }
  device.cl.clFinish(device.queue);
  for (uint32_t i = 0; i < ports->count; ++i)
    if (ports->all[i].memory.buffer) device.cl.clReleaseMemObject(ports->all[i].memory.buffer);
  ports->count = 0;
}

void restore_ports(lite_program* p) {
  const Executor& x = *p->opencl;
  const Device& device = *x.device;
  for (uint32_t i = 0; i < p->ports->count; ++i) {
    Port& port = p->ports->all[i];
    Mapped& m = port.memory;
    if (!port.asked || m.write) continue;
    if (map(device, &m, true, true, nullptr) == CL_SUCCESS) {
      if (m.read) unmap(device, &m, false, nullptr);
      continue;
    }
    m.write = static_cast<uint8_t*>(p->buffers.allocate_array(m.bytes, 1));
    port.plain = true;
    const bool input = p->program.tensors[port.tensor].role == Role::kInput;
    if (m.write && m.read) memcpy(m.write, m.read, m.bytes);
    else if (input && (!m.write || device.cl.clEnqueueReadBuffer(device.queue, m.buffer, 1, m.offset, m.bytes,
                                                                m.write, 0, nullptr, nullptr) != CL_SUCCESS))
      p->inputs_lost = true;
  }
  for (uint32_t i = 0; i < x.borders.count; ++i) {
    const Border& b = x.borders.all[i];
    if (!b.port || !b.ours) continue;
    uint8_t*& place = p->bound[b.port->tensor] ? p->bound[b.port->tensor] : p->own[b.port->tensor];
    place = b.port->memory.write;
  }
}

uint8_t* port_memory(lite_program* p, int tensor) {
  Port* port = nullptr;
  for (uint32_t i = 0; i < p->ports->count; ++i)
    if (p->ports->all[i].tensor == tensor) port = &p->ports->all[i];
  if (!port || port->memory.write) return port ? port->memory.write : nullptr;
  const Executor* x = current(p)->opencl;
  if (!x || !port->memory.buffer || port->status) return nullptr;
  port->status = map(*x->device, &port->memory, true, true, nullptr);
  if (port->status) return nullptr;
  if (!port->asked) memset(port->memory.write, 0, port->memory.bytes);
  port->asked = true;
  return port->memory.write;
}

}  // namespace lite::opencl
