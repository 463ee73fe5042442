#include "peer/attack/attack_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gossamer::peer {
namespace {

constexpr const char* kHonest = "none";

/// A run without hostile peers has no settings for them.
Status check_unused(const AttackOptions& options) {
  const char* unused = !options.peers.empty()  ? "peers"
                       : options.fraction != 0 ? "fraction"
                       : options.from != 0     ? "from"
                       : options.strength != 0 ? "strength"
                       : options.line_search   ? "line_search"
                                               : nullptr;
  if (unused == nullptr) return {};
  return invalid_error(
      fmt::format("attack.{}: has no effect with attack.kind = none; set attack.kind, which "
                  "`gossamer list` explains, or remove the key",
                  unused));
}

/// The hostile peers, ascending.
Result<std::vector<int>> hostile_peers(const Config& config) {
  const int n = config.run.peers;
  std::vector<int> peers = config.attack.options.peers;
  std::ranges::sort(peers);
  if (peers.empty())
    return invalid_error(fmt::format(
        "attack.peers: name the hostile peers of '{}', as attack.peers = [0, 1], or set "
        "attack.fraction",
        config.attack.kind));
  if (const auto twice = std::ranges::adjacent_find(peers); twice != peers.end())
    return invalid_error(fmt::format("attack.peers: peer {} is named twice; remove one", *twice));
  for (const int peer : peers)
    if (peer < 0 || peer >= n)
      return invalid_error(
          fmt::format("attack.peers: there is no peer {}; the peers are 0 to {}", peer, n - 1));
  if (static_cast<int>(peers.size()) == n)
    return invalid_error(fmt::format(
        "attack.peers: all {} peers are hostile; name fewer, or set run.peers to more", n));
  return peers;
}

/// Whether an attack on data fits the source of the data.
Status check_poisoning(const Config& config) {
  const std::string& name = config.attack.kind;
  if (config.model.kind == kExternalModel)
    return invalid_error(
        fmt::format("attack.kind: '{}' changes samples of [data], and the program of model.kind = "
                    "external brings its own; change them there, or choose another attack",
                    name));
  if (config.attack.kind == "backdoor" && config.shards.augments())
    return invalid_error(
        "data.crop and data.flip would cut off the trigger of attack.kind = backdoor, or move it; "
        "set data.crop = 0 and data.flip = false");
  if (config.attack.options.from != 0)
    return invalid_error(fmt::format(
        "attack.from: '{}' changes the data before the first round; remove the key", name));
  return {};
}

/// An attack that changes messages, against what sends them.
Status check_messages(const AttackedRun& run, const gossip::AttackKind& kind) {
  const Config& config = run.config;
  const gossip::AlgorithmRequirements needs = run.algorithm.requirements();
  const auto rows = run.algorithm.rows(run.schedule);
  const auto mixed = std::ranges::count_if(rows, &gossip::RowSpec::mixed);
  const auto plain = std::ranges::count_if(rows, [](const gossip::RowSpec& row) {
    return row.mixed && row.extra == 0 && row.parts == 1;
  });
  if (!needs.mixing_matrix || !needs.tolerates_peer_loss || mixed != 1 || plain != 1)
    return invalid_error(fmt::format(
        "attack.kind: '{}' changes the row that a mix sends, and '{}' does not only mix "
        "one row; choose an algorithm that does (dpsgd, qg_momentum, d2, extra, consensus), or "
        "attack.kind = label_flip or backdoor",
        kind.name, config.algorithm.kind));
  if (!gossip::is_lockstep(config.exchange.kind()))
    return invalid_error(
        fmt::format("attack.kind: '{}' attacks the rounds of all peers together; set "
                    "algorithm.policy = sync in place of {}",
                    kind.name, config.exchange.policy));
  if (run.codec.fidelity() != gossip::Fidelity::exact)
    return invalid_error(
        fmt::format("codec.kind: the messages of the attack '{}' are not encoded; set codec.kind = "
                    "none in place of {}",
                    kind.name, config.codec.kind));
  if (kind.reads_honest_rows && !config.run.participants.empty())
    return invalid_error(
        fmt::format("run.participants: '{}' reads the rows of all peers in each round, and some "
                    "have none there; remove the key, or choose another attack",
                    kind.name));
  if (kind.needs_fixed_graph && run.schedule.period() != 1)
    return invalid_error(fmt::format(
        "attack.kind: '{}' attacks one graph, and W of topology.kind = {} changes from round to "
        "round; choose a topology that does not change, or another attack",
        kind.name, config.topology.kind));
  if (kind.remembers && config.checkpoint.every > 0)
    return invalid_error(fmt::format(
        "checkpoint.every: a checkpoint does not contain what the attack '{}' remembers "
        "of earlier rounds; set checkpoint.every = 0",
        kind.name));
  return {};
}

/// An attack by silence, against the policy: whether the neighbours go on without the rows.
Status check_silence(const Config& config, const gossip::AttackKind& kind) {
  const gossip::Policy policy = config.exchange.kind();
  if (policy == gossip::Policy::deadline || policy == gossip::Policy::async) return {};
  return invalid_error(fmt::format(
      "attack.kind: the hostile peers of '{}' send no rows, and under algorithm.policy = {} their "
      "neighbours would wait for them without end; set algorithm.policy = deadline or async",
      kind.name, config.exchange.policy));
}

/// The names of the attacks for which `holds`, for a message.
std::string attacks_that(bool (*holds)(const gossip::AttackKind&)) {
  std::vector<std::string> names;
  for (const gossip::AttackKind& kind : gossip::attacks::catalog())
    if (holds(kind)) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A search for the strength, against what it searches.
Status check_line_search(const AttackedRun& run, const gossip::AttackKind& kind) {
  if (!kind.is_searchable())
    return invalid_error(fmt::format(
        "attack.line_search: '{}' has no strength that depends on honest rows; set it to false, or "
        "choose an attack whose strength can be searched ({})",
        kind.name, attacks_that([](const auto& other) { return other.is_searchable(); })));
  if (run.config.attack.options.strength != 0)
    return invalid_error("attack.strength: has no effect with attack.line_search; remove one");
  if (run.rule.reads_losses())
    return invalid_error(
        fmt::format("attack.line_search: the mix of mixing.rule = {} depends on losses, which a "
                    "search does not "
                    "know; set attack.line_search = false, or choose another rule",
                    run.config.mixing.kind));
  return {};
}

Result<double> strength_of(const AttackedRun& run, const gossip::AttackKind& kind, int hostile) {
  const Config& config = run.config;
  const double strength = config.attack.options.strength;
  if (config.attack.options.line_search) {
    GOSSAMER_TRY_STATUS(check_line_search(run, kind));
    return 1.0;
  }
  if (kind.default_strength) {
    if (strength != 0) return strength;
    return kind.default_strength(config.run.peers, hostile);
  }
  if (strength == 0) return 1.0;
  return invalid_error(
      fmt::format("attack.strength: '{}' has no strength; remove the key", kind.name));
}

}  // namespace

Result<gossip::AttackPlan> plan_attack(const AttackedRun& run) {
  const Config& config = run.config;
  GOSSAMER_TRY(const gossip::AttackKind kind, gossip::find_attack(config.attack.kind));
  gossip::AttackPlan plan;
  if (kind.name == kHonest) {
    GOSSAMER_TRY_STATUS(check_unused(config.attack.options));
    return plan;
  }
  GOSSAMER_TRY(plan.hostile, hostile_peers(config));
  plan.from = config.attack.options.from;
  plan.reads_honest_rows = kind.reads_honest_rows;
  plan.line_search = config.attack.options.line_search;
  GOSSAMER_TRY(plan.strength, strength_of(run, kind, static_cast<int>(plan.hostile.size())));
  if (kind.poison) {
    GOSSAMER_TRY_STATUS(check_poisoning(config));
    GOSSAMER_TRY(plan.poisoning, kind.poison(config.attack.values));
  }
  if (kind.silent_every) {
    GOSSAMER_TRY_STATUS(check_silence(config, kind));
    GOSSAMER_TRY(plan.silent_every, kind.silent_every(config.attack.values));
  }
  if (!kind.make) return plan;
  GOSSAMER_TRY_STATUS(check_messages(run, kind));
  const gossip::AttackContext context{config.run.peers, plan.hostile, config.run.seed};
  GOSSAMER_TRY(plan.make, kind.make(config.attack.values, context));
  return plan;
}

Status check_network_attack(const Config& config) {
  GOSSAMER_TRY(const gossip::AttackKind kind, gossip::find_attack(config.attack.kind));
  if (!kind.reads_honest_rows) return {};
  return invalid_error(fmt::format(
      "attack.kind: '{}' reads the rows of all honest peers in the same round, which "
      "only one process with all peers has; use `gossamer run`, or an attack that needs "
      "no other rows ({})",
      kind.name, attacks_that([](const auto& other) {
        return !other.reads_honest_rows && other.name != kHonest;
      })));
}

std::string attack_refusal(const Config& config) {
  if (config.attack.kind == kHonest) return "";
  return fmt::format(
      "attack.kind: what hostile peers send ('{}') is no iteration of W, and theory "
      "says nothing about a run with it",
      config.attack.kind);
}

}  // namespace gossamer::peer
