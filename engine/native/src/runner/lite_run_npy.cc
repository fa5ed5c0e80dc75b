#include "lite_run_npy.h"

#include <charconv>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/files.h"

namespace {

// Per dtype number: our name, NumPy's descriptor. NumPy has no bfloat16: its bits travel as u2.
struct Row {
  const char *name, *npy;
};
const Row kRows[] = {{"?", ""},      {"f32", "<f4"}, {"f16", "<f2"}, {"bf16", "<u2"},
                     {"f64", "<f8"}, {"i8", "|i1"},  {"u8", "|u1"},  {"i16", "<i2"},
                     {"u16", "<u2"}, {"i32", "<i4"}, {"u32", "<u4"}, {"i64", "<i8"},
                     {"u64", "<u8"}, {"bool", "|b1"}};
const Row& row_of(int dtype) { return kRows[dtype > 0 && dtype < 14 ? dtype : 0]; }

// The text after `key` in a header dictionary.
const char* value_of(const char* header, const char* key) {
  const char* at = strstr(header, key);
  if (!at) return nullptr;
  at += strlen(key);
  while (*at == ' ' || *at == ':') ++at;
  return at;
}

bool check_header(const char* header, const lite_tensor_info& info, char* error, size_t bytes) {
  const char* descr = value_of(header, "'descr'");
  const char* order = value_of(header, "'fortran_order'");
  const char* shape = value_of(header, "'shape'");
  const char* wanted = row_of(info.dtype).npy;
  if (!descr || !order || !shape || *shape != '(') {
    snprintf(error, bytes, "the .npy header is damaged");
    return false;
  }
  if (strncmp(descr + 1, wanted, 3) != 0) {
    snprintf(error, bytes, "has type %.3s, the input is %s; convert it with numpy's astype",
             descr + 1, row_of(info.dtype).name);
    return false;
  }
  if (strncmp(order, "False", 5) != 0) {
    snprintf(error, bytes, "is in Fortran order; save it with numpy.ascontiguousarray");
    return false;
  }
  int rank = 0;
  bool same = true;
  for (const char* at = shape + 1; *at && *at != ')';) {
    long long dim = 0;
    const auto [end, failed] = std::from_chars(at, at + strlen(at), dim);
    if (failed != std::errc()) break;
    same = same && rank < info.rank && dim == info.dims[rank];
    ++rank;
    at = end;
    while (*at == ',' || *at == ' ') ++at;
  }
  if (same && rank == info.rank) return true;
  int at = snprintf(error, bytes, "has another shape than the input, which is [");
  for (int i = 0; i < info.rank && at > 0 && static_cast<size_t>(at) < bytes; ++i)
    at += snprintf(error + at, bytes - at, i ? ", %lld" : "%lld",
                   static_cast<long long>(info.dims[i]));
  if (at > 0 && static_cast<size_t>(at) < bytes) snprintf(error + at, bytes - at, "]");
  return false;
}

}  // namespace

const char* dtype_text(int dtype) { return row_of(dtype).name; }

bool read_input(const char* path, const lite_tensor_info& info, void* out, char* error,
                size_t error_bytes) {
  FILE* file = lite::open_file(path, "rb");
  if (!file) {
    snprintf(error, error_bytes, "cannot be opened");
    return false;
  }
  unsigned char lead[12] = {};
  const size_t got = fread(lead, 1, sizeof lead, file);
  bool good = true;
  if (got >= 10 && memcmp(lead, "\x93NUMPY", 6) == 0) {
    const bool wide = lead[6] >= 2;
    const size_t length =
        lead[8] | lead[9] << 8 | (wide ? lead[10] << 16 | size_t{lead[11]} << 24 : 0);
    char header[4096] = {};
    good = length < sizeof header && fseek(file, wide ? 12 : 10, SEEK_SET) == 0 &&
           fread(header, 1, length, file) == length;
    if (!good) snprintf(error, error_bytes, "the .npy header is damaged");
    good = good && check_header(header, info, error, error_bytes);
  } else {
    good = fseek(file, 0, SEEK_SET) == 0;
  }
  if (good) {
    const size_t have = fread(out, 1, info.bytes, file);
    good = have == info.bytes && fgetc(file) == EOF;
    if (!good) snprintf(error, error_bytes, "does not hold exactly %zu bytes of data", info.bytes);
  }
  fclose(file);
  return good;
}

bool write_npy(const char* path, const lite_tensor_info& info, const void* data, char* error,
               size_t error_bytes) {
  char shape[256] = "";
  int at = 0;
  for (int i = 0; i < info.rank; ++i)
    at += snprintf(shape + at, sizeof shape - at, "%lld, ", static_cast<long long>(info.dims[i]));
  char header[512];
  int length =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
               row_of(info.dtype).npy, shape);
  // Header and its 10 bytes of lead end at a multiple of 64 with a line feed.
  const int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
  while (length < padded - 1) header[length++] = ' ';
  header[length++] = '\n';
  const unsigned char lead[10] = {0x93,
                                  'N',
                                  'U',
                                  'M',
                                  'P',
                                  'Y',
                                  1,
                                  0,
                                  static_cast<unsigned char>(length & 255),
                                  static_cast<unsigned char>(length >> 8)};
  FILE* file = lite::open_file(path, "wb");
  bool good = file && fwrite(lead, 1, 10, file) == 10 &&
              fwrite(header, 1, length, file) == static_cast<size_t>(length) &&
              (info.bytes == 0 || fwrite(data, 1, info.bytes, file) == info.bytes);
  if (file) good = fclose(file) == 0 && good;
  if (!good) {
    snprintf(error, error_bytes, "cannot be written; is the disk full?");
    if (file) remove(path);
  }
  return good;
}
