// Frames: the units in which two peers exchange data over a connection. This file declares the
// kinds of frames with their fields, and converts a frame's header to bytes and back (gossip.capnp,
// docs/WIRE.md).
//
// The functions are pure. No byte that a peer sends can trip an assertion, throw, or choose the
// size of an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "base/shared_memory.hpp"
#include "gossip/link.hpp"

namespace gossamer::net {

/// The number of a kind is its union tag in gossip.capnp, and one more than its place in FrameBody.
enum class FrameKind : std::uint16_t {
  data = 1,
  heartbeat = 2,
  goodbye = 3,
  abort = 4,
  control = 5,
  contribution = 6,
  running = 7,
  ack = 8,
  offer = 9,
  mapped = 10,
  lent = 11,
  figures = 12,
};

/// A chunk of a message; its values are the payload.
struct DataFrame {
  gossip::Round round = 0;
  gossip::Channel channel = 0;
  std::uint64_t offset = 0;  ///< values before this chunk in its message
  std::uint64_t total = 0;   ///< values of the whole message

  bool operator==(const DataFrame&) const = default;
};

/// Keeps a connection from looking dead while there is nothing else to send.
struct HeartbeatFrame {
  bool operator==(const HeartbeatFrame&) const = default;
};

/// The last counted frame of its sender.
struct GoodbyeFrame {
  bool operator==(const GoodbyeFrame&) const = default;
};

/// The run ends; the payload is the reason as text.
struct AbortFrame {
  ErrorKind error = ErrorKind::lost_peer;

  bool operator==(const AbortFrame&) const = default;
};

/// A control message of the gossip protocol (gossip/link.hpp). A field that the message does
/// not use is zero.
struct ControlFrame {
  gossip::ControlMessage message = gossip::ControlMessage::none;
  gossip::Round round = 0;
  gossip::Channel channel = 0;
  gossip::LinkState link_state = {};
  std::uint64_t argument = 0;  ///< of propose_round: donor_steps; of catch_up: resumes_at
  std::uint8_t chain = 0;

  bool operator==(const ControlFrame&) const = default;
};

/// A contribution to the all-gather at the start of a run; the payload is its text.
struct ContributionFrame {
  bool operator==(const ContributionFrame&) const = default;
};

/// The network of the sender has begun its rounds.
struct RunningFrame {
  bool operator==(const RunningFrame&) const = default;
};

/// Acknowledges counted frames. Counts begin with the session and survive its connections.
struct AckFrame {
  std::uint64_t received = 0;  ///< counted frames that the sender of this frame has received
  std::uint64_t sent = 0;      ///< counted frames that it has put in its send queue
  std::uint64_t released = 0;  ///< of those received, the first ones whose values it reads no more

  bool operator==(const AckFrame&) const = default;
};

/// Offers the memory of the sender to a process of the same machine, once a session.
struct OfferFrame {
  SharedMemoryName memory;

  bool operator==(const OfferFrame&) const = default;
};

/// The sender can read the memory that it was offered.
struct MappedFrame {
  bool operator==(const MappedFrame&) const = default;
};

/// A chunk of a message that stays in the memory of the sender, until the receiver has released it.
/// The payload says where (LentPlace).
struct LentFrame {
  DataFrame chunk;

  bool operator==(const LentFrame&) const = default;
};

/// Where the values of a lent chunk lie.
struct LentPlace {
  std::uint64_t begin = 0;   ///< bytes before the first value in the memory that was offered
  std::uint64_t values = 0;  ///< 1 at least

  bool operator==(const LentPlace&) const = default;
};

/// Figures of nodes for pages of the run, which the payload has (peer/watch/figure_exchange.hpp).
struct FiguresFrame {
  std::uint32_t asker = 0;  ///< a node of a process that wishes for figures
  std::uint64_t wish = 0;   ///< number of the wish; a later one of the asker is higher

  bool operator==(const FiguresFrame&) const = default;
};

using FrameBody = std::variant<DataFrame, HeartbeatFrame, GoodbyeFrame, AbortFrame, ControlFrame,
                               ContributionFrame, RunningFrame, AckFrame, OfferFrame, MappedFrame,
                               LentFrame, FiguresFrame>;

/// Whether a frame is delivered exactly once and in order across connections. Both ends count these
/// frames.
inline constexpr bool is_counted(FrameKind kind) {
  return kind != FrameKind::heartbeat && kind != FrameKind::abort && kind != FrameKind::ack;
}

/// Bytes before a frame's payload: magic, header length, checksum, header.
inline constexpr std::size_t kFrameHeaderBytes = 72;
static_assert(kFrameHeaderBytes == gossip::kFrameOverheadBytes,
              "simulated links count the bytes that real ones send");

/// The largest payload of a data frame. A process accepts chunks up to this size whatever its own
/// net.chunk_kib is.
inline constexpr std::size_t kMaxChunkBytes = std::size_t{4} << 20;
/// The largest payload of an abort frame; longer reasons are cut.
inline constexpr std::size_t kMaxAbortBytes = 2048;
/// The largest contribution to an all-gather.
inline constexpr std::size_t kMaxContributionBytes = 65536;
/// The largest payload of a figures frame.
inline constexpr std::size_t kMaxFiguresBytes = 65536;

/// All of a header but the checksum.
struct FrameHeader {
  std::uint32_t run = 0;
  int from = 0, to = 0;
  std::uint32_t payload_bytes = 0;
  FrameBody body = HeartbeatFrame{};

  FrameKind kind() const { return static_cast<FrameKind>(body.index() + 1); }
  bool counted() const { return is_counted(kind()); }
  /// The body of a frame of that kind, or null.
  const DataFrame* data() const { return std::get_if<DataFrame>(&body); }
  const ControlFrame* control() const { return std::get_if<ControlFrame>(&body); }
  const LentFrame* lent() const { return std::get_if<LentFrame>(&body); }

  bool operator==(const FrameHeader&) const = default;
};

/// A header as read. The checksum covers header and payload, so it can be compared only when the
/// payload is there.
struct DecodedHeader {
  FrameHeader header;
  std::uint64_t payload_hash = 0;  ///< XXH3-64 that the payload must have if the frame is intact
};

/// What every header on a connection must name.
struct FrameParties {
  std::uint32_t run = 0;  ///< short_run() of the run id
  int from = 0, to = 0;   ///< peers
};

/// The run id as headers carry it.
std::uint32_t short_run(const std::string& run_id);

/// Writes the first kFrameHeaderBytes bytes of a frame. `payload_hash`: XXH3-64 of its payload.
void encode_header(const FrameHeader& header, std::uint64_t payload_hash,
                   std::span<std::byte, kFrameHeaderBytes> bytes);

/// The payload of a lent frame.
std::string encode_place(const LentPlace& place);
/// The place in such a payload, whose length decode_header() has checked. Error (lost_peer): no
/// value, not at the boundary of a value, beyond the end of the message of `total` values, of which
/// the chunk follows the first `offset`, or of memory of `bytes`, or above kMaxChunkBytes.
Result<LentPlace> decode_place(std::uint64_t offset, std::uint64_t total,
                               const std::string& payload, std::uint64_t bytes);

/// Reads and checks a header: magic, length, one segment within traversal and nesting limits, a
/// known kind, the right run and peers, fields within their ranges, a payload within its kind's
/// limit and within its message. The error says what is wrong, without naming the peer. Any thread;
/// never throws.
Result<DecodedHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                    const FrameParties& parties);

}  // namespace gossamer::net
