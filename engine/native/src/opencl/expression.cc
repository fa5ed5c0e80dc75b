#include "expression.h"

namespace lite::opencl {

namespace {

const char kUnknown[] = "names something unknown", kOverflow[] = "is beyond 64 bits",
           kDivision[] = "divides by 0 or what is negative", kForm[] = "is no expression";

struct Reading {
  const char* at;
  const Names& names;
  const char* wrong;

  int64_t fail(const char* why) {
    if (!wrong) wrong = why;
    return 0;
  }

  char peek() {
    while (*at == ' ') ++at;
    return *at;
  }

  bool take(const char* symbol) {
    peek();
    const size_t length = strlen(symbol);
    if (strncmp(at, symbol, length) != 0) return false;
    at += length;
    return true;
  }

  int64_t divide(int64_t a, int64_t b, bool up, bool rest) {
    if (a < 0 || b <= 0) return fail(kDivision);
    return rest ? a % b : a / b + (up && a % b);
  }

  int64_t call(const char* name, size_t length) {
    int64_t value = compare();
    const bool smallest = is_word(name, length, "min"), largest = is_word(name, length, "max");
    if (!smallest && !largest && !is_word(name, length, "up")) return fail(kUnknown);
    while (!wrong && take(",")) {
      const int64_t next = compare();
      if (smallest) value = next < value ? next : value;
      else if (largest) value = next > value ? next : value;
      else value = divide(value, next, true, false);
    }
    return take(")") ? value : fail(kForm);
  }

  int64_t primary() {
    int64_t value = 0;
    if (take("(")) {
      value = compare();
      return take(")") ? value : fail(kForm);
    }
    if (take("-")) {
      value = primary();
      return __builtin_sub_overflow(int64_t{0}, value, &value) ? fail(kOverflow) : value;
    }
    if (is_digit(peek())) {
      for (; is_digit(*at); ++at)
        if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
            __builtin_add_overflow(value, int64_t{*at - '0'}, &value))
          return fail(kOverflow);
      return value;
    }
    const char* name = at;
    const size_t length = word_length(at);
    if (!length) return fail(kForm);
    at += length;
    if (*at == '(') {
      ++at;
      return call(name, length);
    }
    return names.find(names.context, name, length, &value) ? value : fail(kUnknown);
  }

  int64_t product() {
    int64_t value = primary();
    while (!wrong) {
      if (take("*")) {
        if (__builtin_mul_overflow(value, primary(), &value)) return fail(kOverflow);
      } else if (peek() == '/' || *at == '%') {
        const bool rest = *at++ == '%';
        value = divide(value, primary(), false, rest);
      } else {
        break;
      }
    }
    return value;
  }

  int64_t sum() {
    int64_t value = product();
    while (!wrong) {
      if (take("+")) {
        if (__builtin_add_overflow(value, product(), &value)) return fail(kOverflow);
      } else if (take("-")) {
        if (__builtin_sub_overflow(value, product(), &value)) return fail(kOverflow);
      } else {
        break;
      }
    }
    return value;
  }

  int64_t compare() {
    const int64_t a = sum();
    if (take("<=")) return a <= sum();
    if (take(">=")) return a >= sum();
    if (take("==")) return a == sum();
    if (take("!=")) return a != sum();
    if (take("<")) return a < sum();
    if (take(">")) return a > sum();
    return a;
  }
};

}  // namespace

const char* evaluate(const char** at, const Names& names, int64_t* value) {
  Reading reading{*at, names, nullptr};
  *value = reading.compare();
  *at = reading.at;
  return reading.wrong;
}

}  // namespace lite::opencl
