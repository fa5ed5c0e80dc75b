// Values that cross between the host and a device where both see the same memory: one buffer holds what
// would be two copies. The host sees it only while it is mapped, the device only while it is not (OpenCL
// 1.2, 5.4.3): what steps do with such a value says when it is mapped, and to do what.
#pragma once

#include "device.h"

struct lite_program;

namespace lite::opencl {

// A part of a buffer. Its addresses while the host may read it, or write it, too; nullptr: it may not. A
// driver may give another address each time.
struct Mapped {
  cl_mem buffer;
  size_t offset, bytes;
  uint8_t *read, *write;
};

// An input or output in memory of the program's own. Between runs the host may write it. Programs that
// take over from each other on one device have the same ports.
struct Port {
  int32_t tensor;
  bool asked;  // somebody knows its address
  bool plain;  // `write` is memory of the host alone, because the device failed
  cl_int status;  // why it could not be mapped
  Mapped memory;
};

struct Ports {
  lite_program* owner;
  Device* device;  // one that failed, and stays as long as the ports
  Port* all;
  uint32_t count;
};

struct Border {
  int32_t host;    // the tensor that owns the storage on the host
  int32_t device;  // the one on the device
  int32_t place;   // its buffer
  uint32_t copy;   // the step between them, which copies nothing
  bool upload;     // from the host to the device
  bool active;     // in this run
  bool ours;       // of a port: the program's own memory is used in this run, not the caller's
  Port* port;      // nullptr: a value between two steps
  Mapped own;      // where it is not a port
  int64_t ns;      // what mapping took since the run began or the copy's row was noted

  Mapped& memory() { return port ? port->memory : own; }
};

enum class Access : uint8_t { kHostReads, kHostWrites, kDeviceReads, kDeviceWrites, kHostDone };

struct Touch {
  uint32_t border;
  Access access;
};

struct Borders {
  Border* all;
  uint32_t count;
  int32_t* of_step;  // per step: the border that it is the copy of, -1: none
  Touch* touches;    // in the order of the steps; the end of the run counts as one more
  uint32_t* at;      // per step, and one more: its first touch
  bool* mappable;    // per buffer
};

// Finds the borders of a program whose device shares the host's memory, gives them buffers of their own
// where others use theirs meanwhile, and notes what touches them. Before buffers are made. False without
// memory.
bool find_borders(lite_program*);
// After buffers are made.
void set_borders(lite_program*);

cl_int map(const Device&, Mapped*, bool write, bool wait, cl_event*);
cl_int unmap(const Device&, Mapped*, bool write, cl_event*);
// Gives the memory of ports back; nobody may know their addresses any more.
void release_ports(Ports*, const Device&);
// After a run that failed: the host gets its inputs and outputs back, where the device does not give
// them, in memory of its own.
void restore_ports(lite_program*);

}  // namespace lite::opencl
