// The interface of a link, which carries values from one peer to another. A message (a row, or a
// part of one) travels as chunks, in order; a link moves chunks and knows nothing of rounds or
// mixing. Implementations: gossip/links/simulated_link.hpp (in one process, with or without
// simulated latency) and net/ (TCP).
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
/// link. The first group belongs to the policies, the second to membership
/// (gossip/membership/), but for `waiting`, of gossip/exchange/row_deadline.hpp.
enum class ControlMessage : std::uint16_t {
  none = 0,            ///< the chunk carries values
  commit = 1,          ///< the exchange of `round` on this edge counts
  decline = 2,         ///< exchanges up to `round` that were not committed before do not count
  query = 3,           ///< the sender stops waiting: decide the exchange of `round` now
  skip = 4,            ///< the sender takes part in no undecided exchange up to `round`
  finished = 5,        ///< the sender has done all of its rounds, `round` of them
  link_lost = 6,       ///< `link_state`: an end lost its link; rows are reinitialised n rounds
                       ///< after `round`
  link_restored = 7,   ///< `link_state`: the link takes effect from `round` on
  resync = 8,          ///< a restored connection; the sender is in `round`
  request_state = 9,   ///< a restored connection; the sender joins and needs a row to begin with
  propose_round = 10,  ///< let the link take effect in `round`; the donor has done `donor_steps`
  reject_round = 11,   ///< the link can take effect here in the round after `round` at the earliest
  catch_up = 12,       ///< peers that are connected to the sender leave out the rounds from `round`
                       ///< up to `resumes_at`
  waiting = 13,        ///< the sender waits for the rows of others: `chain`
  change_begun = 14,   ///< a peer has begun `round`, from which on other peers take part; or one
                       ///< after which it gives the receiver, which joins, the rows that it needs
  participant = 15,    ///< of an open run: from `round` on the peer `link_state.end` takes part, if
                       ///< `link_state.version` is odd, or no part
  offer_round = 16,    ///< of an open run, to a peer that joins: let the link take effect in
                       ///< `round`, from which on it takes part
};
inline constexpr std::uint16_t kControlMessages = 17;
/// A restored link takes effect at most this many rounds after the rounds of its ends, so the round
/// of a control message lies at most this far beyond the last round of the run.
inline constexpr Round kLargestMargin = Round{1} << 20;
inline constexpr bool is_of_membership(ControlMessage message) {
  return (message >= ControlMessage::link_lost && message <= ControlMessage::catch_up) ||
         message == ControlMessage::change_begun || message == ControlMessage::participant ||
         message == ControlMessage::offer_round;
}

inline constexpr bool has_link_state(ControlMessage message) {
  return message == ControlMessage::link_lost || message == ControlMessage::link_restored;
}

/// The state of one end of a link. Each end of a link has a state and a version of its own.
struct LinkState {
  int end = 0, neighbour = 0;      ///< the peer whose state this is, and the peer at the other end;
                                   ///< 0 to 65,535
  std::uint32_t version = 0;       ///< changes of the state so far: odd if the link is lost
  bool reachability_only = false;  ///< the state changes which peers are reachable; rows are not
                                   ///< reinitialised because of it

  bool operator==(const LinkState&) const = default;
};

/// More local steps than a node can do, and few enough to count on from there.
inline constexpr std::uint64_t kMostLocalSteps = std::uint64_t{1} << 53;

/// A field that a kind of chunk does not use is zero.
struct ChunkHeader {
  int from = 0, to = 0;  ///< peers
  Round round = 0;
  Channel channel = 0;       ///< of chunks with values, and of the policies' control messages
  std::uint64_t offset = 0;  ///< values before this chunk in its message
  std::uint64_t total = 0;   ///< values of the whole message
  ControlMessage control = ControlMessage::none;
  LinkState link_state = {};      ///< of link_lost and link_restored
  std::uint64_t donor_steps = 0;  ///< local steps that the donor has done, kMostLocalSteps at most;
                                  ///< of propose_round
  Round resumes_at = 0;           ///< of catch_up: the first round that is not left out
  std::uint8_t chain = 0;  ///< of waiting: peers that wait one behind the other, the sender first
};

/// The header of a control message; `channel` is that of a policy's.
inline ChunkHeader control_header(int from, int to, ControlMessage message, Round round,
                                  Channel channel = 0) {
  ChunkHeader header{from, to, round, channel};
  header.control = message;
  return header;
}

/// Part of a message, in memory that the lease holds until the chunk is destroyed; or a control
/// message.
struct Chunk {
  Chunk() = default;
  Chunk(const ChunkHeader& header_in, std::span<const float> values_in, Lease lease_in)
      : header(header_in), values(values_in), lease(std::move(lease_in)) {}

  ChunkHeader header;
  std::span<const float> values;
  Lease lease;
  std::uint64_t arrival =
      0;  ///< set at delivery: its number among all chunks that arrived at that peer
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
  /// Takes ownership of the chunk. Its values are read until the link destroys the chunk: the lease
  /// ends when they may be overwritten. Never fails: a link that breaks reports it to its owner.
  virtual void send(Chunk chunk) = 0;
  /// Whether the owner of a chunk that this link still reads waits to write: the receiver has not
  /// taken it.
  virtual bool delays_writer() const { return false; }
};

/// Receives the chunks of links.
class Receiver {
 public:
  virtual ~Receiver() = default;
  /// A chunk for `chunk.header.to`, in the order sent on its link. An error says how it breaks the
  /// protocol (a round that is past, a wrong length, a peer that is not hosted here) and names the
  /// sender; the link is then lost, or the run ends. A receiver that is full keeps the lease: a
  /// link has a bounded number of buffers, and continues to read when one is released.
  virtual Status deliver(Chunk chunk) = 0;
};

}  // namespace gossamer::gossip
