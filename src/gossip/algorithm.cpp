#include "gossip/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/id_list.hpp"
#include "gossip/row_slice.hpp"

namespace gossamer::gossip {

Result<std::unique_ptr<Algorithm>> make_algorithm(const std::string& kind,
                                                  const ParameterValues& values) {
  std::string names;
  for (const AlgorithmKind& known : algorithms::catalog()) {
    if (known.name == kind) return known.make(values);
    names += (names.empty() ? "" : ", ") + known.name;
  }
  return invalid_error(
      fmt::format("algorithm.kind: unknown algorithm '{}'; there are: {}", kind, names));
}

std::uint64_t values_sent(const std::vector<ExchangeVolume>& volumes, int node) {
  std::uint64_t values = 0;
  for (const ExchangeVolume& volume : volumes) values += volume.of(node).sent;
  return values;
}

ExchangeVolume neighbour_volume(const topology::MixingMatrix& w, std::size_t length, int rows) {
  const std::size_t values = static_cast<std::size_t>(rows) * length;
  return {.message = length, .at_once = rows, .of = [&w, values](int i) {
            return NodeVolume{w.out_neighbours(i).size() * values,
                              w.in_neighbours(i).size() * values};
          }};
}

std::vector<ExchangeVolume> server_volumes(std::size_t d, int peers, std::size_t clients,
                                           int servers) {
  std::size_t longest = 0;
  for (int k = 0; k < servers; ++k) longest = std::max(longest, row_slice(d, k, servers).size());
  // Links go both ways at once: while servers still answer some, those answered first compute and
  // send again. What a round waits for is the answers to all, and then what the last of them sends.
  return {{.message = longest,
           .of =
               [=](int i) {
                 const std::uint64_t values =
                     i < peers ? d : clients * row_slice(d, i - peers, servers).size();
                 return NodeVolume{values, values};
               },
           .last = d}};
}

std::vector<ExchangeVolume> Algorithm::communication(const topology::MixingSchedule& schedule,
                                                     const topology::MixingMatrix& w,
                                                     std::size_t d) const {
  std::vector<ExchangeVolume> volumes;
  const std::vector<RowSpec> specs = rows(schedule);
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (!specs[k].mixed) continue;
    volumes.push_back(neighbour_volume(w, specs[k].length(d)));
    volumes.back().beside_training = mixes_beside_training(static_cast<int>(k));
  }
  return volumes;
}

task<void> Algorithm::drain(Node&) const { co_return; }

namespace {

void add_partners(int i, const topology::MixingSchedule& part, const std::vector<int>& ids,
                  std::set<int>& partners) {
  const auto id = [&ids](int j) { return ids[static_cast<std::size_t>(j)]; };
  if (part.period() == 0) partners.insert(ids.begin(), ids.end());
  for (int t = 0; t < part.period(); ++t) {
    const auto matrix = part.at(static_cast<Round>(t));
    for (const topology::Neighbour& neighbour : matrix->in_neighbours(i))
      partners.insert(id(neighbour.peer));
    for (const int j : matrix->out_neighbours(i)) partners.insert(id(j));
  }
}

}  // namespace

std::vector<int> mixing_partners(int i, const topology::MixingSchedule& schedule) {
  std::set<int> partners;
  if (schedule.participants().is_open()) {
    const std::vector<int> all = first_ids(schedule.peers());
    partners.insert(all.begin(), all.end());
  }
  const std::vector<const topology::MixingSchedule*> parts = schedule.parts();
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::vector<int>& ids = schedule.participants().changes()[k].peers;
    const auto found = std::ranges::lower_bound(ids, i);
    if (found == ids.end() || *found != i) continue;
    add_partners(static_cast<int>(found - ids.begin()), *parts[k], ids, partners);
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

}  // namespace gossamer::gossip
