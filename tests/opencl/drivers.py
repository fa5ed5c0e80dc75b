"""Shared objects made for tests: drivers that are broken in a known way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

#: The machine's own driver, except that an entry of its dispatch table does FAULT. 27 is
#: clCreateProgramWithBinary in the order of Khronos' cl_icd.h.
FAULTY_DRIVER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
typedef int (*platforms_of)(unsigned, void **, unsigned *);
static void *fault(void) { FAULT; return 0; }
static platforms_of own(void) {
  void *driver = dlopen(DRIVER, RTLD_NOW);
  void *(*find)(const char *) = dlsym(driver, "clGetExtensionFunctionAddress");
  return (platforms_of)find("clIcdGetPlatformIDsKHR");
}
int clIcdGetPlatformIDsKHR(unsigned room, void **platforms, unsigned *count) {
  const int status = own()(room, platforms, count);
  if (status == 0 && room && platforms) {
    void **table = *(void ***)platforms[0];
    const uintptr_t page = (uintptr_t)&table[27] & ~(uintptr_t)4095;
    mprotect((void *)page, 8192, PROT_READ | PROT_WRITE);
    table[27] = (void *)fault;
  }
  return status;
}
void *clGetExtensionFunctionAddress(const char *name) {
  void *(*find)(const char *) =
      dlsym(dlopen(DRIVER, RTLD_NOW), "clGetExtensionFunctionAddress");
  return name[3] == 'c' && name[5] == 'G' ? (void *)clIcdGetPlatformIDsKHR : find(name);
}
int clGetPlatformInfo(void *p, unsigned what, size_t room, void *value, size_t *needed) {
  int (*own)(void *, unsigned, size_t, void *, size_t *) =
      dlsym(dlopen(DRIVER, RTLD_NOW), "clGetPlatformInfo");
  return own(p, what, room, value, needed);
}
"""


def shared_object(path: Path, source: str, *options: str) -> Path:
    """Compiles C into a shared object."""
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("no C compiler; sudo apt-get install gcc")
    text = path.with_suffix(".c")
    text.write_text(source)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-w", "-o", path, text, *options], check=True, timeout=60
    )
    return path


def faulty_driver(path: Path, driver: str, fault: str) -> Path:
    """`driver` with a fault, C statements, when a binary is loaded."""
    return shared_object(path, FAULTY_DRIVER, f'-DDRIVER="{driver}"', f"-DFAULT={fault}", "-ldl")
