// A piece of memory to read into or write from. It is the caller's, and outlives the operation.
#pragma once

#include <cstddef>

namespace gossamer::net {

struct Area {
  void* data = nullptr;
  std::size_t size = 0;
};

}  // namespace gossamer::net
