// Small services behind lite_kernel.h: data types, attributes, errors, variant names.
#include "lite_kernel.h"

#include <stdarg.h>
#include <stdio.h>

#include "allocator.h"

namespace lite {

namespace {
struct DTypeRow {
  const char* name;
  int bytes;
};
const DTypeRow kDTypes[] = {{"?", 0},   {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"f64", 8},
                            {"i8", 1},  {"u8", 1},  {"i16", 2}, {"u16", 2},  {"i32", 4},
                            {"u32", 4}, {"i64", 8}, {"u64", 8}, {"bool", 1}};
const DTypeRow& row_of(DType type) {
  const unsigned i = static_cast<unsigned>(type);
  return kDTypes[i < sizeof(kDTypes) / sizeof(kDTypes[0]) ? i : 0];
}
}  // namespace

int dtype_bytes(DType type) { return row_of(type).bytes; }
const char* dtype_name(DType type) { return row_of(type).name; }

const Attr* find_attr(const Step& step, const char* name) {
  for (int i = 0; i < step.num_attrs; ++i)
    if (strcmp(step.attrs[i].name, name) == 0) return &step.attrs[i];
  return nullptr;
}

int64_t attr_int(const Step& step, const char* name, int64_t otherwise) {
  const Attr* attr = find_attr(step, name);
  return attr && attr->kind == AttrKind::kInts && attr->count > 0 ? attr->ints[0] : otherwise;
}

double attr_float(const Step& step, const char* name, double otherwise) {
  const Attr* attr = find_attr(step, name);
  if (!attr || attr->count < 1) return otherwise;
  if (attr->kind == AttrKind::kFloats) return attr->floats[0];
  return attr->kind == AttrKind::kInts ? static_cast<double>(attr->ints[0]) : otherwise;
}

const char* attr_string(const Step& step, const char* name, const char* otherwise) {
  const Attr* attr = find_attr(step, name);
  return attr && attr->kind == AttrKind::kString ? attr->string : otherwise;
}

const int64_t* attr_ints(const Step& step, const char* name, int* count) {
  const Attr* attr = find_attr(step, name);
  const bool good = attr && attr->kind == AttrKind::kInts;
  *count = good ? attr->count : 0;
  return good ? attr->ints : nullptr;
}

const double* attr_floats(const Step& step, const char* name, int* count) {
  const Attr* attr = find_attr(step, name);
  const bool good = attr && attr->kind == AttrKind::kFloats;
  *count = good ? attr->count : 0;
  return good ? attr->floats : nullptr;
}

void* Env::allocate(size_t bytes) { return allocator->allocate(bytes); }

bool Env::fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  if (error_bytes) vsnprintf(error, error_bytes, format, args);
  va_end(args);
  // Names come from files, and an error is one line.
  for (char* c = error; error_bytes && *c; ++c)
    if (static_cast<unsigned char>(*c) < 0x20) *c = ' ';
  return false;
}

bool Env::out_of_memory() {
  return fail("out of memory; use fewer threads, smaller inputs or a larger memory limit");
}

void set_variant(Step& step, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(step.variant, sizeof step.variant, format, args);
  va_end(args);
}

void append_variant(Step& step, const char* suffix) {
  const size_t length = strlen(step.variant), more = strlen(suffix) + 1;
  if (length + more <= sizeof step.variant) memcpy(step.variant + length, suffix, more);
}

}  // namespace lite
