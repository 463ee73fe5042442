#include "net/wire/frame.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "net/wire/gossip.capnp.h"

namespace gossamer::net {

namespace {

constexpr std::uint32_t kMagic = 0x66534F47;  // "GOSf"
constexpr std::size_t kHeaderWords = 8;       // the root pointer and seven words of fields
static_assert(8 + kHeaderWords * sizeof(capnp::word) == kFrameHeaderBytes);

Error bad(std::string what) { return {ErrorKind::lost_peer, std::move(what)}; }

/// The fields of a header whose bytes are one sound Cap'n Proto segment. Throws kj::Exception if
/// they are not.
CheckedHeader read_fields(kj::ArrayPtr<const capnp::word> segment) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = 2 * kHeaderWords;
  limits.nestingLimit = 1;
  const kj::ArrayPtr<const capnp::word> segments[] = {segment};
  capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments, 1), limits);
  const auto fields = reader.getRoot<wire::FrameHeader>();

  CheckedHeader result;
  FrameHeader& head = result.head;
  head.kind = static_cast<FrameKind>(fields.getKind());
  head.run = fields.getRun();
  head.from = static_cast<int>(fields.getFrom());
  head.to = static_cast<int>(fields.getTo());
  head.round = fields.getRound();
  head.channel = fields.getChannel();
  head.offset = fields.getOffset();
  head.total = fields.getTotal();
  head.payload_bytes = fields.getPayloadBytes();
  result.checksum = fields.getChecksum();
  const auto wanted = head.kind == FrameKind::data ? wire::FrameHeader::DType::FLOAT32
                                                   : wire::FrameHeader::DType::NONE;
  if (fields.getDtype() != wanted || fields.getCodec() != wire::FrameHeader::Codec::RAW)
    head.kind = FrameKind{
        0};  // a type or a codec that this version does not speak: as good as an unknown kind
  return result;
}

Status check_data(const FrameHeader& head) {
  if (head.payload_bytes > kMaxChunkBytes)
    return bad(fmt::format("a chunk of {} bytes, where {} is the limit", head.payload_bytes,
                           kMaxChunkBytes));
  if (head.payload_bytes % sizeof(float) != 0)
    return bad(
        fmt::format("a chunk of {} bytes, which is no whole number of values", head.payload_bytes));
  const std::uint64_t values = head.payload_bytes / sizeof(float);
  if (head.offset > head.total || values > head.total - head.offset)
    return bad(fmt::format("a chunk of {} values at {} of a message of {}", values, head.offset,
                           head.total));
  if (values == 0 && head.total != 0) return bad("an empty chunk of a message that is not empty");
  return {};
}

Status check(const FrameHeader& head, const FrameParties& parties) {
  if (head.run != parties.run) return bad("a frame of another run");
  if (head.from != parties.from || head.to != parties.to)
    return bad(fmt::format("a frame from peer {} to peer {} on the connection from {} to {}",
                           head.from, head.to, parties.from, parties.to));
  switch (head.kind) {
    case FrameKind::data: return check_data(head);
    case FrameKind::heartbeat:
    case FrameKind::goodbye:
    case FrameKind::running:
    case FrameKind::ack:
      if (head.payload_bytes != 0) return bad("a payload where none belongs");
      return {};
    case FrameKind::control:
      if (head.payload_bytes != 0) return bad("a note with a payload");
      if (head.offset == 0 || head.offset >= gossip::kControlMessages)
        return bad("a note that says nothing known");
      return {};
    case FrameKind::abort:
      if (head.payload_bytes > kMaxAbortBytes)
        return bad(fmt::format("an abort of {} bytes, where {} is the limit", head.payload_bytes,
                               kMaxAbortBytes));
      return {};
    case FrameKind::statement:
      if (head.payload_bytes > kMaxStatementBytes)
        return bad(fmt::format("a statement of {} bytes, where {} is the limit", head.payload_bytes,
                               kMaxStatementBytes));
      return {};
  }
  return bad("a frame of an unknown kind");
}

}  // namespace

std::uint32_t short_run(const std::string& run_id) {
  return static_cast<std::uint32_t>(hash64(std::as_bytes(std::span(run_id))));
}

std::uint64_t header_checksum(const FrameHeader& head) {
  const std::array<std::uint64_t, 7> fields = {
      static_cast<std::uint64_t>(head.kind) << 32 | head.channel,
      head.run,
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(head.from)) << 32 |
          static_cast<std::uint32_t>(head.to),
      head.round,
      head.offset,
      head.total,
      head.payload_bytes};
  return hash64(std::as_bytes(std::span(fields)));
}

std::uint64_t frame_checksum(const FrameHeader& head, std::span<const std::byte> payload) {
  return header_checksum(head) ^ hash64(payload);
}

void encode_header(const FrameHeader& head, std::uint64_t checksum,
                   std::span<std::byte, kFrameHeaderBytes> bytes) {
  capnp::word scratch[kHeaderWords] = {};
  capnp::MallocMessageBuilder message(kj::arrayPtr(scratch, kHeaderWords),
                                      capnp::AllocationStrategy::FIXED_SIZE);
  auto fields = message.initRoot<wire::FrameHeader>();
  fields.setKind(static_cast<wire::FrameHeader::Kind>(head.kind));
  fields.setRun(head.run);
  fields.setFrom(static_cast<std::uint32_t>(head.from));
  fields.setTo(static_cast<std::uint32_t>(head.to));
  fields.setRound(head.round);
  fields.setChannel(head.channel);
  fields.setOffset(head.offset);
  fields.setTotal(head.total);
  fields.setPayloadBytes(head.payload_bytes);
  fields.setChecksum(checksum);
  if (head.kind == FrameKind::data) fields.setDtype(wire::FrameHeader::DType::FLOAT32);

  const auto segments = message.getSegmentsForOutput();
  GOSSAMER_CHECK(segments.size() == 1 && segments[0].size() == kHeaderWords,
                 "the header does not have its fixed size");
  const std::uint32_t prefix[2] = {kMagic, kHeaderWords};
  std::memcpy(bytes.data(), prefix, sizeof prefix);
  std::memcpy(bytes.data() + sizeof prefix, segments[0].begin(),
              kHeaderWords * sizeof(capnp::word));
}

Result<CheckedHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                    const FrameParties& parties) {
  std::uint32_t prefix[2];
  std::memcpy(prefix, bytes.data(), sizeof prefix);
  if (prefix[0] != kMagic) return bad("bytes that are no frame");
  if (prefix[1] != kHeaderWords)
    return bad(fmt::format("a header of {} words, where {} are due", prefix[1], kHeaderWords));
  capnp::word segment[kHeaderWords];
  std::memcpy(segment, bytes.data() + sizeof prefix, sizeof segment);
  try {
    CheckedHeader result = read_fields(kj::arrayPtr(segment, kHeaderWords));
    GOSSAMER_TRY_STATUS(check(result.head, parties));
    return result;
  } catch (const kj::Exception& damage) {
    return bad(fmt::format("a header that cannot be read ({})", damage.getDescription().cStr()));
  }
}

}  // namespace gossamer::net
