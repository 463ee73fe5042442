// Requests in as many launches as their blocks need.
#include "gpu/cuda/kernels/launches.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "gpu/cuda/runtime.hpp"

using namespace gossamer;

TEST_CASE("requests are cut where their blocks would not fit a grid") {
  struct Request {
    std::size_t length;
    int number;
  };
  constexpr std::size_t kChunk = 4096;
  std::vector<Request> requests;
  for (int k = 0; k < 200'000; ++k) requests.push_back({k % 3 == 0 ? std::size_t{0} : 1, k});
  const auto launches = [&] {
    std::vector<std::size_t> sizes;
    int next = 0;
    gpu::cuda::in_launches<Request>(
        requests, kChunk, [&](std::span<const Request> some, std::size_t given) {
          std::size_t longest = 0;
          for (const Request& request : some) {
            CHECK(request.number == next++);
            longest = std::max(longest, request.length);
          }
          CHECK(given == longest);
          CHECK(some.size() * gpu::cuda::pieces_of(longest, kChunk) <= gpu::cuda::kMostBlocks);
          sizes.push_back(some.size());
        });
    return sizes;
  };
  CHECK(launches() == std::vector<std::size_t>{200'000});
  requests[150'000].length = 87'961'600;  // 2³² blocks and some
  const auto sizes = launches();
  CHECK(sizes.size() == 3);
  CHECK(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == 200'000);
  requests.assign(3, {std::size_t{1} << 43, 0});  // one fills more than a grid
  for (int k = 0; k < 3; ++k) requests[static_cast<std::size_t>(k)].number = k;
  int alone = 0;
  gpu::cuda::in_launches<Request>(
      requests, kChunk,
      [&](std::span<const Request> some, std::size_t) { alone += some.size() == 1; });
  CHECK(alone == 3);
  requests.assign(5, {0, 0});
  gpu::cuda::in_launches<Request>(requests, kChunk,
                                  [](std::span<const Request>, std::size_t) { FAIL("no value"); });
}
