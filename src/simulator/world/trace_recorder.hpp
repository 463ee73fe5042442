// Records the trace of a simulated run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "simulator/world/event_queue.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

class TraceRecorder {
 public:
  /// `clock` outlives the recorder. Every peer has its first incarnation.
  TraceRecorder(int peers, const EventQueue& clock);

  Trace& trace() { return trace_; }
  /// The trace, once the run is over.
  Trace take() { return std::move(trace_); }

  /// The index in Trace::incarnations of the peer's current incarnation, or of its last one.
  int incarnation_of(int peer) const { return current_[static_cast<std::size_t>(peer)]; }
  Incarnation& incarnation(int peer) {
    return trace_.incarnations[static_cast<std::size_t>(incarnation_of(peer))];
  }
  /// The peer's process is restarted: its next incarnation.
  Incarnation& add_incarnation(int peer);
  /// No peer is left that has begun and has rounds to do: a peer that joined would wait for ever.
  bool is_over() const;

  /// Adds to the trace's hash.
  void add_to_hash(std::initializer_list<std::uint64_t> words);
  /// Adds the rows with which every incarnation ended.
  void add_final_rows_to_hash();
  /// Adds a line to the event log.
  void log_event(const std::string& line);

 private:
  const EventQueue& clock_;
  Trace trace_;
  std::vector<int> current_;  ///< by peer: its last of Trace::incarnations
};

}  // namespace gossamer::simulator
