/* Loads the runtime by its path as Python's ctypes does, runs a model on zeros, and writes its first
 * output as raw bytes: load_library.exe LIBRARY MODEL OUTPUT
 */
#include <stdio.h>
#include <windows.h>

#include "lite_runtime.h"

static HMODULE library;

static void* find(const char* name) {
  void* found = (void*)GetProcAddress(library, name);
  if (!found) {
    fprintf(stderr, "%s is not exported\n", name);
    ExitProcess(3);
  }
  return found;
}
#define CALL(name) ((__typeof__(&name))find(#name))

int main(int argc, char** argv) {
  char error[1024] = "";
  if (argc != 4) return 2;
  library = LoadLibraryA(argv[1]);
  if (!library) {
    fprintf(stderr, "%s cannot be loaded: error %lu\n", argv[1], GetLastError());
    return 1;
  }
  if (CALL(lite_abi_version)() != LITE_ABI_VERSION) return 4;
  lite_options options = {0};
  options.threads = 2;
  options.max_isa = "sse2";
  lite_file* file = CALL(lite_file_open)(argv[2], error, sizeof error);
  lite_program* program =
      file ? CALL(lite_file_program)(file, NULL, &options, error, sizeof error) : NULL;
  int output = program ? CALL(lite_program_output)(program, 0) : -1;
  if (!program || CALL(lite_program_run)(program, error, sizeof error) != 0) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  lite_tensor_info info;
  CALL(lite_program_tensor)(program, output, &info);
  FILE* to = fopen(argv[3], "wb");
  if (!to || fwrite(CALL(lite_program_data)(program, output), 1, info.bytes, to) != info.bytes) return 5;
  fclose(to);
  CALL(lite_program_free)(program);
  CALL(lite_file_close)(file);
  return 0;
}
