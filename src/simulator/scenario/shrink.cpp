#include "simulator/scenario/shrink.hpp"

#include <algorithm>
#include <vector>

namespace gossamer::simulator {
namespace {

/// Scenarios that are a little smaller: without some faults, with fewer peers, …; the largest
/// reductions first.
std::vector<Scenario> smaller(const Scenario& s) {
  std::vector<Scenario> tries;
  const auto change = [&](auto edit) {
    Scenario changed = s;
    edit(changed);
    tries.push_back(std::move(changed));
  };
  const std::size_t count = s.faults.size();
  for (std::size_t size = count; size > 0; size /= 2)
    for (std::size_t first = 0; first < count; first += size)
      change([&](Scenario& c) {
        const auto begin = c.faults.begin() + static_cast<std::ptrdiff_t>(first);
        c.faults.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, count - first)));
      });
  for (int peers = 2; peers < s.peers; ++peers)
    change([&](Scenario& c) {
      c.peers = peers;
      c.placement.resize(static_cast<std::size_t>(peers));
    });
  if (!s.participants.empty()) change([](Scenario& c) { c.participants.clear(); });
  for (std::size_t k = 1; k < s.participants.size(); ++k)
    change([k](Scenario& c) {
      c.participants.erase(c.participants.begin() + static_cast<std::ptrdiff_t>(k));
    });
  if (s.length > 1) change([](Scenario& c) { c.length = 1, c.chunk_values = 1; });
  if (s.length > 2) change([](Scenario& c) { c.length = 2, c.chunk_values = 1; });
  if (s.chunk_values < s.length) change([](Scenario& c) { c.chunk_values = c.length; });
  if (s.steps.local_steps > 1) change([](Scenario& c) { c.steps.local_steps = 1; });
  if (s.network.jitter_ms > 0) change([](Scenario& c) { c.network.jitter_ms = 0; });
  if (s.network.loss > 0) change([](Scenario& c) { c.network.loss = 0; });
  if (s.network.duplication > 0) change([](Scenario& c) { c.network.duplication = 0; });
  if (s.steps.step_spread > 0) change([](Scenario& c) { c.steps.step_spread = 0; });
  if (s.network.bandwidth_mbit_s > 0) change([](Scenario& c) { c.network.bandwidth_mbit_s = 0; });
  if (s.codec != "none") change([](Scenario& c) { c.codec = "none"; });
  if (s.algorithm != "consensus") change([](Scenario& c) { c.algorithm = "consensus"; });
  if (s.algorithm != "consensus" && s.algorithm != "dpsgd")
    change([](Scenario& c) { c.algorithm = "dpsgd"; });
  for (const char* kind : {"path", "ring"})
    if (s.topology != kind) change([&](Scenario& c) { c.topology = kind; });
  // Last, because a run that ends just after its fault can hardly be simplified otherwise.
  for (const int rounds : {s.rounds / 4, s.rounds / 2, s.rounds * 3 / 4, s.rounds - 1})
    if (rounds >= 1 && rounds < s.rounds) change([&](Scenario& c) { c.rounds = rounds; });
  return tries;
}

}  // namespace

Scenario shrink(Scenario scenario, const std::function<bool(const Scenario&)>& fails, int runs) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (const Scenario& candidate : smaller(scenario)) {
      if (!scenario_of(scenario_parameters().values(candidate)).ok()) continue;
      if (runs-- == 0) return scenario;
      if (!fails(candidate)) continue;
      scenario = candidate;
      shrunk = true;
      break;
    }
  }
  return scenario;
}

}  // namespace gossamer::simulator
