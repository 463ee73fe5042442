#include "peer/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.hpp"

namespace gossamer::peer {
namespace {

using gossip::Round;

constexpr std::uint64_t kLargestId = std::numeric_limits<int>::max();

std::string words_for(int peer, std::vector<Round> rounds) {
  std::erase(rounds, Round(0));
  if (rounds.empty()) return fmt::format("peer {} has none", peer);
  std::ranges::reverse(rounds);
  return fmt::format("peer {} has {} {}", peer, rounds.size() == 1 ? "that of round" : "those of rounds", fmt::join(rounds, ", "));
}

bool is_ascending(const std::vector<Round>& rounds) {
  return std::ranges::adjacent_find(rounds, [](Round a, Round b) { return a >= b; }) == rounds.end();
}

/// Rounds as say() writes them; nothing where they are not.
std::optional<std::vector<Round>> rounds_in(const Json& statement, const char* key) {
  const auto found = statement.find(key);
  if (found == statement.end() || !found->is_array() || found->size() > Agreement::kMostRounds) return std::nullopt;
  if (!std::ranges::all_of(*found, [](const Json& round) { return round.is_number_unsigned(); })) return std::nullopt;
  auto rounds = found->get<std::vector<Round>>();
  if (!is_ascending(rounds)) return std::nullopt;
  return rounds;
}

}  // namespace

Agreement::Agreement(int peer, std::vector<Round> rounds) {
  GOSSAMER_CHECK(!rounds.empty(), "a process can begin somewhere");
  if (rounds.size() > kMostRounds) rounds.erase(rounds.begin(), rounds.end() - kMostRounds);
  behind_ = ahead_ = {peer, rounds};
  common_ = std::move(rounds);
}

std::string Agreement::say() const {
  const auto witness = [](const Witness& w) { return Json{{"peer", w.peer}, {"rounds", w.rounds}}; };
  return text_of({{"common", common_}, {"behind", witness(behind_)}, {"ahead", witness(ahead_)}});
}

std::optional<Agreement::Witness> Agreement::witness_in(const Json& statement, const char* key) {
  const auto found = statement.find(key);
  if (found == statement.end() || !found->is_object()) return std::nullopt;
  const auto peer = found->find("peer");
  auto rounds = rounds_in(*found, "rounds");
  if (peer == found->end() || !peer->is_number_unsigned() || peer->get<std::uint64_t>() > kLargestId || !rounds || rounds->empty())
    return std::nullopt;
  return Witness{peer->get<int>(), std::move(*rounds)};
}

Status Agreement::hear(const std::string& text) {
  const Json statement = Json::parse(text, nullptr, false);
  if (!statement.is_object()) return Error{ErrorKind::lost_peer, "what it says of its checkpoints cannot be read"};
  const auto theirs = rounds_in(statement, "common");
  const auto behind = witness_in(statement, "behind"), ahead = witness_in(statement, "ahead");
  if (!theirs || !behind || !ahead) return Error{ErrorKind::lost_peer, "what it says of its checkpoints cannot be"};
  std::vector<Round> both;
  std::ranges::set_intersection(common_, *theirs, std::back_inserter(both));
  common_ = std::move(both);
  // Of two that are equally far, the lower peer: all name the same.
  if (std::pair(behind->rounds.back(), behind->peer) < std::pair(behind_.rounds.back(), behind_.peer)) behind_ = *behind;
  if (std::pair(ahead_.rounds.front(), ahead->peer) < std::pair(ahead->rounds.front(), ahead_.peer)) ahead_ = *ahead;
  return {};
}

Result<Round> Agreement::outcome() const {
  if (!common_.empty()) return common_.back();
  return Error{ErrorKind::invalid,
               fmt::format("there is no checkpoint of one round that all processes can go on from: {}, {}; bring the missing files "
                           "to checkpoint.folder there, or begin anew in other folders",
                           words_for(behind_.peer, behind_.rounds), words_for(ahead_.peer, ahead_.rounds))};
}

int exchanges_to_reach_all(const Setup& setup) {
  const auto nodes = static_cast<std::size_t>(setup.nodes());
  std::vector<bool> reached(nodes);
  std::vector<int> last{0}, next;
  std::size_t count = 1;
  reached[0] = true;
  int hops = 0;
  while (count < nodes && !last.empty()) {
    next.clear();
    for (const int node : last)
      for (const int partner : count < nodes ? setup.algorithm->partners(node, *setup.schedule) : std::vector<int>())
        if (const auto index = static_cast<std::size_t>(partner); !reached[index]) {
          reached[index] = true;
          next.push_back(partner);
          ++count;
        }
    last.swap(next);
    ++hops;
  }
  return std::min(2 * hops, setup.nodes() - 1);
}

std::optional<std::uint64_t> largest_lead(const Setup& setup) {
  const gossip::AlgorithmNeeds needs = setup.algorithm->needs();
  if (setup.config.exchange.policy != "sync" || !needs.bounded_lead) return {};
  // A node that ends a round has heard from its partners in it, who had begun it.
  if (needs.servers > 0) return 2;
  if (setup.schedule->period() == 0 || !setup.report.diameter) return {};
  return static_cast<std::uint64_t>(*setup.report.diameter) * static_cast<std::uint64_t>(setup.schedule->period());
}

std::string agreement_warning(const Setup& setup) {
  const CheckpointOptions& options = setup.config.checkpoint;
  if (options.every == 0 || setup.nodes() == 1) return {};
  const auto lead = largest_lead(setup);
  if (!lead)
    return "in a network, peers may be any number of rounds ahead of each other here: should all processes die at once, it is likely "
           "(the more, the larger checkpoint.every and checkpoint.keep) and not certain that they find checkpoints of one round";
  const auto every = static_cast<std::uint64_t>(options.every), kept = static_cast<std::uint64_t>(options.keep - 1);
  if (kept * every >= *lead) return {};
  const std::string mend = kept == 0 ? "checkpoint.keep = 2 and " : "";
  return fmt::format("in a network, peers may be {} rounds ahead of each other here: should all processes die at once, they may find "
                     "no checkpoints of one round; {}checkpoint.every = {} or more makes it certain",
                     *lead, mend, (*lead + std::max<std::uint64_t>(kept, 1) - 1) / std::max<std::uint64_t>(kept, 1));
}

}  // namespace gossamer::peer
