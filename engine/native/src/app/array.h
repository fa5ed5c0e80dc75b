// Memory that grows, of elements that memcpy may move. Out of memory is a `false`, never an abort.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <new>
#include <type_traits>

namespace lite::app {

// An object by itself, null without memory: the library's `new` would bring exceptions along.
template <class T>
T* make() {
  void* room = malloc(sizeof(T));
  return room ? new (room) T() : nullptr;
}

template <class T>
void destroy(T* object) {
  if (!object) return;
  object->~T();
  free(static_cast<void*>(object));
}

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  // New elements are zero bytes.
  bool resize(size_t count) {
    if (!reserve(count)) return false;
    if (count > size_) memset(static_cast<void*>(data_ + size_), 0, (count - size_) * sizeof(T));
    size_ = count;
    return true;
  }
  bool reserve(size_t count) {
    if (count <= room_) return true;
    if (count > SIZE_MAX / 2 / sizeof(T)) return false;
    T* grown = static_cast<T*>(realloc(static_cast<void*>(data_), count * sizeof(T)));
    if (!grown) return false;
    data_ = grown;
    room_ = count;
    return true;
  }
  bool push(const T& value) {
    const T copy = value;  // it may lie in this array
    if (size_ == room_ && !reserve(room_ * 2 + 8)) return false;
    data_[size_++] = copy;
    return true;
  }
  // Drops what follows the first `count` elements.
  void cut(size_t count) { size_ = count < size_ ? count : size_; }
  void clear() { size_ = 0; }
  void swap(Array& other) {
    T* data = data_;
    data_ = other.data_;
    other.data_ = data;
    const size_t size = size_, room = room_;
    size_ = other.size_;
    room_ = other.room_;
    other.size_ = size;
    other.room_ = room;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

}  // namespace lite::app
