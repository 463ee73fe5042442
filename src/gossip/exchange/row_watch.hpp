// One peer's watch over the rows that it waits for: it finds out whom the peer waits for, reports
// the neighbours whose rows are overdue, and tells the others when the peer waits.
#pragma once

#include <optional>
#include <vector>

#include "gossip/exchange/process_context.hpp"
#include "gossip/exchange/row_deadline.hpp"
#include "gossip/messaging/messenger.hpp"

namespace gossamer::gossip {

/// Thread: the scheduler's.
class RowWatch {
 public:
  /// All outlive the watch. It does nothing if ExchangeOptions::row_limit is 0.
  RowWatch(const ProcessContext& process, Messenger& messenger);

  /// `counted` time has passed that may count against others. The peer is in `round`; `donor`: it
  /// joins, and waits for this peer too.
  void on_tick(Time counted, Round round, std::optional<int> donor);
  /// A `waiting` message. An error names the protocol violation.
  Status on_waiting(const ChunkHeader& header);

 private:
  std::vector<int> awaited_peers(std::optional<int> donor) const;

  const ProcessContext& process_;
  Messenger& messenger_;
  std::optional<RowDeadline> deadline_;
};

}  // namespace gossamer::gossip
