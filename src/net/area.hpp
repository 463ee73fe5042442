// A piece of memory to read into or write from.
#pragma once

#include <cstddef>

namespace gossamer::net {

struct Area {
  void* data = nullptr;
  std::size_t size = 0;
};

}  // namespace gossamer::net
