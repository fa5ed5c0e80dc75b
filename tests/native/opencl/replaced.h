/* A driver hands its functions out through a table. A library that includes this file is that driver with
   some of them replaced: replace() puts them into a copy of the table, which the platform then has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 103 };
static void **table, *changed[TABLE];
static void replace(void);

/* Whether a call is number getenv(name) or a later one. */
static int fails(const char *name, int *number) {
  const char *before = getenv(name);
  return before && (*number)++ >= atoi(before);
}

typedef int (*platforms)(unsigned, void **, unsigned *);
int clIcdGetPlatformIDsKHR(unsigned room, void **out, unsigned *count) {
  void *(*find)(const char *) = dlsym(RTLD_NEXT, "clGetExtensionFunctionAddress");
  platforms real = (platforms)dlsym(RTLD_NEXT, "clIcdGetPlatformIDsKHR");
  if (!real && find) real = (platforms)find("clIcdGetPlatformIDsKHR");
  int status = real(room, out, count);
  if (status || !room || !out || *(void **)out[0] == changed) return status;
  table = *(void ***)out[0];
  memcpy(changed, table, sizeof changed);
  replace();
  *(void **)out[0] = changed;
  return 0;
}
