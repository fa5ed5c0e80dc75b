// Reading and writing .npy files (version 1.0 and 2.0, C order) and raw little-endian dumps.
#pragma once

#include <stddef.h>

#include "lite_runtime.h"

// Reads a file into `out` (exactly info->bytes). A .npy header must name the type, and a shape of
// the same element count. False with one line in `error`.
bool read_input(const char* path, const lite_tensor_info& info, void* out, char* error,
                size_t error_bytes);

// Writes a tensor as .npy; `shape` are its dims.
bool write_npy(const char* path, const lite_tensor_info& info, const void* data, char* error,
               size_t error_bytes);

const char* dtype_text(int dtype);
