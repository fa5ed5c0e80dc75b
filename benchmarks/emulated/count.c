/* A plugin for qemu-user: how many instructions the program executed, written to standard error.
 * The few declarations stand here because Debian does not package qemu-plugin.h (API version 1). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t plugin_id;
typedef struct qemu_plugin_tb tb;
enum { kInlineAddU64 = 0 };

size_t qemu_plugin_tb_n_insns(const tb*);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(tb*, int op, void* counter, uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void*), void*);

EXPORT int qemu_plugin_version = 1;
static uint64_t executed;

static void translated(plugin_id id, tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, kInlineAddU64, &executed,
                                           qemu_plugin_tb_n_insns(block));
}

static void ended(plugin_id id, void* data) {
  (void)id, (void)data;
  fprintf(stderr, "instructions %llu\n", (unsigned long long)executed);
}

EXPORT int qemu_plugin_install(plugin_id id, const void* info, int argc, char** argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
