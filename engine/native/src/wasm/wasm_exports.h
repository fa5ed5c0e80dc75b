// What the files of a page's module share.
#pragma once

// A module exports these alone; what they do not reach is not in it.
#define EXPORT(name) __attribute__((export_name(#name)))

namespace lite::wasm {

// Why the last call failed, for lite_wasm_error.
inline char error_text[1024];

}  // namespace lite::wasm
