// What a kernel's text states of it, in comments that begin with //@ (CONTRIBUTING.md has the
// form).
#pragma once

#include "device_plan.h"
#include "expression.h"

namespace lite::opencl {

// The first line after `//@ kernel NAME`, nullptr where the text has no such statement. Lines
// follow each other, each after "//@ ".
const char* statement_of(const Launch&);
// What comes after "//@ " in the line at *next, which moves on; nullptr at the statement's end.
const char* next_line(const char** next);

// Whether the kernel's file lists each option of a launch, with such a value, once. False with a
// reason in env.error.
bool check_options(const Launch&, Env&);
// What an option that the file lists is in an expression: the number, 1 for a flag, the bytes of a
// type, 0 where the launch does not define it. False for any other name.
bool option_value(const Launch&, const char* name, size_t length, int64_t* value);
// Bytes of an OpenCL C type, float and half vectors among them; 0 for an unknown one.
int64_t type_bytes(const char* type, size_t length);

}  // namespace lite::opencl
