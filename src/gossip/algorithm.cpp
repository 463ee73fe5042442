#include "gossip/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "gossip/node.hpp"
#include "gossip/parts.hpp"

namespace gossamer::gossip {

Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& kind, const ParameterValues& values) {
  std::string names;
  for (const AlgorithmKind& known : algorithms::catalog()) {
    if (known.name == kind) return known.make(values);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return Error{ErrorKind::invalid, fmt::format("algorithm.kind: unknown algorithm '{}'; there are: {}", kind, names)};
}

topology::ValuesSent Algorithm::values_sent(const topology::MixingSchedule& schedule, std::size_t d) const {
  std::uint64_t values = 0;
  for (const RowSpec& row : rows(schedule)) values += row.mixed ? d + row.extra : 0;
  return [values](const topology::MixingMatrix& w, int i) { return values * w.heard_by(i).size(); };
}

ExchangeLoad neighbours_load(const topology::MixingMatrix& w, std::size_t length) {
  ExchangeLoad load{.message = length};
  for (int i = 0; i < w.peers(); ++i) {
    load.sent = std::max<std::uint64_t>(load.sent, w.heard_by(i).size() * length);
    load.received = std::max<std::uint64_t>(load.received, w.hears(i).size() * length);
  }
  return load;
}

std::vector<ExchangeLoad> server_loads(std::size_t d, std::size_t clients, int servers) {
  std::size_t part = 0;
  for (int k = 0; k < servers; ++k) part = std::max(part, part_of(d, k, servers).size());
  // Links go both ways at once: while servers still answer some, those answered first compute and send again. What a round
  // waits for is the answers to all, and then what the last of them sends.
  const std::uint64_t all = clients * part;
  return {{.sent = all, .received = all, .message = part}, {.sent = d, .received = d, .message = part}};
}

std::optional<std::vector<ExchangeLoad>> Algorithm::loads(const topology::MixingSchedule& schedule,
                                                          const topology::MixingMatrix& w, std::size_t d) const {
  std::vector<ExchangeLoad> loads;
  const std::vector<RowSpec> specs = rows(schedule);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!specs[k].mixed) continue;
    loads.push_back(neighbours_load(w, d + specs[k].extra));
    loads.back().beside_training = mixes_beside_training(static_cast<int>(k));
  }
  return loads;
}

std::vector<int> mixing_partners(int i, const topology::MixingSchedule& schedule) {
  std::set<int> partners;
  if (schedule.period() == 0)
    for (int j = 0; j < schedule.peers(); ++j) partners.insert(j);
  for (int t = 0; t < schedule.period(); ++t) {
    const auto matrix = schedule.at(static_cast<Round>(t));
    for (const topology::Neighbour& neighbour : matrix->hears(i)) partners.insert(neighbour.peer);
    for (int j : matrix->heard_by(i)) partners.insert(j);
  }
  partners.erase(i);
  return {partners.begin(), partners.end()};
}

std::vector<int> server_partners(int i, int peers, int servers) {
  const bool is_server = i >= peers;
  std::vector<int> partners(static_cast<std::size_t>(is_server ? peers : servers));
  std::iota(partners.begin(), partners.end(), is_server ? 0 : peers);
  return partners;
}

task<void> push_and_pull(Node& node, Round t, int servers) {
  constexpr int kX = 0;
  const std::span<float> x = node.x(), g = node.row(kGradientRow);
  const int n = node.peers();
  co_await node.gradient(x, g);
  node.skip_update();
  for (int k = 0; k < servers; ++k) node.send(n + k, t, kGradientRow, part_of(g, k, servers));
  for (int k = 0; k < servers; ++k) co_await node.receive(n + k, t, kX, part_of(x, k, servers), Combine::replace);
  co_await node.sent(kGradientRow);
}

topology::ValuesSent server_values_sent(std::size_t d, int servers) {
  return [d, servers](const topology::MixingMatrix& w, int i) -> std::uint64_t {
    return i < w.peers() ? d : part_of(d, i - w.peers(), servers).size() * static_cast<std::size_t>(w.peers());
  };
}

}  // namespace gossamer::gossip
