#include "simulator/scenario/generator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/id_list.hpp"
#include "base/philox.hpp"
#include "gossip/policy.hpp"
#include "simulator/scenario/draws.hpp"
#include "simulator/scenario/small_open.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::simulator {

Result<std::vector<FaultKind>> fault_families(const std::vector<std::string>& names,
                                              std::uint64_t seed) {
  std::vector<FaultKind> families;
  if (names == std::vector<std::string>{"none"}) return families;
  if (names == std::vector<std::string>{"open"})
    return std::vector<FaultKind>{FaultKind::arrive, FaultKind::leave};
  if (names == std::vector<std::string>{"swarm"}) {
    // A family that is left out cannot mask what the others cause (Groce et al. 2012, "Swarm
    // testing").
    RandomStream random(seed, kNoPeer, Purpose::scenario, 1);
    for (const FaultSpec& spec : fault_specs())
      if (!is_interrupt(spec.kind) && !is_of_open_run(spec.kind) && random.below(2) == 1)
        families.push_back(spec.kind);
    RandomStream interrupts(seed, kNoPeer, Purpose::scenario, 6);
    for (const FaultSpec& spec : fault_specs())
      if (is_interrupt(spec.kind) && interrupts.below(8) == 0) families.push_back(spec.kind);
    return families;
  }
  for (const std::string& name : names) {
    std::vector<std::string> known{"swarm", "none", "open"};
    for (const FaultSpec& spec : fault_specs()) {
      if (is_of_open_run(spec.kind)) continue;
      known.push_back(spec.name);
      if (spec.name == name) families.push_back(spec.kind);
    }
    if (families.empty() || spec_of(families.back()).name != name)
      return invalid_error(
          fmt::format("--faults: '{}' is no family, or cannot stand beside others; families: {}",
                      name, fmt::join(known, ", ")));
  }
  return families;
}

namespace {

/// About, without what bandwidth and waiting add.
double round_seconds(const Scenario& s) {
  return (s.steps.step_ms * s.steps.local_steps + s.network.latency_ms + s.network.jitter_ms) / 1e3;
}

const std::vector<std::string> kTopologies{
    "ring",        "path",        "star",     "complete",        "torus",
    "hypercube",   "exponential", "grid",     "random_matching", "one_peer_exponential",
    "binary_tree", "erdos_renyi", "dumbbell", "random_regular"};
const std::vector<std::string> kAlgorithms{"consensus", "dpsgd", "dpsgd",       "gradient_tracking",
                                           "d2",        "extra", "qg_momentum", "push_sum"};

void draw_network(Scenario& s, Draws& draw) {
  s.topology = draw.one_of(kTopologies);
  s.lazy = draw.chance(0.5);
  s.peers = draw.whole(4, 12);
  s.policy = draw.chance(0.4) ? "sync" : draw.one_of(policy_names());
  s.staleness = draw.whole(1, 6);
  s.algorithm = draw.one_of(kAlgorithms);
  s.steps.order = draw.chance(0.5) ? "atc" : "awc";
  s.codec = draw.chance(0.8) ? "none" : draw.one_of(codec_names());
  s.steps.local_steps = draw.whole(1, 3);
  s.steps.rate = draw.wide(0.03, 0.2);
  s.length = draw.whole(1, 24);
  s.chunk_values = draw.chance(0.3) ? s.length : draw.whole(1, s.length);
}

/// Some seeds run on a random sequence of graphs. These draws have a stream of their own, so that
/// all other scenarios stay what they were.
void draw_random_topology(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 9);
  Draws draw(random);
  if (!draw.chance(0.05)) return;
  Scenario own = s;
  own.topology = draw.one_of<std::string>({"equidyn", "epidemic", "matcha"});
  if (build_protocol(own).ok()) s = own;
}

