// Frames: what the bytes between two peers mean. Pure functions between a header's fields and its
// bytes (gossip.capnp), and the checks at the edge: no byte that a peer sends can trip an
// assertion, throw, or choose the size of an allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "gossip/links/link.hpp"

namespace gossamer::net {

enum class FrameKind : std::uint16_t {
  data = 1,
  heartbeat = 2,
  goodbye = 3,
  abort = 4,
  control = 5,
  statement = 6,
  running = 7,
  ack = 8  ///< how many frames that count have come, since the session began
};

/// Whether a frame is one of those that come once each, in order, though the connection break. Both
/// ends count them.
inline constexpr bool is_counted(FrameKind kind) {
  return kind != FrameKind::heartbeat && kind != FrameKind::abort && kind != FrameKind::ack;
}

/// Bytes before a frame's payload: magic, header length, header.
inline constexpr std::size_t kFrameHeaderBytes = 72;
static_assert(kFrameHeaderBytes == gossip::kFrameOverheadBytes,
              "simulated links count the bytes that real ones send");

/// Values of a data frame at most; whatever a machine's own net.chunk_kib is, it takes chunks up to
/// here.
inline constexpr std::size_t kMaxChunkBytes = std::size_t{4} << 20;
/// A sentence that ends a run at most; longer ones are cut.
inline constexpr std::size_t kMaxAbortBytes = 2048;
/// What processes tell each other before they begin (Network::confer), at most.
inline constexpr std::size_t kMaxStatementBytes = 65536;

/// A header's fields but the checksum. Of an abort, `round` is the ErrorKind; of a note, `offset`
/// is the gossip::Note; of `received`, `round` is the count.
struct FrameHeader {
  FrameKind kind = FrameKind::heartbeat;
  std::uint32_t run = 0;
  int from = 0, to = 0;
  std::uint64_t round = 0;
  gossip::Channel channel = 0;
  std::uint64_t offset = 0, total = 0;  ///< values
  std::uint32_t payload_bytes = 0;

  bool operator==(const FrameHeader&) const = default;
};

/// A header as read: the checksum is compared when the payload is there.
struct CheckedHeader {
  FrameHeader head;
  std::uint64_t checksum = 0;
};

/// Who speaks on a connection, and in which run: what every header on it must say.
struct FrameParties {
  std::uint32_t run = 0;
  int from = 0, to = 0;
};

/// The run id as headers carry it.
std::uint32_t short_run(const std::string& run_id);

/// What a header's checksum must be.
std::uint64_t frame_checksum(const FrameHeader& head, std::span<const std::byte> payload);
/// The header's own share of it; frame_checksum = header_checksum ^ hash64(payload).
std::uint64_t header_checksum(const FrameHeader& head);

/// Writes the frame's first kFrameHeaderBytes bytes.
void encode_header(const FrameHeader& head, std::uint64_t checksum,
                   std::span<std::byte, kFrameHeaderBytes> bytes);

/// Reads and checks them: magic, length, one segment within traversal and nesting limits, known
/// kind, type and codec, the right run and peers, a payload within its kind's limit and within its
/// message. The error says what is wrong, without naming the peer. Any thread; never throws.
Result<CheckedHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                    const FrameParties& parties);

}  // namespace gossamer::net
