#include "net/io/random_number.hpp"

#include <random>

namespace gossamer::net {

std::uint64_t random_number() {
  std::random_device device;
  std::uint64_t number = 0;
  while (number == 0) number = std::uint64_t{device()} << 32 | device();
  return number;
}

}  // namespace gossamer::net