/// In some seeds peers join and leave. These draws have a stream of their own, so that all other
/// scenarios stay what they were.
void draw_participants(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 10);
  Draws draw(random);
  if (!draw.chance(0.12)) return;
  Scenario own = s;
  const auto some_peers = [&] {
    std::vector<int> peers;
    const double share = draw.real(0.2, 1);
    for (int i = 0; i < s.peers; ++i)
      if (draw.chance(share)) peers.push_back(i);
    return peers;
  };
  int round = 0;
  for (int changes = draw.whole(1, 4); changes >= 0; --changes) {
    if (const std::vector<int> peers = some_peers(); !peers.empty())
      own.participants.push_back(round == 0 ? ids_text(peers)
                                            : fmt::format("{}: {}", round, ids_text(peers)));
    round += draw.whole(1, std::max(1, s.rounds / 4));
  }
  if (build_protocol(own).ok()) s = own;
}

/// In some seeds peers leave and are back one or two rounds later, so that the rows for their
/// second joining may arrive before the first. These draws have a stream of their own, so that all
/// other scenarios stay what they were.
void draw_absences(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 11);
  Draws draw(random);
  if (!draw.chance(0.04)) return;
  Scenario own = s;
  std::vector<int> stay;
  for (int i = 0; i < s.peers; ++i)
    if (draw.chance(0.5)) stay.push_back(i);
  if (stay.empty() || static_cast<int>(stay.size()) == s.peers) return;
  own.participants = {ids_text(first_ids(s.peers))};
  int round = draw.whole(1, std::max(1, s.rounds / 2));
  for (int changes = 2 * draw.whole(1, 3); changes > 0; --changes) {
    own.participants.push_back(
        fmt::format("{}: {}", round, ids_text(changes % 2 == 0 ? stay : first_ids(s.peers))));
    round += draw.whole(1, 2);
  }
  if (build_protocol(own).ok()) s = own;
}

/// Some seeds are open runs: processes start while the network runs, and peers leave. These draws
/// have a stream of their own, so that all other scenarios stay what they were.
void draw_open(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 12);
  Draws draw(random);
  if (!draw.chance(0.1)) return;
  Scenario own = s;
  own.open = true;
  std::vector<int> first{0};
  const double share = draw.real(0.2, 1);
  for (int i = 1; i < s.peers; ++i)
    if (draw.chance(share)) first.push_back(i);
  own.participants = {ids_text(first)};
  own.placement = first_ids(s.peers);
  RandomStream others(s.seed, kNoPeer, Purpose::scenario, 13);
  Draws back(others);
  own.faults.clear();
  const auto protocol = build_protocol(own);
  if (!protocol.ok()) return;
  const int notice = (s.peers - 1) * (protocol->longest_period() + s.staleness) + 1;
  if (notice > 120) return;
  own.rounds = std::max(s.rounds, draw.whole(3, 8) * notice);
  const double most = 0.6 * own.rounds * round_seconds(s);
  for (int i = 0; i < s.peers; ++i) {
    const bool arrives = !std::ranges::binary_search(first, i);
    const double at = draw.real(0, most);
    if (arrives)
      own.faults.push_back(to_string({.kind = FaultKind::arrive, .at = at, .process = i}));
    if (i == 0 || !draw.chance(0.25)) continue;
    const double leaves = draw.real(at, most);
    own.faults.push_back(to_string({.kind = FaultKind::leave, .at = leaves, .process = i}));
    if (back.chance(0.3))
      own.faults.push_back(to_string({.kind = FaultKind::arrive,
                                      .at = back.real(leaves, own.rounds * round_seconds(s)),
                                      .process = i}));
  }
  s = own;
}

