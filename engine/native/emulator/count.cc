// A plugin for qemu-user: how many instructions the program executed, all of them on standard error
// and, with the argument out=FILE, the count at each reading of the clock in FILE, one a line.
// lite_run reads its clock at the start of a run, after every step and at the end, so that the
// differences are the steps' own instructions (one thread). The few declarations stand here because
// Debian does not package qemu-plugin.h (API version 1).
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;

extern "C" {
size_t qemu_plugin_tb_n_insns(const block*);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, block*));
void qemu_plugin_register_vcpu_tb_exec_inline(block*, int op, void* counter, uint64_t add);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id,
                                          void (*)(plugin_id, unsigned, int64_t number, uint64_t,
                                                   uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                                                   uint64_t, uint64_t));
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void*), void*);
EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_install(plugin_id, const void* info, int argc, char** argv);
}

int qemu_plugin_version = 1;

namespace {

constexpr int kInlineAddU64 = 0;
int64_t marking = 113;  // clock_gettime of AArch64 Linux
uint64_t executed;
FILE* out;

// A block is counted when it is entered; a system call ends its block, so the count is exact there.
void translated(plugin_id, block* b) {
  qemu_plugin_register_vcpu_tb_exec_inline(b, kInlineAddU64, &executed, qemu_plugin_tb_n_insns(b));
}

void called(plugin_id, unsigned, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
            uint64_t, uint64_t, uint64_t) {
  if (number == marking && out)
    fprintf(out, "%llu\n", static_cast<unsigned long long>(executed));
}

void ended(plugin_id, void*) {
  fprintf(stderr, "instructions %llu\n", static_cast<unsigned long long>(executed));
  if (out) fclose(out);
}

}  // namespace

int qemu_plugin_install(plugin_id id, const void*, int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    if (strncmp(argv[i], "out=", 4) == 0) out = fopen(argv[i] + 4, "w");
    if (strncmp(argv[i], "call=", 5) == 0) marking = atoll(argv[i] + 5);
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  if (out) qemu_plugin_register_vcpu_syscall_cb(id, called);
  qemu_plugin_register_atexit_cb(id, ended, nullptr);
  return 0;
}
