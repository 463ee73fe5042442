// What carries values from one peer to another. A message (a row, or a part of one) travels as
// chunks, in order; a link moves chunks and knows nothing of rounds or mixing. Implementations:
// gossip/sim/ (in one process, with or without simulated latency), net/ (TCP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "gossip/lease.hpp"

namespace gossamer::gossip {

using Round = std::uint64_t;

/// A stream of messages between two peers; the receiver takes each channel's messages in the order
/// they were sent.
using Channel = std::uint16_t;

/// The meaning of a chunk without values. A control message keeps its place among the chunks of its
/// link. The first group belongs to the policy `deadline`, the second to membership
/// (gossip/membership/membership.hpp).
enum class ControlMessage : std::uint16_t {
  none = 0,           ///< the chunk carries values
  commit = 1,         ///< the exchange of `round` on this edge counts
  decline = 2,        ///< exchanges up to `round` that were not committed before do not count
  query = 3,          ///< the sender stops waiting: decide the exchange of `round` now
  skip = 4,           ///< the sender takes part in no undecided exchange up to `round`
  link_lost = 5,      ///< link state: an end lost its link. `total`: the end and its version;
                      ///< `round`: rows are reinitialised n rounds after it; `channel`: 1 if old
  link_restored = 6,  ///< link state: the link takes effect from `round` on; the same fields
  resync = 7,         ///< a restored connection; the sender is in `round`
  request_state = 8,  ///< a restored connection; the sender joins and needs a row to begin with
  propose_round = 9,  ///< let the link take effect in `round`; `total`: the donor's local steps
  reject_round = 10,  ///< the proposed round has begun here: the sender is in `round`
};
inline constexpr std::uint16_t kControlMessages = 11;
inline constexpr bool is_of_membership(ControlMessage message) {
  return message >= ControlMessage::link_lost;
}

struct ChunkHeader {
  int from = 0, to = 0;  ///< peers
  Round round = 0;
  Channel channel = 0;
  std::uint64_t offset = 0;  ///< values before this chunk in its message
  std::uint64_t total = 0;  ///< values of the whole message; of a control message, what it is about
  ControlMessage control = ControlMessage::none;
};

/// Part of a message, in memory that the lease holds until the chunk is destroyed; or a control
/// message.
struct Chunk {
  Chunk() = default;
  Chunk(const ChunkHeader& head_in, std::span<const float> values_in, Lease lease_in)
      : head(head_in), values(values_in), lease(std::move(lease_in)) {}

  ChunkHeader head;
  std::span<const float> values;
  Lease lease;
  std::uint64_t arrival =
      0;  ///< set where it is delivered: its number among all chunks that came to that peer
};

/// Bytes that a chunk's frame has on the wire beside its values: counted by simulated links too, so
/// that the bytes of a run are the same wherever it runs. net/ holds its frames to it.
inline constexpr std::size_t kFrameOverheadBytes = 72;

inline std::uint64_t frame_bytes(const Chunk& chunk) {
  return kFrameOverheadBytes + chunk.values.size_bytes();
}

/// One direction between two peers. Thread: the scheduler's.
class Link {
 public:
  virtual ~Link() = default;
  /// Takes the chunk over. Its values are read until it destroys the chunk: the lease ends when
  /// they may be overwritten. Never fails: a link that breaks reports it to its owner, who ends the
  /// run.
  virtual void send(Chunk chunk) = 0;
};

/// Where links deliver.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A chunk for `chunk.head.to`, in the order sent on its link. An error says how it breaks the
  /// protocol (a round that is past, a wrong length, a peer that nobody listens to), in words that
  /// name the sender; the link then ends the run. A receiver that is full keeps the lease: a link
  /// lends a bounded number of buffers, and reads on when one comes back.
  virtual Status deliver(Chunk chunk) = 0;
};

}  // namespace gossamer::gossip
