// The parameter vectors of a process's peers as one matrix, one row each. Each row begins at a
// 64-byte boundary, so that vectorised loops see the same alignment for every peer.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/check.hpp"

namespace gossamer {

inline constexpr std::size_t kRowAlignment =
    64;  // bytes: a cache line, and the widest vector register

/// `count` rows of `length` values each, zero at first. Move-only; rows stay where they are for the
/// object's life. Not synchronised: callers order their accesses to a row.
template <class Real>
class Rows {
 public:
  Rows() = default;

  /// `offset` values of padding before each row: 0 except in the tests that show that alignment
  /// cannot change bits. Throws std::bad_alloc when memory is short.
  Rows(std::size_t count, std::size_t length, std::size_t offset = 0)
      : count_(count), length_(length), offset_(offset), stride_(padded(length + offset)) {
    const std::size_t bytes = count_ * stride_ * sizeof(Real);
    if (bytes == 0) return;
    void* memory = std::aligned_alloc(kRowAlignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    data_.reset(static_cast<Real*>(memory));
  }

  std::size_t count() const { return count_; }
  std::size_t length() const { return length_; }
  /// Distance between the starts of two rows, in values.
  std::size_t stride() const { return stride_; }

  Real* data() { return data_.get() + offset_; }
  const Real* data() const { return data_.get() + offset_; }

  std::span<Real> row(std::size_t index) {
    GOSSAMER_CHECK(index < count_, "row index out of range");
    return {data_.get() + index * stride_ + offset_, length_};
  }
  std::span<const Real> row(std::size_t index) const {
    GOSSAMER_CHECK(index < count_, "row index out of range");
    return {data_.get() + index * stride_ + offset_, length_};
  }

 private:
  struct Free {
    void operator()(Real* memory) const { std::free(memory); }
  };

  static std::size_t padded(std::size_t length) {
    constexpr std::size_t per_line = kRowAlignment / sizeof(Real);
    return (length + per_line - 1) / per_line * per_line;
  }

  std::unique_ptr<Real[], Free> data_;
  std::size_t count_ = 0;
  std::size_t length_ = 0;
  std::size_t offset_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace gossamer
