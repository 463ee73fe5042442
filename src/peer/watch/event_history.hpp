// The newest events of a run as its page lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "peer/storage/json.hpp"
#include "peer/watch/figures.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class EventHistory {
 public:
  /// How many lines are kept.
  static constexpr std::size_t kMost = 200;
  enum class Order {
    of_seconds,  ///< logs are read one after the other
    of_arrival,  ///< processes report events while they run, and their clocks differ
  };
  explicit EventHistory(Order order) : order_(order) {}

  /// `line.changed`: the version of the view.
  void add(EventLine line);
  /// A membership record that was checked (peer/log/log_records.hpp).
  void add(const Json& record, std::uint64_t version);

  /// In order.
  const std::deque<EventLine>& newest() const { return lines_; }

 private:
  Order order_;
  std::deque<EventLine> lines_;
};

}  // namespace gossamer::peer
