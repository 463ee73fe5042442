// A trial of the guarantees of a session: two ends that exchange messages over connections which
// are slow, stop, break in the middle of a frame and damage bytes, in virtual time, made from a
// seed. The simulated world assumes that a connection brings everything once, in order and
// undamaged, or is lost; the trial checks that the sessions of the program do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gossamer::simulator {

struct TrialReport {
  std::vector<std::string> violations;  ///< whole sentences, the first few
  std::uint64_t frames = 0;             ///< that arrived, and were compared with what was sent
  std::uint64_t breaks = 0;             ///< of connections, while messages were in flight
  std::uint64_t hash = 0;               ///< of what arrived when
  bool lost = false;                    ///< a session was lost, in a trial in which sessions may be
};

/// The same for the same seed, on every machine. What is checked:
/// - Each chunk, control message and start-up message arrives once, in order and unchanged, though
///   its sender writes into rows as soon as their leases end, and stays unchanged while it is read.
///   All of them arrive where the connections let them through.
/// - No more chunks are leased at an end than it has buffers.
/// - All leases end, and so do both sessions, within a bound of virtual time. A session is lost
///   only in a trial whose connections carry nothing for longer than the failure timeout, or damage
///   the same frame twice; then what arrived is a prefix of what was sent.
/// Thread: any, one trial at a time.
TrialReport try_session(std::uint64_t seed);

}  // namespace gossamer::simulator
