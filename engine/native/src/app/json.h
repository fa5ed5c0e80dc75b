// JSON read into one flat table (RFC 8259), for pipelines. Nothing in the text is trusted: depth, numbers and
// escapes are checked, and names that are not there read as "none".
#pragma once

#include "array.h"

namespace lite::app {

class Json {
 public:
  enum Kind : uint8_t { kNone, kNull, kFalse, kTrue, kNumber, kText, kList, kObject };

  // One value of the table; a missing one is `none()`, of which everything is empty.
  class Value {
   public:
    Kind kind() const { return json_ ? json_->nodes_[index_].kind : kNone; }
    bool is(Kind k) const { return kind() == k; }
    explicit operator bool() const { return kind() > kNull; }
    const char* text(const char* fallback = "") const;
    double number(double fallback = 0) const;
    // A whole number within the limits; false (and `out` as it was) for anything else that is there.
    bool whole(int64_t low, int64_t high, int64_t* out) const;
    bool yes() const { return is(kTrue); }
    Value operator[](const char* key) const;
    Value first() const;
    Value next() const;
    const char* key() const;
    int count() const;

   private:
    friend class Json;
    const Json* json_ = nullptr;
    uint32_t index_ = 0;
  };

  // False where the text is not JSON; `at` is then the byte that is wrong.
  bool read(const char* text, size_t bytes, size_t* at);
  Value root() const;

 private:
  struct Node {
    Kind kind;
    uint32_t key, text;      // offsets in `texts_`
    uint32_t child, sibling;  // 0: none
    double number;
  };
  bool value(uint32_t* out, int depth);
  bool members(Node* node, bool object, int depth);
  bool string(uint32_t* out);
  bool number_of(double* out);
  bool escape();
  bool word(const char* text);
  void space();
  bool put(unsigned code);

  Array<Node> nodes_;
  Array<char> texts_;
  const char* text_ = nullptr;
  size_t bytes_ = 0, at_ = 0;
};

}  // namespace lite::app
