#include "gossip/algorithm.hpp"

#include <fmt/format.h>

#include <set>

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

}  // namespace gossamer::gossip