/// Some seeds run an asynchronous algorithm. These draws have a stream of their own, so that all
/// other scenarios stay what they were.
void draw_asynchronous(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 5);
  Draws draw(random);
  if (!draw.chance(0.2)) return;
  Scenario own = s;
  own.codec = "none";
  own.algorithm = draw.one_of<std::string>({"async_push_sum", "async_push_sum", "ad_psgd"});
  own.policy = own.algorithm == "ad_psgd"
                   ? "sync"
                   : draw.one_of<std::string>({"async", "async", "stale", "sync"});
  const auto protocol = build_protocol(own);
  if (!protocol.ok()) return;
  // In a part of a directed graph that is not strongly connected, a peer that keeps in step gives
  // weight away round by round, and its steps γ/w grow.
  if (!topology::is_undirected(*protocol->schedule)) own.policy = "async";
  s = own;
}

void draw_placement(Scenario& s, Draws& draw) {
  const bool shared = draw.chance(0.4);  // some processes host several peers
  const int most = shared ? draw.whole(2, s.peers) : s.peers;
  std::vector<int> numbers(static_cast<std::size_t>(most), -1);
  int next = 0;
  for (int i = 0; i < s.peers; ++i) {
    int& number = numbers[static_cast<std::size_t>(shared ? draw.whole(0, most - 1) : i)];
    if (number < 0) number = next++;
    s.placement.push_back(number);
  }
}

Fault draw_fault(FaultKind kind, double horizon, const Scenario& s, Draws& draw) {
  Fault fault{.kind = kind};
  const FaultSpec& spec = spec_of(kind);
  fault.process = draw.whole(0, s.processes() - 1);
  if (spec.other) fault.other = (fault.process + draw.whole(1, s.processes() - 1)) % s.processes();
  if (spec.at) fault.at = draw.real(0, horizon);
  // Mostly shorter than the failure timeout, and at times longer.
  if (spec.lasts) fault.lasts = draw.wide(0.02, 3 * s.network.failure_timeout);
  if (kind == FaultKind::slow) fault.amount = draw.wide(1.5, 10);
  if (kind == FaultKind::delay) fault.amount = draw.wide(0.001, 0.5);
  if (kind == FaultKind::slow_reader) fault.amount = draw.wide(200, 20000);
  if (kind == FaultKind::clock) fault.amount = draw.wide(0.005, 20);
  if (kind == FaultKind::failed_write || kind == FaultKind::torn_write ||
      kind == FaultKind::killed_write)
    fault.amount = draw.whole(0, 60);  // about as many calls as two checkpoints take
  if (kind == FaultKind::clog) fault.amount = draw.wide(0.05, 2) * s.network.failure_timeout;
  if (kind == FaultKind::partition || kind == FaultKind::one_way_partition)
    fault.process = draw.whole(0, s.processes() - 2);
  return fault;
}

/// One fault of each family of interrupts. These draws have a stream of their own, so that all
/// other scenarios stay what they were.
void draw_interrupts(const std::vector<FaultKind>& families, double horizon, Scenario& s) {
  if (!build_protocol(s).value().algorithm->requirements().tolerates_peer_loss) return;
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 7);
  Draws draw(random);
  for (const FaultKind kind : families) {
    if (s.open && kind == FaultKind::interrupt_all) continue;
    Fault fault = draw_fault(kind, horizon, s, draw);
    if (kind == FaultKind::interrupt_all) fault.process = 0;
    s.faults.push_back(to_string(fault));
  }
}

