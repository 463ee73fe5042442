// Mixing: the formula, and that bits depend on nothing but values and the order of the sources.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gpu/cpu/kernels.hpp"
#include "gpu/cpu_device.hpp"

using namespace gossamer;
using namespace gossamer::gpu;

namespace {

/// A ring of n random rows, `offset` floats off alignment, and its mix.
struct Ring {
  Ring(std::size_t n, std::size_t length, std::size_t offset = 0)
      : rows(n, length, offset), back(n, length, offset) {
    for (std::size_t p = 0; p < n; ++p) {
      RandomStream random(3, static_cast<std::uint32_t>(p), Purpose::test);
      for (float& value : rows.row(p)) value = static_cast<float>(random.next_normal());
    }
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t neighbour : {(p + n - 1) % n, (p + 1) % n})
        sources.push_back({rows.row(neighbour).data(), 0.3F});
  }

  MixRequest request(std::size_t p) {
    return {rows.row(p).data(), back.row(p).data(), std::span(sources).subspan(2 * p, 2),
            rows.length()};
  }
  std::vector<MixRequest> requests() {
    std::vector<MixRequest> all;
    for (std::size_t p = 0; p < rows.count(); ++p) all.push_back(request(p));
    return all;
  }
  std::vector<float> result() {
    std::vector<float> all;
    for (std::size_t p = 0; p < back.count(); ++p)
      all.insert(all.end(), back.row(p).begin(), back.row(p).end());
    return all;
  }

  Rows<float> rows, back;
  std::vector<MixSource> sources;
};

std::vector<float> mixed(std::size_t n, std::size_t length, std::size_t offset = 0,
                         int threads = 1) {
  Ring ring(n, length, offset);
  CpuDevice(threads).execute(ring.requests());
  return ring.result();
}

/// The formula, literally.
std::vector<float> by_hand(std::size_t n, std::size_t length) {
  Ring ring(n, length);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t i = 0; i < length; ++i) {
      const float x = ring.rows.row(p)[i];
      float sum = x;
      for (const MixSource& source : ring.request(p).sources) {
        const float difference = source.row[i] - x;
        const float term = source.weight * difference;
        sum = sum + term;
      }
      ring.back.row(p)[i] = sum;
    }
  return ring.result();
}

}  // namespace

TEST_CASE("mix is x + Σ w (x_j − x), bit by bit, at every length") {
  CpuDevice device(1);
  for (std::size_t length : {0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 129, 1000}) {
    CAPTURE(length);
    CHECK(mixed(3, length) == by_hand(3, length));
  }
  CHECK(mixed(16, 10007) == by_hand(16, 10007));
}

TEST_CASE("mix: one by one, any threads, misaligned rows: the same bits") {
  const auto expected = by_hand(16, 10007);
  for (std::size_t offset : {0, 1, 3})
    for (int threads : {1, 2, 4}) CHECK(mixed(16, 10007, offset, threads) == expected);
  Ring ring(16, 10007, 1);
  CpuDevice device(1);
  for (std::size_t p = 0; p < 16; ++p) {
    const MixRequest request = ring.request(p);
    device.execute(std::span(&request, 1));
  }
  CHECK(ring.result() == expected);
}

TEST_CASE("mix in odd pieces has the bits of the whole") {
  const auto expected = by_hand(4, 5003);
  Ring ring(4, 5003, 1);
  CpuDevice device(2);
  RandomStream random(1, kNoPeer, Purpose::test);
  for (std::size_t begin = 0; begin < 5003;) {
    const std::size_t length = std::min<std::size_t>(1 + random.below(700), 5003 - begin);
    std::vector<MixRequest> pieces;
    std::vector<std::vector<MixSource>> sources;
    for (std::size_t p = 0; p < 4; ++p) {
      const MixRequest whole = ring.request(p);
      sources.emplace_back(whole.sources.begin(), whole.sources.end());
      for (auto& source : sources.back()) source.row += begin;
      pieces.push_back({whole.x + begin, whole.out + begin, sources.back(), length});
    }
    device.execute(pieces);
    begin += length;
  }
  CHECK(ring.result() == expected);
}

