// The metrics of a network: known values, and the estimated consensus distance against the exact
// one.
#include <cmath>
#include <numbers>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "gpu/cpu_device.hpp"
#include "peer/log/metrics.hpp"
#include "tests/peer/test_util.hpp"

using namespace gossamer;
using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

using RowSet = std::vector<std::vector<float>>;

RowViews views_of(const RowSet& rows) { return {rows.begin(), rows.end()}; }

ConsensusDistance distance(const RowSet& rows) {
  std::vector<float> average(rows.front().size());
  return consensus_distance(views_of(rows), average);
}
double exact(const RowSet& rows) { return distance(rows).all; }

std::vector<double> sketch(const std::vector<float>& row, std::uint64_t seed) {
  std::vector<double> values(gpu::sketch_length(row.size()));
  const gpu::SketchRequest<float> request{row.data(), row.size(), seed, values.data()};
  gpu::CpuDevice(1).execute(std::span(&request, 1));
  return values;
}

double estimated(const RowSet& rows, std::uint64_t seed) {
  std::vector<std::vector<double>> sketches;
  for (const auto& row : rows) sketches.push_back(sketch(row, seed));
  return estimated_consensus_distance(sketches).all;
}

/// x_i = c + amplitude · a_i u: all peers differ along one direction u, as if only one slow mode
/// remained.
RowSet along(const std::vector<double>& amplitudes, const std::vector<double>& direction,
             double centre, double amplitude) {
  RowSet rows;
  for (double a : amplitudes) {
    std::vector<float> row;
    for (double u : direction) row.push_back(static_cast<float>(centre + amplitude * a * u));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The slowest mode of a ring: cos 2πi/n.
std::vector<double> ring_mode(int n) {
  std::vector<double> mode;
  for (int i = 0; i < n; ++i) mode.push_back(std::cos(2 * std::numbers::pi * i / n));
  return mode;
}

double worst_over_seeds(const std::function<RowSet(std::uint64_t seed)>& rows_of) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RowSet rows = rows_of(seed);
    worst = std::max(worst, std::abs(estimated(rows, seed) / exact(rows) - 1));
  }
  return worst;
}

std::vector<double> normal(std::size_t d, std::uint64_t seed) {
  RandomStream random(seed, kNoPeer, Purpose::test);
  std::vector<double> values(d);
  for (double& value : values) value = random.next_normal();
  return values;
}

}  // namespace

TEST_CASE("the mean, the consensus distance and the distance to the optimum of known rows") {
  const RowSet rows{{1, 2}, {3, 2}, {5, 8}};
  std::vector<float> average(2);
  consensus_distance(views_of(rows), average);
  CHECK(average == std::vector<float>{3, 4});
  CHECK(exact(rows) == doctest::Approx(std::sqrt((4 + 4 + 0 + 4 + 4 + 16) / 3.0)));
  CHECK(distance_to_optimum(views_of(rows), std::vector<double>{3, 4}) ==
        doctest::Approx(std::sqrt(32 / 3.0) / 5));
  CHECK(distance(rows).by_peer == std::vector<double>{std::sqrt(8.0), 2, std::sqrt(20.0)});
  CHECK(estimated_consensus_distance({{4, 0}, {0, 0}, {2, 3}}).by_peer ==
        std::vector<double>{std::sqrt(5.0), std::sqrt(5.0), 2});
  CHECK(exact({{0.1F, 0.2F}, {0.1F, 0.2F}}) == 0);
  CHECK(std::isinf(distance_to_optimum(views_of(rows), std::vector<double>{0, 0})));
  CHECK(distance_to_optimum(views_of({{0, 0}}), std::vector<double>{0, 0}) == 0);
}

TEST_CASE("distances of long rows are those of all values, and the average of one row is the row") {
  for (const std::size_t d : {1023, 1024, 1025, 5000}) {
    RowSet rows(3, std::vector<float>(d));
    RandomStream random(5, kNoPeer, Purpose::test, d);
    for (auto& row : rows)
      for (float& value : row) value = static_cast<float>(random.next_normal());
    std::vector<double> expected(3, 0);
    std::vector<float> average(d), rounded(d);
    for (std::size_t k = 0; k < d; ++k) {
      const double mean = (static_cast<double>(rows[0][k]) + rows[1][k] + rows[2][k]) / 3;
      rounded[k] = static_cast<float>(mean);
      for (std::size_t i = 0; i < 3; ++i) expected[i] += (rows[i][k] - mean) * (rows[i][k] - mean);
    }
    const ConsensusDistance found = consensus_distance(views_of(rows), average);
    CHECK(average == rounded);
    for (std::size_t i = 0; i < 3; ++i) CHECK(found.by_peer[i] == std::sqrt(expected[i]));
    CHECK(found.all ==
          doctest::Approx(std::sqrt((expected[0] + expected[1] + expected[2]) / 3)).epsilon(1e-14));
    CHECK(consensus_distance(views_of({rows[1]}), average).all == 0);
    CHECK(average == rows[1]);
  }
}

