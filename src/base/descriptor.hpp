// An open file, pipe or other resource that the kernel knows by a number.
#pragma once

#include <unistd.h>

#include <utility>

namespace gossamer {

/// What to do where the system opens nothing more for this process (EMFILE).
inline constexpr const char* kRaiseOpenFiles = "raise the limit of open files (ulimit -n)";

/// Closes its descriptor at its end. Thread: one at a time.
class Descriptor {
 public:
  /// A number below 0, as a failed open() returns it: none.
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    other.close();
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  /// Hands the descriptor over to the caller, who closes it.
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (is_open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

}  // namespace gossamer
