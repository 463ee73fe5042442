// One peer's watch over the rows that it waits for: it collects the peers that keep this one
// waiting, reports those whose rows are overdue, and announces to all partners that this peer
// waits.
#pragma once

#include <optional>
#include <vector>

#include "gossip/exchange/row_deadline.hpp"
#include "gossip/messaging/messenger.hpp"
#include "gossip/process/process_context.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class RowWatch {
 public:
  /// All outlive the watch. It does nothing if ExchangeOptions::row_limit is 0.
  RowWatch(const ProcessContext& process, Messenger& messenger);

  /// `counted` time has passed that may count against others. The peer is in `round`; `donor`: it
  /// joins, and waits for this peer too.
  void on_tick(Time counted, Round round, std::optional<int> donor);
  /// A `waiting` message; `donor` as above. An error names the protocol violation.
  Status on_waiting(const ChunkHeader& header, std::optional<int> donor);
  /// RowDeadline::on_donor_begins()
  void on_donor_begins(int donor, Round t) {
    if (deadline_) deadline_->on_donor_begins(donor, t);
  }

 private:
  std::vector<int> awaited_peers(std::optional<int> donor) const;

  const ProcessContext& process_;
  Messenger& messenger_;
  std::optional<RowDeadline> deadline_;
};

}  // namespace gossamer::gossip
