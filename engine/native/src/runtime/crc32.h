// CRC-32 as zlib computes it (reflected polynomial 0xedb88320).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite {

uint32_t crc32(const uint8_t* data, size_t bytes);

}  // namespace lite
