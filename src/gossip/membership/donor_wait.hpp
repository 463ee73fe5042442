// What a peer that takes no part knows of the round in which it is to take part: whether others
// have begun it. Then its donor, if it is not there, has missed it.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "gossip/link.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class DonorWait {
 public:
  /// `on_begun`: called once in a wait, when others have begun its round. `send_to_all`: sends
  /// change_begun of a round over all links that are up.
  DonorWait(std::function<void()> on_begun, std::function<void(Round)> send_to_all)
      : on_begun_(std::move(on_begun)), send_to_all_(std::move(send_to_all)) {}

  /// The peer takes no part until round `until`; none: it takes part.
  void set(std::optional<Round> until) { until_ = until; }
  std::optional<Round> until() const { return until_; }
  bool waits() const { return until_.has_value(); }
  bool others_have_begun() const { return until_ && latest_begun_ >= *until_; }
  /// This peer has begun round t, from which on others take part: those that are its neighbours
  /// need not wait for a donor that they have lost.
  void announce(Round t) const { send_to_all_(t); }
  /// Another peer has begun round t: it announced that, or its link was restored in it. The news is
  /// passed on, for a neighbour may wait for the rows that this peer waits for.
  void note_begun(Round t) {
    const bool knew = others_have_begun();
    latest_begun_ = std::max(latest_begun_, t);
    if (knew || !others_have_begun()) return;
    on_begun_();
    send_to_all_(latest_begun_);
  }

 private:
  std::function<void()> on_begun_;
  std::function<void(Round)> send_to_all_;
  std::optional<Round> until_;
  Round latest_begun_ = 0;
};

}  // namespace gossamer::gossip
