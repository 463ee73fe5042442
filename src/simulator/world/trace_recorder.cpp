#include "simulator/world/trace_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/hash.hpp"

namespace gossamer::simulator {

TraceRecorder::TraceRecorder(int peers, const EventQueue& clock) : clock_(clock) {
  for (int peer = 0; peer < peers; ++peer) {
    trace_.incarnations.emplace_back().peer = peer;
    current_.push_back(peer);
  }
}

Incarnation& TraceRecorder::add_incarnation(int peer) {
  current_[static_cast<std::size_t>(peer)] = static_cast<int>(trace_.incarnations.size());
  Incarnation& next = trace_.incarnations.emplace_back();
  next.peer = peer;
  return next;
}

bool TraceRecorder::is_over() const {
  return std::ranges::none_of(current_, [this](int k) {
    const Incarnation& peer = trace_.incarnations[static_cast<std::size_t>(k)];
    return peer.alive && !peer.finished && !peer.waits && !(peer.joins && peer.rounds.empty());
  });
}

void TraceRecorder::add_to_hash(std::initializer_list<std::uint64_t> words) {
  std::vector<std::uint64_t> all{trace_.hash};
  all.insert(all.end(), words);
  trace_.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
}

void TraceRecorder::add_final_rows_to_hash() {
  for (const Incarnation& incarnation : trace_.incarnations) {
    if (incarnation.rounds.empty()) continue;
    for (const FloatRow& row : incarnation.rounds.back().end)
      add_to_hash({hash64(std::as_bytes(std::span<const float>(row)))});
  }
}

void TraceRecorder::log_event(const std::string& line) {
  trace_.event_log.push_back(fmt::format("{:10.4f}  {}", seconds(clock_.now()), line));
}

}  // namespace gossamer::simulator