TEST_CASE("mix of long rows, past every cache, with streaming stores") {
  const std::size_t length = 300'001;
  const auto expected = by_hand(8, length);
  for (std::size_t offset : {0, 1}) CHECK(mixed(8, length, offset, 2) == expected);
}

TEST_CASE("requests of different lengths and numbers of sources share a batch") {
  Rows<float> rows(4, 1000), out(4, 1000);
  for (std::size_t p = 0; p < 4; ++p)
    for (std::size_t i = 0; i < 1000; ++i) rows.row(p)[i] = static_cast<float>(p * 1000 + i);
  std::vector<MixSource> sources;
  for (std::size_t p = 0; p < 4; ++p) sources.push_back({rows.row(p).data(), 0.5F});
  std::vector<MixRequest> requests;
  for (std::size_t p = 0; p < 4; ++p)
    requests.push_back(
        {rows.row(p).data(), out.row(p).data(), std::span(sources).first(p), 250 * (p + 1)});
  CpuDevice device(3);
  device.execute(requests);
  CHECK(out.row(0)[249] == rows.row(0)[249]);
  CHECK(out.row(0)[250] == 0);  // past its length: untouched
  CHECK(out.row(1)[0] == 500);
  CHECK(out.row(2)[999] == 0);
  CHECK(out.row(3)[999] == 3999 - 1500 - 1000 - 500);
}

TEST_CASE("consensus is an exact fixed point of mix, whatever the weights") {
  const std::size_t length = 4099;
  Rows<float> rows(5, length), out(5, length);
  RandomStream random(9, kNoPeer, Purpose::test);
  for (std::size_t i = 0; i < length; ++i) {
    const float value = static_cast<float>(std::exp(20 * random.next_normal()));
    for (std::size_t p = 0; p < 5; ++p) rows.row(p)[i] = value;
  }
  std::vector<MixSource> sources;
  for (std::size_t p = 1; p < 5; ++p) sources.push_back({rows.row(p).data(), 1.0F / 7});
  const MixRequest request{rows.row(0).data(), out.row(0).data(), sources, length};
  CpuDevice(1).execute(std::span(&request, 1));
  CHECK(std::memcmp(out.row(0).data(), rows.row(0).data(), length * sizeof(float)) == 0);
}

TEST_CASE("without x itself, a mix leaves what it adds: exact opposites at two peers") {
  for (const std::size_t length : {5, 4099, 300'001}) {
    Rows<float> rows(2, length), out(2, length);
    RandomStream random(9, kNoPeer, Purpose::test);
    for (std::size_t p = 0; p < 2; ++p)
      for (float& value : rows.row(p)) value = 100 + static_cast<float>(random.next_normal());
    std::vector<MixSource> sources;
    for (std::size_t p = 0; p < 2; ++p) sources.push_back({rows.row(1 - p).data(), 1.0F / 7});
    std::vector<MixRequest> requests;
    for (std::size_t p = 0; p < 2; ++p)
      requests.push_back({.x = rows.row(p).data(),
                          .out = out.row(p).data(),
                          .sources = std::span(sources).subspan(p, 1),
                          .length = length,
                          .own = 0});
    CpuDevice(2).execute(requests);
    bool exact = true;
    for (std::size_t i = 0; i < length; ++i)
      exact = exact && out.row(0)[i] == 1.0F / 7 * (rows.row(1)[i] - rows.row(0)[i]) &&
              out.row(0)[i] == -out.row(1)[i];
    CHECK(exact);
  }
}

TEST_CASE("mix in double") {
  const std::vector<double> x{1, 2, 3}, y{2, 4, 8};
  std::vector<double> out(3);
  const BasicMixSource<double> source{y.data(), 0.25};
  const BasicMixRequest<double> request{x.data(), out.data(), std::span(&source, 1), 3};
  BasicCpuDevice<double>(1).execute(std::span(&request, 1));
  CHECK(out == std::vector<double>{1.25, 2.5, 4.25});
}
