// What carries values from one peer to another. A message (a row, or a part of one) travels as chunks, in order; a link
// moves chunks and knows nothing of rounds or mixing. Implementations: gossip/sim/ (in one process, with or without
// simulated latency), net/ (TCP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "gossip/lease.hpp"

namespace gossamer::gossip {

using Round = std::uint64_t;

/// A stream of messages between two peers; the receiver takes each channel's messages in the order they were sent.
using Channel = std::uint16_t;

/// What a chunk without values says; it keeps its place among those that the link carries.
enum class Note : std::uint16_t {
  none = 0,       ///< it has values
  counted = 1,    ///< policy deadline: the exchange of `round` on this edge counts
  declined = 2,   ///< up to `round`, those on which nothing was said before do not
  withdrawn = 3,  ///< the sender wishes not to wait any longer for what is said of `round`
  skipping = 4,   ///< up to `round`, the sender takes part in no exchange on which nothing was said before
  // Of membership (gossip/membership.hpp).
  link_lost = 5,  ///< a link was lost; of `round`, for what begins again; `total`: whose end, and its changes; `channel`: old news?
  link_back = 6,  ///< it counts again, from `round` on; the same
  here = 7,       ///< a link that was lost is there again; the sender is in `round`
  joins = 8,      ///< the same, but the sender is in no round yet: it asks for a row to begin with
  enter = 9,      ///< the sender wishes the link to count from `round` on; to one that joins, `total` is its number of local steps
  late = 10,      ///< that was not possible: the sender is in `round` already
};
inline constexpr std::uint16_t kNotes = 11;
inline constexpr bool is_of_membership(Note note) { return note >= Note::link_lost; }

struct ChunkHead {
  int from = 0, to = 0;  ///< peers
  Round round = 0;
  Channel channel = 0;
  std::uint64_t offset = 0;  ///< values before this chunk in its message
  std::uint64_t total = 0;   ///< values of the whole message; of a note, what it is about
  Note note = Note::none;
};

/// Part of a message, in memory that the lease holds until the chunk is destroyed; or a note.
struct Chunk {
  Chunk() = default;
  Chunk(const ChunkHead& head_in, std::span<const float> values_in, Lease lease_in)
      : head(head_in), values(values_in), lease(std::move(lease_in)) {}

  ChunkHead head;
  std::span<const float> values;
  Lease lease;
  std::uint64_t arrival = 0;  ///< set where it is delivered: its number among all chunks that came to that peer
};

/// Bytes that a chunk's frame has on the wire beside its values: counted by simulated links too, so that the bytes of a run
/// are the same wherever it runs. net/ holds its frames to it.
inline constexpr std::size_t kFrameOverheadBytes = 72;

inline std::uint64_t frame_bytes(const Chunk& chunk) { return kFrameOverheadBytes + chunk.values.size_bytes(); }

/// One direction between two peers. Thread: the scheduler's.
class Link {
 public:
  virtual ~Link() = default;
  /// Takes the chunk over. Its values are read until it destroys the chunk: the lease ends when they may be overwritten.
  /// Never fails: a link that breaks reports it to its owner, who ends the run.
  virtual void send(Chunk chunk) = 0;
};

/// Where links deliver.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A chunk for `chunk.head.to`, in the order sent on its link. An error says how it breaks the protocol (a round that is
  /// past, a wrong length, a peer that nobody listens to), in words that name the sender; the link then ends the run. A
  /// receiver that is full keeps the lease: a link lends a bounded number of buffers, and reads on when one comes back.
  virtual Status deliver(Chunk chunk) = 0;
};

}  // namespace gossamer::gossip