/// In some seeds two parts of the network are apart for long, and one of them has slow processes:
/// it is far behind when they meet. These draws have a stream of their own, so that all other
/// scenarios stay what they were.
void draw_parts(Scenario& s) {
  RandomStream random(s.seed, kNoPeer, Purpose::scenario, 8);
  Draws draw(random);
  const auto protocol = build_protocol(s).value();
  const int period = protocol.schedule->period();
  // Over so many rounds, push-sum on what is left of a directed graph may exceed any number.
  if (!draw.chance(0.15) || (s.policy != "sync" && s.policy != "stale") || s.processes() < 3 ||
      !protocol.algorithm->requirements().tolerates_peer_loss || s.algorithm == "ad_psgd" ||
      s.rounds > 150 || period == 0 || !topology::is_undirected(*protocol.schedule))
    return;
  const double each = round_seconds(s);
  s.network.failure_timeout = std::min(s.network.failure_timeout, 8 * each);
  Fault apart{.kind = FaultKind::partition, .at = draw.real(0, 20 * each)};
  apart.process = draw.whole(0, s.processes() - 2);
  apart.lasts = draw.real(100, 400) * each;
  s.rounds += draw.whole(200, 600);
  s.faults.push_back(to_string(apart));
  // The part up to this process, or the part beyond it.
  const bool beyond = draw.chance(0.5);
  for (int process = 0; process < s.processes(); ++process) {
    if ((process > apart.process) != beyond || draw.chance(0.3)) continue;
    Fault slow{.kind = FaultKind::slow, .process = process, .amount = draw.wide(2, 10)};
    s.faults.push_back(to_string(slow));
  }
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed, const std::vector<FaultKind>& all_families) {
  if (std::ranges::find(all_families, FaultKind::arrive) != all_families.end())
    return draw_small_open(seed);
  std::vector<FaultKind> families, interrupts;
  for (const FaultKind kind : all_families)
    (is_interrupt(kind) ? interrupts : families).push_back(kind);
  RandomStream random(seed, kNoPeer, Purpose::scenario);
  Draws draw(random);
  Scenario s;
  s.seed = seed;
  do draw_network(s, draw);
  while (!build_protocol(s).ok());
  draw_random_topology(s);
  draw_asynchronous(s);
  draw_placement(s, draw);
  s.rounds = draw.whole(30, 150);
  s.network.window = draw.whole(1, 4);
  s.network.buffer_chunks = draw.whole(1, 6);
  s.steps.step_ms = draw.wide(1, 20);
  s.steps.step_spread = draw.chance(0.5) ? draw.real(0, 0.5) : 0;
  s.network.latency_ms = draw.wide(0.1, 40);
  s.network.jitter_ms = draw.chance(0.5) ? draw.wide(0.01, 20) : 0;
  s.network.bandwidth_mbit_s = draw.chance(0.5) ? draw.wide(0.1, 20) : 0;
  if (!families.empty()) {
    s.network.loss = draw.chance(0.3) ? draw.real(0, 0.3) : 0;
    s.network.duplication = draw.chance(0.3) ? draw.real(0, 0.5) : 0;
  }
  // Some tens of rounds each, so that no run is over before its links are lost, or before they are
  // restored.
  const double each_round = round_seconds(s);
  s.network.failure_timeout = std::clamp(draw.wide(4, 60) * each_round, 0.05, 2.0);
  s.network.reconnect_delay = std::clamp(draw.wide(0.5, 30) * each_round, 0.005, 1.0);
  s.checkpoint_every = draw.whole(3, 20);
  draw_participants(s);
  draw_absences(s);
  draw_open(s);
  const int first_rounds = s.rounds;
  // An exact algorithm reaches its optimum only after a number of rounds that depends on its step
  // size.
  const bool exact =
      s.algorithm == "gradient_tracking" || s.algorithm == "d2" || s.algorithm == "extra";
  if (exact && s.policy == "sync") s.rounds += static_cast<int>(std::min(300.0, 20 / s.steps.rate));
  const double horizon = std::max(0.01, 0.5 * first_rounds * each_round);
  int deaths = 0;
  const bool faulty = !families.empty() && s.processes() > 1;
  for (int k = faulty ? draw.whole(1, 6) : 0; k > 0; --k) {
    const Fault fault = draw_fault(draw.one_of(families), horizon, s, draw);
    const bool death = fault.kind == FaultKind::crash || fault.kind == FaultKind::vanish;
    if (death && ++deaths >= s.processes()) continue;  // one process at least survives
    s.faults.push_back(to_string(fault));
  }
  if (faulty) draw_parts(s);
  draw_interrupts(interrupts, horizon, s);
  return s;
}

}  // namespace gossamer::simulator
