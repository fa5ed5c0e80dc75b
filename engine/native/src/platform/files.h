// What the runner needs of a system's files beyond the C library. One of files_*.cc is built.
#pragma once

#include <stdio.h>

namespace lite {

// The program's arguments as UTF-8, and messages too from here on.
void use_utf8(int* argc, char*** argv);
// fopen of a UTF-8 path.
FILE* open_file(const char* path, const char* mode);
// What has come on standard input, at most `bytes` of it: waits for the first one. 0 at its end.
size_t read_input(void* to, size_t bytes);

// Nothing happens where it is there already, or cannot be made: what is written into it says so.
void make_folder(const char* path);
// Where this program lies, for starting it again; nullptr when the system does not say.
const char* own_path();

}  // namespace lite
