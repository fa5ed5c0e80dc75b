// What the runner needs of a system's files beyond the C library. One of files_*.cc is built.
#pragma once

namespace lite {

// Nothing happens where it is there already, or cannot be made: what is written into it says so.
void make_folder(const char* path);
// Where this program lies, for starting it again; nullptr when the system does not say.
const char* own_path();
// Paths and messages are UTF-8 from here on.
void use_utf8();

}  // namespace lite
