// PowerGossip: its messages, and that the mean stays and the models meet.
#include <cmath>

#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

constexpr std::size_t kValuesOfRow = 37;  // a matrix [6, 4] and 13 values: testing::tensors_of

double mean_value(const std::vector<std::vector<float>>& rows, std::size_t k) {
  double sum = 0;
  for (const auto& row : rows) sum += static_cast<double>(row[k]);
  return sum / static_cast<double>(rows.size());
}

double disagreement(const std::vector<std::vector<float>>& rows) {
  double sum = 0;
  for (std::size_t k = 0; k < kValuesOfRow; ++k)
    for (const auto& row : rows)
      sum += std::pow(static_cast<double>(row[k]) - mean_value(rows, k), 2);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE(
    "PowerGossip: peers that take no steps meet at the mean, by a row or a column at a time") {
  PullTrainer still(6, kValuesOfRow, 0);
  for (const char* graph : {"ring", "star", "complete"}) {
    CAPTURE(graph);
    Network network(graph, 6, kValuesOfRow);
    const auto start = network.start;
    network.run("power_gossip", {{"products", std::int64_t{2}}}, 400, &still);
    CHECK(network.fault == "");
    for (std::size_t k = 0; k < kValuesOfRow; ++k)
      CHECK(std::abs(mean_value(network.rows, k) - mean_value(start, k)) < 1e-5);
    CHECK(disagreement(network.rows) < 1e-4 * disagreement(start));
  }
}

TEST_CASE("PowerGossip sends a column and then a row of each matrix, and vectors whole") {
  PullTrainer trainer(6, kValuesOfRow, 0.1F);
  for (const auto& [rounds, values] :
       {std::pair<Round, std::uint64_t>(1, 6 + 13), {2, 6 + 4 + 26}}) {
    Network network("ring", 6, kValuesOfRow);
    network.run("power_gossip", {}, rounds, &trainer);
    CHECK(network.values_sent == 6 * 2 * values);
  }
}

TEST_CASE("PowerGossip: models that are one go on as one") {
  PullTrainer trainer(6, kValuesOfRow, 0);
  Network network("ring", 6, kValuesOfRow);
  std::fill(network.start.begin(), network.start.end(), network.start.front());
  const auto start = network.start;
  CHECK(network.run("power_gossip", {}, 5, &trainer).rows == start);
}
