#include "simulator/scenario/small_open.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/id_list.hpp"
#include "simulator/scenario/draws.hpp"

namespace gossamer::simulator {
namespace {

void draw_small_network(Scenario& s, Draws& draw) {
  s.open = true;
  s.peers = draw.whole(1, 4);
  s.placement = first_ids(s.peers);
  s.topology = draw.one_of<std::string>({"ring", "path", "star", "complete"});
  s.lazy = draw.chance(0.7);
  s.policy = draw.chance(0.8) ? "sync" : "stale";
  s.staleness = draw.whole(1, 2);
  s.algorithm = draw.one_of<std::string>({"dpsgd", "dpsgd", "consensus", "gradient_tracking"});
  s.rounds = draw.whole(60, 160);
  s.length = s.chunk_values = draw.whole(1, 5);
  s.steps = {.rate = 0.05, .step_ms = 5};
  s.network.latency_ms = draw.wide(0.5, 10);
  s.network.jitter_ms = draw.chance(0.3) ? draw.wide(0.1, 5) : 0;
  s.network.failure_timeout = draw.chance(0.5) ? 0.05 : 0.2;
  s.network.reconnect_delay = 0.02;
  s.checkpoint_every = 5;
}

/// The time in which peers arrive and leave, in seconds.
struct Period {
  double begin, span;
  double end() const { return begin + span; }
};

void add(Scenario& s, const Fault& fault) { s.faults.push_back(to_string(fault)); }

void draw_changes(Scenario& s, const std::vector<int>& first, const Period& period, Draws& draw) {
  const bool all_leave = draw.chance(0.25), at_once = draw.chance(0.5);
  const double leaves = draw.real(0, 0.5);
  for (const int i : s.placement) {
    double at = draw.real(period.begin, period.end());
    const bool arrives = !std::ranges::binary_search(first, i);
    if (arrives) add(s, {.kind = FaultKind::arrive, .at = at, .process = i});
    if (all_leave ? arrives && draw.chance(0.7) : !draw.chance(leaves)) continue;
    at = all_leave && at_once ? period.begin : draw.real(arrives ? at : period.begin, period.end());
    add(s, {.kind = FaultKind::leave, .at = at, .process = i});
    if (draw.chance(0.3))
      add(s, {.kind = FaultKind::arrive,
              .at = draw.real(at, period.end() + 2 * period.span),
              .process = i});
  }
}

/// All peers that took part at the start end together, when others may have joined or join.
void draw_end_of_first(Scenario& s, const std::vector<int>& first, const Period& period,
                       Draws& draw) {
  const double at = draw.real(period.begin, period.end() + 3 * period.span);
  for (const int i : s.placement)
    if (std::ranges::binary_search(first, i))
      add(s, {.kind = FaultKind::crash, .at = at, .process = i});
    else
      add(s,
          {.kind = FaultKind::arrive, .at = draw.real(period.begin, period.end()), .process = i});
}

void draw_faults(Scenario& s, const Period& period, Draws& draw) {
  int deaths = 0;
  for (int k = draw.whole(1, 3); k > 0; --k) {
    Fault fault{.kind = draw.one_of<FaultKind>({FaultKind::crash, FaultKind::pause,
                                                FaultKind::partition, FaultKind::partition,
                                                FaultKind::close, FaultKind::restart})};
    fault.process = draw.whole(0, s.peers - 1);
    fault.other = (fault.process + draw.whole(1, s.peers - 1)) % s.peers;
    fault.at = draw.real(std::max(0.0, period.begin - period.span), period.end() + period.span);
    fault.lasts = draw.wide(0.02, 0.4);
    if (fault.kind == FaultKind::partition) fault.process = draw.whole(0, s.peers - 2);
    if (fault.kind != FaultKind::crash || ++deaths < s.peers) add(s, fault);
  }
}

}  // namespace

Scenario draw_small_open(std::uint64_t seed) {
  RandomStream random(seed, kNoPeer, Purpose::scenario, 14);
  Draws draw(random);
  Scenario s;
  s.seed = seed;
  do draw_small_network(s, draw);
  while (!build_protocol(s).ok());
  std::vector<int> first;
  while (first.empty())
    for (const int i : s.placement)
      if (draw.chance(0.5)) first.push_back(i);
  s.participants = {ids_text(first)};
  const Period period{draw.real(0, 0.2), draw.real(0.02, 0.1)};
  const double kind = draw.real(0, 1);
  if (kind < 0.2) {
    draw_end_of_first(s, first, period, draw);
  } else {
    draw_changes(s, first, period, draw);
    if (kind < 0.6 && s.peers > 1) draw_faults(s, period, draw);
  }
  return s;
}

}  // namespace gossamer::simulator
