// Kernels of other people's libraries (include/lite_plugin.h) as kernels of steps.
#pragma once

#include "lite_kernel.h"
#include "lite_plugin.h"

struct lite_program;

namespace lite {

// The name that steps give to kernels of libraries: which one it is follows from the operator.
constexpr char kPluginKernel[] = "plugin";

// Adds a library's kernels; later ones replace earlier ones of the same operator in programs that
// are loaded from then on. False with one line in `error`.
bool add_plugin(const lite_plugin* plugin, const char* path, char* error, size_t error_bytes);
// The kernel of an operator and the library's name; nullptr when no library has one.
const Kernel* plugin_kernel(const char* op, const char** library);
// After a run: whether every kernel of a library succeeded; otherwise the line of the first that did not.
bool plugins_succeeded(lite_program*);
void release_plugins(lite_program*);

// dlopen's part: the library's entry, which stays open. A static executable has another one.
const lite_plugin* open_plugin(const char* path, char* error, size_t error_bytes);
// The same of a library's bytes, which a loader takes from a file only: one without a name.
const lite_plugin* open_plugin_bytes(const void* bytes, size_t size, char* error, size_t error_bytes);

}  // namespace lite
