#include "reach.h"

#include "../runtime/rows.h"
#include "statement.h"

namespace lite::opencl {

namespace {

constexpr int kMaxLets = 24, kMaxRegions = 2 * kMaxArguments;

struct Region {
  int argument;
  bool written;
  Rows rows;
};

// A statement while it is read, line by line.
struct Statement {
  const Launch& launch;
  const Memory* memory;
  uint64_t local_memory;
  Env& env;
  Parameter parameters[kMaxArguments];
  int count;
  struct {
    const char* name;
    size_t length;
    int64_t value;
  } lets[kMaxLets];
  int num_lets;
  bool stated[kMaxArguments];
  Region regions[kMaxRegions];
  int num_regions;
  bool sized;
  uint64_t local_bytes;

  bool fail(const char* what, const char* why) {
    return env.fail("OpenCL: kernel '%s': '%.*s' %s", launch.kernel,
                    static_cast<int>(strcspn(what, "\n")), what, why);
  }

  bool find(const char* name, size_t length, int64_t* value) const {
    for (int i = 0; i < num_lets; ++i)
      if (lets[i].length == length && strncmp(lets[i].name, name, length) == 0)
        return *value = lets[i].value, true;
    const int i = parameter(name, length);
    if (i >= 0)
      return *value = static_cast<int32_t>(launch.values[i]), launch.kinds[i] == Argument::kInt;
    if (length == 2 && *name == 'g' && name[1] >= '0' && name[1] <= '2')
      return *value = static_cast<int64_t>(launch.grid[name[1] - '0']), true;
    if (is_word(name, length, "INT_MAX")) return *value = INT32_MAX, true;
    return option_value(launch, name, length, value);
  }

  int parameter(const char* name, size_t length) const {
    for (int i = 0; i < count; ++i)
      if (parameters[i].name_length == length && strncmp(parameters[i].name, name, length) == 0)
        return i;
    return -1;
  }

  bool value_of(const char** at, int64_t* value) {
    const char* first = *at;
    const Names names = {[](const void* self, const char* name, size_t length, int64_t* out) {
                           return static_cast<const Statement*>(self)->find(name, length, out);
                         },
                         this};
    const char* wrong = evaluate(at, names, value);
    return !wrong || fail(first, wrong);
  }

  // "E, E": at most `room` values.
  int values_of(const char** at, int64_t* out, int room) {
    int n = 0;
    do {
      *at += n > 0;
      if (n == room || !value_of(at, &out[n++])) return -1;
    } while (**at == ',');
    return n;
  }

  int64_t element_bytes(const Parameter& p) const {
    int64_t half;
    if (is_word(p.type, p.type_length, "T"))
      return option_value(launch, "HALF", 4, &half) && half ? 2 : 4;
    const int64_t known = type_bytes(p.type, p.type_length);
    return known || !option_value(launch, p.type, p.type_length, &half) ? known : half;
  }

  bool let(const char* at) {
    if (num_lets == kMaxLets) return fail(at, "is one name too many");
    auto& made = lets[num_lets];
    made = {at, word_length(at), 0};
    at += strcspn(at, "=") + 1;
    return value_of(&at, &made.value) && ++num_lets;
  }

  bool need(const char* at) {
    for (int64_t held;; ++at) {
      const char* first = at;
      if (!value_of(&at, &held)) return false;
      if (!held) return fail(first, "does not hold");
      if (*at != ',') return true;
    }
  }

  bool group(const char* at) {
    int64_t wanted[3];
    const char* first = at;
    const int n = values_of(&at, wanted, 3);
    if (n < 0) return false;
    for (int d = 0; d < n; ++d)
      if (wanted[d] != static_cast<int64_t>(launch.group[d]))
        return fail(first, "is another group than the launch has");
    return true;
  }

  // The grid is what a kernel asks for, rounded up to whole groups.
  bool items(const char* at) {
    int64_t wanted[3];
    const char* first = at;
    const int n = values_of(&at, wanted, 3);
    if (n < 0) return false;
    bool good = n == static_cast<int>(launch.dimensions);
    for (int d = 0; good && d < n; ++d) {
      const int64_t own = static_cast<int64_t>(launch.group[d]);
      good = wanted[d] > 0 && wanted[d] <= INT32_MAX &&
             (wanted[d] + own - 1) / own * own == static_cast<int64_t>(launch.grid[d]);
    }
    sized = true;
    return good || fail(first, "are other work-items than the launch has");
  }

  bool local(const char* at) {
    int64_t bytes;
    const char* first = at;
    if (!value_of(&at, &bytes)) return false;
    local_bytes = static_cast<uint64_t>(bytes);
    return local_bytes <= local_memory || fail(first, "is more local memory than the device has");
  }

  // "x[elements], y[first, rows, elements from row to row, elements of a row], image[columns,
  // rows]"
  bool reach(const char* at, bool written, bool holds) {
    for (;; ++at) {
      while (*at == ' ') ++at;
      const char* first = at;
      const size_t length = word_length(at);
      const int i = parameter(at, length);
      if (i < 0 || at[length] != '[' || !(parameters[i].memory || parameters[i].image))
        return fail(first, "is no memory of the kernel");
      stated[i] = true;
      if (holds) {
        int64_t v[4];
        at += length + 1;
        const int n = values_of(&at, v, 4);
        if (n < 0 || *at != ']') return n < 0 ? false : fail(first, "is no extent");
        if (!(parameters[i].image ? inside(i, v, n, first) : inside(i, v, n, written, first)))
          return false;
        ++at;
      } else {
        at += strcspn(at, "]") + 1;
      }
      if (*at != ',') return true;
    }
  }

