#include "peer/runtime/start_round_agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::peer {
namespace {

using gossip::Round;

constexpr std::size_t kRoundBytes =
    32;  // of a round in a contribution, beside a digit for every four nodes

std::string words_for(std::size_t peer, std::vector<Round> rounds) {
  if (rounds.empty()) return fmt::format("peer {} has older checkpoints", peer);
  std::erase(rounds, Round(0));
  if (rounds.empty()) return fmt::format("peer {} has none", peer);
  std::ranges::reverse(rounds);
  return fmt::format("peer {} has {} {}", peer,
                     rounds.size() == 1 ? "the checkpoint of round" : "the checkpoints of rounds",
                     fmt::join(rounds, ", "));
}

constexpr std::string_view kDigits = "0123456789abcdef";

/// A hexadecimal digit for four at a time, the lowest first.
std::string digits_of(const std::vector<bool>& nodes) {
  std::string text;
  for (std::size_t first = 0; first < nodes.size(); first += 4) {
    std::size_t digit = 0;
    for (std::size_t k = 0; k < 4 && first + k < nodes.size(); ++k)
      digit |= static_cast<std::size_t>(nodes[first + k]) << k;
    text += kDigits[digit];
  }
  return text;
}

/// Nothing if the text does not describe `count` nodes.
std::optional<std::vector<bool>> nodes_in(const std::string& text, std::size_t count) {
  std::vector<bool> nodes(count);
  if (text.size() != (count + 3) / 4) return std::nullopt;
  for (std::size_t i = 0; i < 4 * text.size(); ++i) {
    const std::size_t digit = kDigits.find(text[i / 4]);
    if (digit == std::string_view::npos || (i >= count && (digit >> i % 4 & 1) != 0))
      return std::nullopt;
    if (i < count) nodes[i] = (digit >> i % 4 & 1) != 0;
  }
  return nodes;
}

}  // namespace

std::size_t StartRoundAgreement::most_rounds(int nodes) {
  return net::kMaxContributionBytes / (kRoundBytes + (static_cast<std::size_t>(nodes) + 3) / 4);
}

StartRoundAgreement::StartRoundAgreement(const std::vector<int>& hosted, int nodes,
                                         const std::vector<Round>& rounds,
                                         NeedsNoState needs_no_state)
    : nodes_(static_cast<std::size_t>(nodes)),
      hosted_(hosted),
      needs_no_state_(std::move(needs_no_state)),
      own_rounds_(rounds.begin(), rounds.end()) {
  GOSSAMER_CHECK(!rounds.empty(), "a process without a round to start at");
  Nodes own(nodes_);
  for (const int node : hosted) own[static_cast<std::size_t>(node)] = true;
  for (const Round round : rounds) owners_[round] = own;
  trim();
}

/// The rounds that are left are the newest of all, whatever the order in which they were merged.
void StartRoundAgreement::trim() {
  while (owners_.size() > most_rounds(static_cast<int>(nodes_))) owners_.erase(owners_.begin());
}

std::string StartRoundAgreement::contribution() const {
  Json rounds = Json::array();
  for (const auto& [round, nodes] : owners_) rounds.push_back({round, digits_of(nodes)});
  return rounds.dump();
}

Status StartRoundAgreement::merge(const std::string& text) {
  const Error nonsense{ErrorKind::lost_peer, "its list of checkpoints makes no sense"};
  const auto parsed = parse_json(text);
  if (!parsed.ok()) return nonsense;
  const Json& rounds = *parsed;
  if (!rounds.is_array() || rounds.empty() || rounds.size() > most_rounds(static_cast<int>(nodes_)))
    return nonsense;
  std::map<Round, Nodes> theirs;
  for (const Json& entry : rounds) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() ||
        !entry[1].is_string())
      return nonsense;
    auto nodes = nodes_in(entry[1].get<std::string>(), nodes_);
    if (!nodes || std::ranges::find(*nodes, true) == nodes->end()) return nonsense;
    const auto round = entry[0].get<Round>();
    // A member may have invented it, and others passed it on: only this process knows.
    for (const int node : hosted_)
      (*nodes)[static_cast<std::size_t>(node)] = own_rounds_.contains(round);
    if (std::ranges::find(*nodes, true) != nodes->end()) theirs[round] = std::move(*nodes);
  }
  for (const auto& [round, nodes] : theirs) {
    Nodes& known = owners_.try_emplace(round, nodes_).first->second;
    for (std::size_t i = 0; i < nodes_; ++i) known[i] = known[i] || nodes[i];
    if (!needs_no_state_(round)) continue;
    own_rounds_.insert(round);
    for (const int node : hosted_) known[static_cast<std::size_t>(node)] = true;
  }
  trim();
  return {};
}

std::vector<Round> StartRoundAgreement::rounds_of(std::size_t node) const {
  std::vector<Round> rounds;
  for (const auto& [round, nodes] : owners_)
    if (nodes[node]) rounds.push_back(round);
  return rounds;
}

