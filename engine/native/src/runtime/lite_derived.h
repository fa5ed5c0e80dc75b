// Weights that a file keeps as integers: float32 = integer · scale of its channel, made when it is
// opened. The WDERIVE section (written by lite_engine/model_file/derived.py) has rows of
//   u32 weight, data, scales, width; u64 outer, channels, inner
// weight `weight` (size 0 in WINDEX) has outer·channels·inner values; `data` holds them as i8 (width 1)
// or i16 (width 2), `scales` one f32 a channel.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace lite {

// Fills the entries of the weight table that rows name. Buffers are put into `made` (num_weights
// entries, freed by the caller). False with one line in `error` for a row that does not fit.
bool derive_weights(const uint8_t* rows, size_t bytes, const void** weights, size_t* weight_bytes,
                    size_t num_weights, void** made, char* error, size_t error_bytes);

}  // namespace lite
