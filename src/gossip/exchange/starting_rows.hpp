// The rows with which a peer begins: those of the donor that it has asked, as it joins a running
// network; and those that it is given with a change of participants.
#pragma once

#include <functional>
#include <optional>

#include "gossip/messaging/messenger.hpp"
#include "gossip/process/options.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class StartingRows {
 public:
  /// Both outlive it.
  StartingRows(Messenger& messenger, const ExchangeOptions& options)
      : messenger_(messenger), options_(options) {}

  /// A chunk on one of the two channels has arrived. An error names the protocol violation.
  Status deliver(Chunk chunk);

  // ---- rows that this peer asks for: on requested_channel(), as messages of round 0
  /// Accepts rows of `donor`, and drops those of other peers.
  void request_from(std::optional<int> donor);
  /// The peer that this one has asked.
  std::optional<int> donor() const { return donor_; }

  // ---- rows that this peer is given: on given_channel(), as messages of the change's first round
  /// Whether `from` gives this peer rows with the change in round t. Without it, no peer does.
  std::function<bool(int from, Round t)> is_donor;
  /// The change of the oldest rows of `donor` that have arrived and were neither taken nor dropped.
  std::optional<Round> given_by(int donor) const {
    return messenger_.first_round(donor, options_.given_channel());
  }
  /// Drops the rows that are given with changes in rounds before `first`: those that have arrived,
  /// and those that will. Unread, they would hold the buffers of their links.
  void drop_before(Round first);

 private:
  Messenger& messenger_;
  const ExchangeOptions& options_;
  std::optional<int> donor_;
  Round first_ = 0;  ///< of drop_before()
};

}  // namespace gossamer::gossip