Result<StartRoundAgreement::Outcome> StartRoundAgreement::outcome(bool some_may_join) const {
  std::pair<std::ptrdiff_t, Round> most;  // the newer of two rounds that equally many nodes have
  for (const auto& [round, nodes] : owners_) {
    const auto having = std::ranges::count(nodes, true);
    if (having == std::ssize(nodes) || round > 0) most = std::max(most, {having, round});
  }
  Outcome outcome{most.second, {}};
  const Nodes& having = owners_.at(most.second);
  for (std::size_t node = 0; node < nodes_; ++node)
    if (!having[node]) outcome.without.push_back(static_cast<int>(node));
  // If all rounds of a node are too old to fit, other nodes may have some of them.
  bool all_known = true;
  for (std::size_t node = 0; node < nodes_; ++node)
    all_known = all_known && !rounds_of(node).empty();
  if (outcome.without.empty() || (some_may_join && all_known)) return outcome;

  // The node whose newest round is the oldest, and the node whose oldest round is the newest.
  std::pair<Round, std::size_t> behind{std::numeric_limits<Round>::max(), 0}, ahead{0, 0};
  for (std::size_t node = 0; node < nodes_; ++node) {
    const std::vector<Round> rounds = rounds_of(node);
    behind = std::min(behind, {rounds.empty() ? 0 : rounds.back(), node});
    if (!rounds.empty() && rounds.front() > ahead.first) ahead = {rounds.front(), node};
  }
  return invalid_error(
      fmt::format("there is no checkpoint of one round that all processes can resume from: "
                  "{}, {}; copy the missing files "
                  "to checkpoint.folder there, or start anew in other folders",
                  words_for(behind.second, rounds_of(behind.second)),
                  words_for(ahead.second, rounds_of(ahead.second))));
}

int steps_to_reach_all(const Setup& setup) {
  const topology::Participants& participants = setup.schedule->participants();
  std::size_t nodes = 0;  // that take part in some round; those of an open run may
  for (int node = 0; node < setup.nodes(); ++node)
    nodes += participants.is_open() || participants.next_round(node, 0) ? 1 : 0;
  std::vector<bool> reached(static_cast<std::size_t>(setup.nodes()));
  std::vector<int> last{participants.is_open() ? 0 : participants.changes().front().peers.front()},
      next;
  std::size_t count = 1;
  reached[static_cast<std::size_t>(last.front())] = true;
  int hops = 0;
  while (count < nodes && !last.empty()) {
    next.clear();
    for (const int node : last)
      for (const int partner :
           count < nodes ? setup.algorithm->partners(node, *setup.schedule) : std::vector<int>())
        if (const auto index = static_cast<std::size_t>(partner); !reached[index]) {
          reached[index] = true;
          next.push_back(partner);
          ++count;
        }
    last.swap(next);
    ++hops;
  }
  const int steps = std::min(2 * hops, setup.nodes() - 1);
  return participants.are_all() ? steps : 2 * steps;
}

std::optional<std::uint64_t> largest_round_gap(const Setup& setup) {
  const gossip::AlgorithmRequirements needs = setup.algorithm->requirements();
  if (!gossip::is_lockstep(setup.config.exchange.kind()) || !needs.bounded_lead) return {};
  // A node that ends a round has received from its partners in it, which had begun it.
  if (needs.servers > 0) return 2;
  // Of an open run, whose participants may be any, the graph is a path at worst.
  if (const topology::Participants& all = setup.schedule->participants(); all.is_open())
    return static_cast<std::uint64_t>(all.peers() - 1) *
           static_cast<std::uint64_t>(setup.schedule->longest_period());
  // Where participants change, a way may be one of the graph before and one of the graph after it.
  const int graphs = setup.reports.size() > 1 ? 2 : 1;
  int diameter = 0;
  for (const topology::TopologyReport& report : setup.reports) {
    if (report.period == 0 || !report.diameter) return {};
    diameter = std::max(diameter, *report.diameter);
  }
  return static_cast<std::uint64_t>(graphs * diameter) *
         static_cast<std::uint64_t>(setup.schedule->longest_period());
}

std::string agreement_warning(const Setup& setup) {
  const CheckpointOptions& options = setup.config.checkpoint;
  if (options.every == 0 || setup.nodes() == 1) return {};
  const auto lead = largest_round_gap(setup);
  const char* otherwise =
      setup.tolerates_peer_loss()
          ? ", and then processes without the most common round start with a neighbour's rows"
          : "";
  if (!lead)
    return fmt::format(
        "in a network, peers may be any number of rounds ahead of each other here: if all "
        "processes are killed at once, they may have no checkpoints of a common round (less likely "
        "with a larger checkpoint.every or checkpoint.keep){}",
        otherwise);
  const auto every = static_cast<std::uint64_t>(options.every),
             kept = static_cast<std::uint64_t>(options.keep - 1);
  if (kept * every >= *lead) return {};
  const std::string mend = kept == 0 ? "checkpoint.keep = 2 and " : "";
  return fmt::format(
      "in a network, peers may be {} rounds ahead of each other here: if all processes are killed "
      "at once, they may have no checkpoints of a common round{}; {}checkpoint.every = {} or more "
      "guarantees one",
      *lead, otherwise, mend,
      (*lead + std::max<std::uint64_t>(kept, 1) - 1) / std::max<std::uint64_t>(kept, 1));
}

}  // namespace gossamer::peer
