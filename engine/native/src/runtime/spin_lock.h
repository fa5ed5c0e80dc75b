// A lock for what takes microseconds.
#pragma once

#include <atomic>

namespace lite {

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag* busy) : busy_(busy) {
    while (busy_->test_and_set(std::memory_order_acquire)) {}
  }
  ~SpinLock() { busy_->clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag* busy_;
};

}  // namespace lite
