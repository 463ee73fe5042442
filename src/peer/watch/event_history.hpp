// The newest events of a run as its page lists them, and how its processes ended, in the order of
// one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "peer/storage/json.hpp"
#include "peer/watch/figures.hpp"
#include "peer/watch/round_history.hpp"

namespace gossamer::peer {

/// The clock of a process that joins the running network begins at 0, while the other clocks go on.
/// The time `started` in the header of its log does not say when: a process that was started again
/// keeps that of its first start, and processes that begin together may have waited for each other
/// for minutes. The round in which it joins does.
/// Thread: one at a time.
class EventHistory {
 public:
  /// How many lines are kept.
  static constexpr std::size_t kMost = 200;
  enum class Order {
    of_time,     ///< logs are read one after the other
    of_arrival,  ///< processes report events while they run, and their clocks differ
  };
  /// `rounds`, which outlives this object, has the seconds at which rounds were recorded.
  EventHistory(Order order, const RoundHistory& rounds) : order_(order), rounds_(&rounds) {}

  /// The clock of a process that joins in `round`, where it shows `seconds`, as EventLine names it.
  int add_clock(std::uint64_t round, double seconds);
  /// Seconds since the start of the run when a clock shows `seconds`. It may change as further
  /// rounds are recorded.
  double time(int clock, double seconds) const;

  /// `line.changed`: the version of the view.
  void add(EventLine line);
  /// A membership record that was checked (peer/log/log_records.hpp).
  void add(const Json& record, int clock, std::uint64_t version);
  /// The end record, which was checked, of the process of which `node` is the lowest one.
  void add_end(const Json& record, int node, int clock, std::uint64_t version);

  /// In order.
  std::vector<EventLine> newest() const;
  bool has_end() const { return !ends_.empty(); }
  /// Reason, message, rounds and seconds of the process that ended last; a run has finished only if
  /// all of its processes have. Null if there is none.
  Json end() const;

 private:
  struct Clock {
    std::uint64_t round = 0;
    double seconds = 0;
  };
  struct End {
    Json record;
    int clock = 0;
  };
  double time(const EventLine& line) const { return time(line.clock, line.seconds); }

  Order order_;
  const RoundHistory* rounds_;
  std::vector<Clock> clocks_{{}};  ///< first that of the processes that began together
  std::deque<EventLine> lines_;    ///< as they were added
  std::map<int, End> ends_;        ///< by the lowest node of the process
};

}  // namespace gossamer::peer
