// Range checks: rows with values out of range are reported in a fault word, without a wait.
#include <limits>

#include "gpu/fault_word.hpp"
#include "tests/cuda/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

TEST_CASE(
    "GPU: one value that is not finite, or too large, is found anywhere, and none where there is "
    "none") {
  GOSSAMER_GPU(gpu_device);
  using Limits = std::numeric_limits<float>;
  constexpr std::size_t kLength = 9001;  // two chunks of a block and a part of one
  for (const std::size_t offset : {0, 1})
    for (const float largest : {0.0F, 3.0F, 1e18F, Limits::max()}) {
      Held<float> row(*gpu_device, kLength, offset);
      std::vector<float> values(kLength, largest);
      for (std::size_t i = 0; i < kLength; i += 2) values[i] = -largest;
      row.set(values);
      const auto is_sound = [&](std::size_t length) {
        const FaultWord word(*gpu_device);
        const RangeCheckRequest requests[] = {{row.get(), 0, 0, word.word(), 1},
                                              {row.get(), length, largest, word.word(), 2}};
        gpu_device->execute(requests);
        gpu_device->finish();
        CHECK((word.tag() == 0 || word.tag() == 2));
        return word.tag() == 0;
      };
      CHECK(is_sound(kLength));
      for (const std::size_t at :
           {std::size_t{0}, std::size_t{3}, std::size_t{4095}, std::size_t{4096}, kLength - 1})
        for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                std::nextafter(largest, Limits::infinity()),
                                -std::nextafter(largest, Limits::infinity())}) {
          std::vector<float> wrong = values;
          wrong[at] = bad;
          row.set(wrong);
          CHECK_FALSE(is_sound(kLength));
          CHECK(is_sound(at));
        }
    }
  gpu_device->execute(std::span<const RangeCheckRequest>());
}

TEST_CASE(
    "GPU: the first row out of range keeps the fault word; within one call, any row out of range "
    "may have it") {
  GOSSAMER_GPU(gpu_device);
  std::vector<Held<float>> rows;
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<float> values(1000 + 500 * i, 1);
    if (i % 4 == 3) values[17 * i] = std::numeric_limits<float>::quiet_NaN();
    rows.emplace_back(*gpu_device, values);
  }
  const FaultWord word(*gpu_device);
  const auto check_range = [&](std::size_t first, std::size_t last) {
    std::vector<RangeCheckRequest> requests;
    for (std::size_t i = first; i < last; ++i)
      requests.push_back({rows[i].get(), 1000 + 500 * i, 1, word.word(), i + 1});
    gpu_device->execute(requests);
  };
  check_range(0, 3);
  gpu_device->finish();
  CHECK(word.tag() == 0);
  check_range(3, 20);
  check_range(20, 40);
  gpu_device->finish();
  CHECK(word.tag() % 4 == 0);
  CHECK(word.tag() > 0);
  CHECK(word.tag() <= 20);
}

TEST_CASE("GPUs: each GPU checks its own rows") {
  const auto device = gpus_or_skip(3);
  if (device == nullptr) return;
  for (int wrong = 0; wrong < 3; ++wrong) {
    const FaultWord word(*device);
    std::vector<Held<float>> rows;
    std::vector<RangeCheckRequest> requests;
    for (int gpu_index = 0; gpu_index < 3; ++gpu_index) {
      std::vector<float> values(5000, 1);
      if (gpu_index == wrong) values[4321] = 1.5F;
      rows.emplace_back(*device, values, 0, gpu_index);
      requests.push_back({rows.back().get(), values.size(), 1, word.word(),
                          static_cast<std::uint64_t>(gpu_index) + 1});
    }
    device->execute(requests);
    device->finish();
    CHECK(word.tag() == static_cast<std::uint64_t>(wrong) + 1);
  }
}
