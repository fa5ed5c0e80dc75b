// Input: a .lite file (src/runtime/lite_file.cc), its program loaded and run. A mutated file gets the
// right checksums again, or every one of them would end there.
#include "bytes.h"
#include "runtime/crc32.h"
#include "runtime/lite_file.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  uint32_t count = 0;
  if (size < 16 || seed % 16 == 0) return size;
  memcpy(&count, data + 12, 4);
  for (uint32_t i = 0; i < count && 16 + 32 * size_t{i + 1} <= size; ++i) {
    lite::Section section;
    memcpy(&section, data + 16 + 32 * i, sizeof section);
    if (section.offset > size || section.size > size - section.offset) continue;
    section.crc = lite::crc32(data + section.offset, section.size);
    memcpy(data + 16 + 32 * i, &section, sizeof section);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile input(data, size);
  char error[256];
  lite_file* file = lite_file_open(input.path, error, sizeof error);
  if (!file) return 0;
  const lite_options options = small();
  run_program(lite_file_program(file, nullptr, &options, error, sizeof error));
  lite_file_close(file);
  return 0;
}
