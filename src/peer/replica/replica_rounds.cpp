#include "peer/replica/replica_rounds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gossamer::peer {
namespace {

using Rounds = std::vector<gossip::Round>;
using Links = train::WorkerLinks<float>;

/// Bounds on a list of rounds from another worker. A double holds the largest round exactly.
constexpr double kMostRounds = 1e6, kLargestRound = 9e15;

void send(Links& links, int part, const Rounds& rounds) {
  const auto count = static_cast<double>(rounds.size());
  send_numbers<float>(links, part, std::span(&count, 1));
  if (rounds.empty()) return;
  const std::vector<double> numbers(rounds.begin(), rounds.end());
  send_numbers<float>(links, part, numbers);
}

Rounds receive(Links& links, int part) {
  double count = 0;
  receive_numbers<float>(links, part, std::span(&count, 1));
  if (!(count >= 0 && count <= kMostRounds) || count != std::floor(count))
    throw train::WorkerLost("a worker of this replica sent a number of rounds that is none");
  std::vector<double> numbers(static_cast<std::size_t>(count));
  if (!numbers.empty()) receive_numbers<float>(links, part, numbers);
  Rounds rounds;
  for (const double number : numbers) {
    if (!(number >= 0 && number <= kLargestRound) || number != std::floor(number))
      throw train::WorkerLost("a worker of this replica sent a round that is none");
    rounds.push_back(static_cast<gossip::Round>(number));
  }
  std::ranges::sort(rounds);
  return rounds;
}

void keep_common(Rounds& rounds, const Rounds& others) {
  std::erase_if(rounds,
                [&](gossip::Round round) { return !std::ranges::binary_search(others, round); });
}

}  // namespace

Result<Rounds> rounds_of_replica(const WorkerPlace& worker, int workers, Links& links,
                                 const Rounds& rounds) {
  Rounds common = rounds;
  try {
    if (worker.part > 0) {
      send(links, 0, rounds);
      keep_common(common, receive(links, 0));
    } else {
      for (int part = 1; part < workers; ++part) keep_common(common, receive(links, part));
      for (int part = 1; part < workers; ++part) send(links, part, common);
    }
  } catch (const train::WorkerLost& lost) {
    return Error{ErrorKind::lost_peer, lost.what()};
  }
  if (!common.empty()) return common;
  return Error{ErrorKind::invalid,
               fmt::format("worker {}: there is no round from which all workers of replica {} can "
                           "start; this one can from {}. Start all of them with --resume auto, or "
                           "anew in other folders",
                           worker.name(), worker.replica, fmt::join(rounds, ", "))};
}

}  // namespace gossamer::peer
