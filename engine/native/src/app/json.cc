#include "json.h"

#include <math.h>
#include <stdio.h>

namespace lite::app {

namespace {
constexpr int kMaxDepth = 32;
}

const char* Json::Value::text(const char* fallback) const {
  return is(kText) ? json_->texts_.data() + json_->nodes_[index_].text : fallback;
}

double Json::Value::number(double fallback) const {
  return is(kNumber) ? json_->nodes_[index_].number : fallback;
}

bool Json::Value::whole(int64_t low, int64_t high, int64_t* out) const {
  if (is(kNone) || is(kNull)) return true;
  const double n = number(NAN);
  if (!(n >= static_cast<double>(low) && n <= static_cast<double>(high)) || n != floor(n))
    return false;
  *out = static_cast<int64_t>(n);
  return true;
}

const char* Json::Value::key() const {
  return json_ ? json_->texts_.data() + json_->nodes_[index_].key : "";
}

Json::Value Json::Value::first() const {
  Value out;
  if ((is(kList) || is(kObject)) && json_->nodes_[index_].child) {
    out.json_ = json_;
    out.index_ = json_->nodes_[index_].child;
  }
  return out;
}

Json::Value Json::Value::next() const {
  Value out;
  if (json_ && json_->nodes_[index_].sibling) {
    out.json_ = json_;
    out.index_ = json_->nodes_[index_].sibling;
  }
  return out;
}

Json::Value Json::Value::operator[](const char* key) const {
  if (is(kObject))
    for (Value v = first(); v.json_; v = v.next())
      if (strcmp(v.key(), key) == 0) return v;
  return Value();
}

int Json::Value::count() const {
  int n = 0;
  for (Value v = first(); v.json_; v = v.next()) ++n;
  return n;
}

Json::Value Json::root() const {
  Value out;
  if (nodes_.size() > 1) {
    out.json_ = this;
    out.index_ = 1;
  }
  return out;
}

bool Json::read(const char* text, size_t bytes, size_t* at) {
  nodes_.clear();
  texts_.clear();
  text_ = text;
  bytes_ = bytes;
  at_ = 0;
  uint32_t root = 0;
  // Offset 0 is the empty text, node 0 stands for "none".
  bool good = texts_.push('\0') && nodes_.push(Node{}) && value(&root, 0);
  space();
  good = good && at_ == bytes_;
  *at = at_;
  if (!good) nodes_.clear();
  return good;
}

void Json::space() {
  while (at_ < bytes_ && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' ||
                          text_[at_] == '\r'))
    ++at_;
}

bool Json::word(const char* wanted) {
  const size_t length = strlen(wanted);
  if (bytes_ - at_ < length || memcmp(text_ + at_, wanted, length) != 0) return false;
  at_ += length;
  return true;
}

bool Json::value(uint32_t* out, int depth) {
  space();
  if (at_ >= bytes_ || depth > kMaxDepth || nodes_.size() >= UINT32_MAX / 2) return false;
  *out = static_cast<uint32_t>(nodes_.size());
  if (!nodes_.push(Node{})) return false;
  Node node{};
  const char c = text_[at_];
  bool good = true;
  if (c == '{' || c == '[') {
    node.kind = c == '{' ? kObject : kList;
    good = members(&node, c == '{', depth);
  } else if (c == '"') {
    node.kind = kText;
    good = string(&node.text);
  } else if (word("true")) node.kind = kTrue;
  else if (word("false")) node.kind = kFalse;
  else if (word("null")) node.kind = kNull;
  else {
    node.kind = kNumber;
    good = number_of(&node.number);
  }
  nodes_[*out] = node;
  return good;
}

bool Json::members(Node* node, bool object, int depth) {
  const char close = object ? '}' : ']';
  uint32_t last = 0;
  ++at_;
  space();
  if (at_ < bytes_ && text_[at_] == close) return ++at_, true;
  for (;;) {
    uint32_t key = 0, child = 0;
    space();
    if (object) {
      if (at_ >= bytes_ || text_[at_] != '"' || !string(&key)) return false;
      space();
      if (at_ >= bytes_ || text_[at_++] != ':') return false;
    }
    if (!value(&child, depth + 1)) return false;
    nodes_[child].key = key;
    if (last) nodes_[last].sibling = child;
    else node->child = child;
    last = child;
    space();
    if (at_ >= bytes_) return false;
    if (text_[at_] == close) return ++at_, true;
    if (text_[at_++] != ',') return false;
  }
}

bool Json::put(unsigned code) {
  const auto add = [this](unsigned byte) { return texts_.push(static_cast<char>(byte)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xC0 | code >> 6) && add(0x80 | (code & 63));
  if (code < 0x10000)
    return add(0xE0 | code >> 12) && add(0x80 | (code >> 6 & 63)) && add(0x80 | (code & 63));
  return add(0xF0 | code >> 18) && add(0x80 | (code >> 12 & 63)) && add(0x80 | (code >> 6 & 63)) &&
         add(0x80 | (code & 63));
}

bool Json::escape() {
  if (at_ >= bytes_) return false;
  const char c = text_[at_++];
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (const char* found = c ? strchr(from, c) : nullptr) return texts_.push(to[found - from]);
  const auto hex = [this](unsigned* out) {
    *out = 0;
    if (bytes_ - at_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      const char d = text_[at_++];
      const int v = d >= '0' && d <= '9'   ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : -1;
      if (v < 0) return false;
      *out = *out * 16 + static_cast<unsigned>(v);
    }
    return true;
  };
  unsigned code = 0, low = 0;
  if (c != 'u' || !hex(&code) || !code) return false;  // a zero byte would end the text
  if (code >= 0xD800 && code < 0xDC00) {
    if (!word("\\u") || !hex(&low) || low < 0xDC00 || low > 0xDFFF) return false;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    return false;
  }
  return put(code);
}

bool Json::string(uint32_t* out) {
  *out = static_cast<uint32_t>(texts_.size());
  if (texts_.size() > UINT32_MAX / 2) return false;
  for (++at_; at_ < bytes_;) {
    const char c = text_[at_++];
    if (c == '"') return texts_.push('\0');
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c == '\\' ? !escape() : !texts_.push(c)) return false;
  }
  return false;
}

// strtod reads what the locale says; digits are added up here, which is exact to one unit in the
// last place for the numbers of a pipeline, and exact for whole ones and short fractions.
bool Json::number_of(double* out) {
  const size_t start = at_;
  bool minus = word("-");
  double mantissa = 0;
  int scale = 0, digits = 0;
  const auto digit = [this] { return at_ < bytes_ && text_[at_] >= '0' && text_[at_] <= '9'; };
  for (; digit(); ++at_, ++digits) mantissa = mantissa * 10 + (text_[at_] - '0');
  if (!digits) return false;
  if (word("."))
    for (digits = 0; digit(); ++at_, ++digits)
      if (digits < 17) mantissa = mantissa * 10 + (text_[at_] - '0'), --scale;
  if (!digits) return false;
  if (word("e") || word("E")) {
    const bool negative = word("-");
    if (!negative) word("+");
    int exponent = 0;
    if (!digit()) return false;
    for (; digit(); ++at_) exponent = exponent < 1000 ? exponent * 10 + (text_[at_] - '0') : exponent;
    scale += negative ? -exponent : exponent;
  }
  double power = 1;
  for (int i = scale < 0 ? -scale : scale; i > 0 && power < 1e300; --i) power *= 10;
  const double found = scale < 0 ? mantissa / power : mantissa * power;
  *out = minus ? -found : found;
  return at_ > start && isfinite(found);
}

}  // namespace lite::app