TEST_CASE("the final hash depends on every peer's parameters and on their order") {
  CHECK(final_hash({"a", "b"}) == hash_hex(std::string_view("a\nb\n")));
  CHECK(final_hash({"a", "b"}) != final_hash({"b", "a"}));
  CHECK(final_hash({"ab"}) != final_hash({"a", "b"}));
}

TEST_CASE("a sketch is linear, and equal only for equal seeds") {
  const RowSet rows{{1, -2, 3}, {4, 0.5F, -1}, {5, -1.5F, 2}};
  const auto a = sketch(rows[0], 3), b = sketch(rows[1], 3), sum = sketch(rows[2], 3);
  REQUIRE(a.size() == 4);  // no longer than the row needs
  for (std::size_t k = 0; k < a.size(); ++k) CHECK(a[k] + b[k] == doctest::Approx(sum[k]));
  CHECK(sketch(rows[0], 3) == a);
  CHECK(sketch(rows[0], 4) != a);
  CHECK(sketch(std::vector<float>(100000), 1) == std::vector<double>(gpu::kSketchLength));
}

TEST_CASE("the estimated consensus distance is within 10 % of the exact one, over 100 seeds") {
  for (const std::size_t d : {std::size_t{1}, std::size_t{7}, std::size_t{650}, std::size_t{1024},
                              std::size_t{1025}, std::size_t{5000}}) {
    CAPTURE(d);
    const double most = d <= gpu::kSketchLength ? 1e-9 : 0.1;
    // The peers differ in every direction.
    CHECK(worst_over_seeds([&](std::uint64_t seed) {
            RowSet rows;
            for (std::uint64_t i = 0; i < 8; ++i)
              rows.push_back(along({1}, normal(d, seed * 100 + i), 0, 1).front());
            return rows;
          }) < most);
    // One slow mode on a ring of 16: a single direction, so the error is that of one random draw.
    CHECK(worst_over_seeds([&](std::uint64_t seed) {
            return along(ring_mode(16), normal(d, seed), 3, 1);
          }) < most);
    // The direction has a few large entries, or equal ones.
    for (const std::size_t entries : {std::size_t{1}, std::size_t{2}, std::size_t{10}, d})
      CHECK(worst_over_seeds([&](std::uint64_t seed) {
              std::vector<double> direction(d);
              RandomStream random(seed, kNoPeer, Purpose::test);
              for (std::size_t k = 0; k < entries; ++k)
                direction[entries == d ? k : random.below(static_cast<std::uint32_t>(d))] = 1;
              return along(ring_mode(16), direction, 0, 1);
            }) < most);
  }
}

TEST_CASE("an encoded sketch has the values, rounded to float32, or is none") {
  const std::vector<double> numbers = normal(1024, 5);
  std::vector<double> values = sketch({numbers.begin(), numbers.end()}, 3);
  for (double& value : values) value = static_cast<float>(value);
  CHECK(decode_sketch(encode_sketch(values)) == values);
  for (std::size_t length = 1; length < 8; ++length) {
    const std::vector<double> part(values.begin(), values.begin() + static_cast<long>(length));
    CHECK(decode_sketch(encode_sketch(part)) == part);
  }
  CHECK(encode_sketch(std::vector{1.0}) == "AACAPw==");
  CHECK(decode_sketch(encode_sketch(std::vector{1.0 + 1e-9})) == std::vector{1.0});
  CHECK(encode_sketch(std::vector{1.0, std::nan("")}).empty());
  CHECK(encode_sketch(std::vector{1e39}).empty());
  for (const char* text : {"", "AAC", "AA*APw==", "\xff\xff\xff\xff"})
    CHECK(decode_sketch(text).empty());
}

TEST_CASE("a consensus distance of 1e-6 of the mean can be estimated") {
  CHECK(worst_over_seeds([](std::uint64_t seed) {
          return along(ring_mode(16), normal(5000, seed), 1, 1.5e-6);
        }) < 0.1);
}

TEST_CASE("a whole run: estimates from the sketches in its log against its exact metrics") {
  const Folder folder;
  const Left left =
      run_in(folder.path / "run", {"run.peers=16", "run.rounds=30", "algorithm.kind=consensus",
                                   "algorithm.length=3000", "log.every=1", "log.sketch=on"});
  const auto networks = left.records("network");
  REQUIRE(networks.size() == 31);
  for (std::size_t t = 0; t < networks.size(); ++t) {
    std::vector<std::vector<double>> sketches;
    for (const Json& record : left.records("round"))
      if (record["round"] == t) sketches.push_back(decode_sketch(record["sketch"]));
    REQUIRE(sketches.size() == 16);
    CHECK(estimated_consensus_distance(sketches).all ==
          doctest::Approx(networks[t]["consensus_distance"].get<double>()).epsilon(0.1));
  }
}