  bool inside(int i, const int64_t* v, int n, const char* what) {
    const Memory& m = memory[i];
    return (n == 2 && v[0] >= 0 && v[1] >= 0 && v[0] <= m.width && v[1] <= m.height) ||
           fail(what, "does not fit the image");
  }

  bool inside(int i, const int64_t* v, int n, bool written, const char* what) {
    const int64_t bytes = element_bytes(parameters[i]);
    if (!bytes) return fail(what, "has elements of an unknown type");
    int64_t first = 0, rows = 1, apart = v[0], width = v[0], end = 0;
    if (n == 4) first = v[0], rows = v[1], apart = v[2], width = v[3];
    if ((n != 1 && n != 4) || first < 0 || rows < 0 || apart < 0 || width < 0)
      return fail(what, "is negative");
    if (rows == 0 || width == 0) return true;
    const bool exact = !__builtin_mul_overflow(rows - 1, apart, &end) &&
                       !__builtin_add_overflow(end, width, &end) &&
                       !__builtin_add_overflow(end, first, &end);
    // Kernels number elements by ints.
    if (!exact || end > INT32_MAX || static_cast<uint64_t>(end * bytes) > memory[i].bytes)
      return fail(what, "is more than the argument has");
    if (written && memory[i].constant) return fail(what, "is constant");
    if (num_regions == kMaxRegions) return fail(what, "is one extent too many");
    const auto in_bytes = [&](int64_t count) { return static_cast<uint64_t>(count * bytes); };
    regions[num_regions++] = {
        i, written, {in_bytes(first), in_bytes(end - first), in_bytes(width), in_bytes(apart)}};
    return true;
  }

  bool apart() {
    for (int a = 0; a < num_regions; ++a)
      for (int b = 0; b < num_regions; ++b) {
        const Memory &x = memory[regions[a].argument], &y = memory[regions[b].argument];
        if (!regions[a].written || regions[a].argument == regions[b].argument ||
            x.kind != y.kind || x.number != y.number)
          continue;
        if (overlap(regions[a].rows, regions[b].rows))
          return env.fail("OpenCL: kernel '%s': argument %d overwrites argument %d", launch.kernel,
                          regions[a].argument, regions[b].argument);
      }
    return true;
  }

  bool line(const char* at) {
    const size_t length = word_length(at);
    const char* rest = at + length;
    // A condition at the end: whatever it guards is not evaluated where it does not hold.
    bool holds = true;
    const char *end = at + strcspn(at, "\n"), *when = strstr(at, " when ");
    if (when && when < end) {
      const char* condition = when + 6;
      int64_t held;
      if (!value_of(&condition, &held)) return false;
      holds = held != 0;
    }
    if (is_word(at, length, "reads") || is_word(at, length, "writes"))
      return reach(rest, *at == 'w', holds);
    if (!holds) return true;
    if (is_word(at, length, "let")) return let(rest + 1);
    if (is_word(at, length, "need")) return need(rest);
    if (is_word(at, length, "group")) return group(rest);
    if (is_word(at, length, "items")) return items(rest);
    if (is_word(at, length, "local")) return local(rest);
    return fail(at, "is no line of a statement");
  }

  // Only what says how much local memory there must be.
  bool local_lines() {
    const char* next = statement_of(launch);
    while (const char* at = next ? next_line(&next) : nullptr) {
      const size_t length = word_length(at);
      if ((is_word(at, length, "let") || is_word(at, length, "local")) && !line(at)) return false;
    }
    return true;
  }

  bool whole() {
    const char* next = statement_of(launch);
    if (!next) return env.fail("OpenCL: kernel '%s' does not state its reach", launch.kernel);
    while (const char* at = next_line(&next))
      if (!line(at)) return false;
    for (int i = 0; i < count; ++i)
      if ((parameters[i].memory || parameters[i].image) && !stated[i])
        return fail(parameters[i].name, "is not in the kernel's statement");
    return (sized || env.fail("OpenCL: kernel '%s' states no items", launch.kernel)) && apart();
  }
};

}  // namespace

bool stays_within(const Launch& launch, const Memory memory[], uint64_t local_memory, Env& env) {
  Statement statement{launch, memory, local_memory, env, {}, 0, {}, 0, {}, {}, 0, false, 0};
  statement.count = matching_parameters(launch, env, statement.parameters);
  return statement.count >= 0 && check_options(launch, env) && statement.whole();
}

uint64_t local_memory_of(const Launch& launch, const Env& env) {
  char reason[200];
  Env quiet = env;
  quiet.error = reason;
  quiet.error_bytes = sizeof reason;
  Statement statement{launch, nullptr, INT64_MAX, quiet, {}, 0, {}, 0, {}, {}, 0, false, 0};
  statement.count = matching_parameters(launch, quiet, statement.parameters);
  return statement.count >= 0 && statement.local_lines() ? statement.local_bytes : 0;
}

}  // namespace lite::opencl
