// Where the gradients of a backward pass lie: buffers that are used again as soon as their content
// has been read, so that little memory is touched.
#pragma once

#include <cstddef>
#include <vector>

namespace gossamer::train {

/// Gives out buffers by number. The size of a buffer is the largest that was asked of it.
class GradientBuffers {
 public:
  /// A free buffer for `values`: of those that are large enough the smallest, else the largest,
  /// which grows, else a new one.
  std::size_t take(std::size_t values);
  /// From now on the buffer is free again.
  void give(std::size_t buffer) { buffers_[buffer].taken = false; }

  std::size_t count() const { return buffers_.size(); }
  std::size_t values(std::size_t buffer) const { return buffers_[buffer].values; }

 private:
  struct Buffer {
    std::size_t values = 0;
    bool taken = false;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace gossamer::train
