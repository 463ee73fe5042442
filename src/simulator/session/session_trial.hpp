// What a session promises, tried: two ends that talk over connections which are slow, stop, break
// in the middle of a frame and damage bytes, in virtual time; made from a seed and judged. The
// simulator of gossip/sim takes for granted that a connection brings everything once, in order and
// undamaged, or is lost; this holds the sessions that the program runs to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gossamer::net::sim {

struct SessionVerdict {
  std::vector<std::string> violations;  ///< whole sentences, the first few
  std::uint64_t frames = 0;             ///< that came, and were held to what was sent
  std::uint64_t breaks = 0;             ///< of connections, in the middle of it all
  std::uint64_t hash = 0;               ///< of what came when
  bool lost = false;  ///< the trial was one in which sessions may end early, and they did
};

/// The same for the same seed, on every machine. What is held:
/// - Each chunk, note, statement and word that the network runs comes once, in order and unchanged,
/// though its sender writes into
///   rows as soon as their leases end. Where the connections that there are let it through, all of
///   them come.
/// - No more chunks are lent at an end than it has buffers.
/// - All leases end, and so do both sessions, within a bound of virtual time; none is lost but in
/// trials whose connections carry
///   nothing for longer than the silence, or damage the same frame twice: there what came is a
///   beginning of what was sent.
/// Thread: any, one trial at a time.
SessionVerdict try_session(std::uint64_t seed);

}  // namespace gossamer::net::sim
