// The operating system's generator of random numbers.
#pragma once

#include "train/privacy/pair_noise.hpp"

namespace gossamer::train {

/// Numbers that cannot be repeated (getrandom). Thread: any, one at a time.
class SystemBits final : public BitSource {
 public:
  void fill(std::span<std::uint64_t> numbers) override;
};

}  // namespace gossamer::train
