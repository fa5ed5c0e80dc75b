/* Kernels in a shared library of your own: custom operators, and backends for sub-graphs.
 *
 *   #include "lite_plugin.h"
 *   static int run(const lite_plugin_call* call, int thread, int threads) { ...; return 0; }
 *   static const lite_plugin_kernel kernels[] = {{"com.acme::Swirl", 0, 0, run, 0}};
 *   LITE_PLUGIN("acme", kernels)
 *
 *   cc -O2 -shared -fPIC -I INCLUDE acme.c -o libacme.so
 *
 * `lite_run --library libacme.so`, `lite_plugin_load` and Python load it by its path, check the ABI
 * version and never unload it. Plain C; nothing of the runtime has to be linked. */
#ifndef LITE_PLUGIN_H
#define LITE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LITE_PLUGIN_ABI 1

/* A dense, row-major array in the operator's own order of dims. */
typedef struct {
  const char* name;
  int32_t dtype; /* 1 f32, 2 f16, 3 bf16, 4 f64, 5 i8, 6 u8, 7 i16, 8 u16, 9 i32, 10 u32, 11 i64,
                    12 u64, 13 bool */
  int32_t rank;
  int64_t dims[8];
  int64_t size;  /* elements */
  size_t bytes;
  void* data;    /* in prepare: NULL unless it is a constant; outputs are to be written in run */
} lite_plugin_tensor;

enum { LITE_PLUGIN_INTS = 1, LITE_PLUGIN_FLOATS = 2, LITE_PLUGIN_TEXT = 3 };

typedef struct {
  const char* name;
  int32_t kind;
  int32_t count;    /* numbers, or bytes of a text (which ends with a 0 as well) */
  const void* data; /* int64_t, double or char */
} lite_plugin_attr;

typedef struct {
  const char* op;   /* as the kernel names it */
  const char* name; /* of the layer */
  int32_t num_inputs, num_outputs, num_attrs;
  const lite_plugin_tensor* inputs; /* name NULL: an optional one that is absent */
  const lite_plugin_tensor* outputs;
  const lite_plugin_attr* attrs;
  int32_t threads; /* that will call run, or fewer */
  void* state;     /* the kernel's own, set in prepare */
  char* error;     /* one line for people, written where a function fails */
  size_t error_bytes;
} lite_plugin_call;

enum { LITE_PLUGIN_ONE_THREAD = 1 /* run is called with thread 0 of 1 */ };

typedef struct {
  const char* op; /* domain and name, like "com.acme::Swirl" */
  uint32_t flags;
  /* Checks types, shapes and attributes, which come from a file; 0 when it can run. May be NULL. */
  int (*prepare)(lite_plugin_call* call);
  /* Called by each thread in each run; computes its share. 0 when it succeeded. */
  int (*run)(const lite_plugin_call* call, int thread, int threads);
  /* Frees `state`; called once for each successful prepare. May be NULL. */
  void (*release)(lite_plugin_call* call);
} lite_plugin_kernel;

typedef struct {
  int32_t abi; /* LITE_PLUGIN_ABI of the header it was compiled with */
  int32_t num_kernels;
  const char* name; /* in profiles */
  const lite_plugin_kernel* kernels;
} lite_plugin;

/* What the library exports under this name. */
const lite_plugin* lite_plugin_get(void);

#define LITE_PLUGIN(name, kernels)                                                            \
  __attribute__((visibility("default"))) const lite_plugin* lite_plugin_get(void) {           \
    static const lite_plugin plugin = {LITE_PLUGIN_ABI, sizeof(kernels) / sizeof(kernels[0]), \
                                       name, kernels};                                        \
    return &plugin;                                                                           \
  }

/* A number of an attribute, by its position; `otherwise` where it is not there. */
static inline double lite_plugin_number(const lite_plugin_call* call, const char* name, int index,
                                        double otherwise) {
  int i;
  for (i = 0; i < call->num_attrs; ++i) {
    const lite_plugin_attr* a = &call->attrs[i];
    if (strcmp(a->name, name) != 0 || index < 0 || index >= a->count) continue;
    if (a->kind == LITE_PLUGIN_INTS) return (double)((const int64_t*)a->data)[index];
    if (a->kind == LITE_PLUGIN_FLOATS) return ((const double*)a->data)[index];
  }
  return otherwise;
}

/* One thread's share [*begin, *end) of `total` items. */
static inline void lite_plugin_share(int64_t total, int thread, int threads, int64_t* begin,
                                     int64_t* end) {
  *begin = total * thread / threads;
  *end = total * (thread + 1) / threads;
}

#ifdef __cplusplus
}
#endif
#endif
