#include "net/wire/frame.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "net/wire/gossip.capnp.h"

namespace gossamer::net {

namespace {

constexpr std::uint32_t kFrameMagic = 0x66534F47;  // "GOSf"
constexpr std::size_t kHeaderWords = 7;            // the root pointer and six words of fields
using Segment = std::array<capnp::word, kHeaderWords>;

// Little-endian, as all supported machines are.
struct Prefix {
  std::uint32_t magic;
  std::uint32_t header_words;
  std::uint64_t checksum;  // XXH3-64 of the segment, xor XXH3-64 of the payload
};
static_assert(sizeof(Prefix) + sizeof(Segment) == kFrameHeaderBytes);

Error bad(std::string what) { return {ErrorKind::lost_peer, std::move(what)}; }

std::uint64_t hash_of(const Segment& segment) { return hash64(std::as_bytes(std::span(segment))); }

// One encoder for each kind.

using Builder = wire::FrameHeader::Builder;
using Reader = wire::FrameHeader::Reader;

/// The fields of a chunk, in the group of either kind that has them.
template <class Fields>
void encode_chunk(const DataFrame& chunk, Fields fields) {
  fields.setRound(chunk.round);
  fields.setChannel(chunk.channel);
  fields.setOffset(chunk.offset);
  fields.setTotal(chunk.total);
}

void encode(const DataFrame& data, Builder header) { encode_chunk(data, header.initData()); }

void encode(const HeartbeatFrame&, Builder header) { header.setHeartbeat(); }
void encode(const GoodbyeFrame&, Builder header) { header.setGoodbye(); }
void encode(const ContributionFrame&, Builder header) { header.setContribution(); }
void encode(const RunningFrame&, Builder header) { header.setRunning(); }

void encode(const AbortFrame& abort, Builder header) {
  header.initAbort().setErrorKind(static_cast<std::uint16_t>(abort.error));
}

void encode(const ControlFrame& control, Builder header) {
  auto fields = header.initControl();
  fields.setMessage(static_cast<std::uint16_t>(control.message));
  fields.setRound(control.round);
  fields.setChannel(control.channel);
  fields.setArgument(control.argument);
  fields.setChain(control.chain);
  const gossip::LinkState& link = control.link_state;
  fields.setLinkEnd(static_cast<std::uint16_t>(link.end));
  fields.setLinkNeighbour(static_cast<std::uint16_t>(link.neighbour));
  fields.setLinkVersion(link.version);
  fields.setReachabilityOnly(link.reachability_only);
}

void encode(const AckFrame& ack, Builder header) {
  auto fields = header.initAck();
  fields.setReceived(ack.received);
  fields.setSent(ack.sent);
  fields.setReleased(ack.released);
}

void encode(const OfferFrame& offer, Builder header) {
  auto fields = header.initOffer();
  fields.setProcess(offer.memory.process);
  fields.setDescriptor(offer.memory.descriptor);
  fields.setBytes(offer.memory.bytes);
  fields.setToken(offer.memory.token);
}

void encode(const MappedFrame&, Builder header) { header.setMapped(); }

void encode(const LentFrame& lent, Builder header) { encode_chunk(lent.chunk, header.initLent()); }

void encode(const FiguresFrame& figures, Builder header) {
  auto fields = header.initFigures();
  fields.setAsker(figures.asker);
  fields.setWish(figures.wish);
}

// One decoder for each kind that has fields.

template <class Fields>
DataFrame decode_chunk(Fields fields) {
  return {fields.getRound(), fields.getChannel(), fields.getOffset(), fields.getTotal()};
}

/// A kind of error that this version does not know is read as lost_peer.
AbortFrame decode_abort(wire::FrameHeader::Abort::Reader fields) {
  using enum ErrorKind;
  for (const ErrorKind kind :
       {internal, invalid, data, join_timeout, lost_peer, rejected, network, diverged, interrupted})
    if (fields.getErrorKind() == static_cast<std::uint16_t>(kind)) return {kind};
  return {lost_peer};
}

ControlFrame decode_control(wire::FrameHeader::Control::Reader fields) {
  ControlFrame control;
  control.message = static_cast<gossip::ControlMessage>(fields.getMessage());
  control.round = fields.getRound();
  control.channel = fields.getChannel();
  control.argument = fields.getArgument();
  control.chain = fields.getChain();
  control.link_state = {fields.getLinkEnd(), fields.getLinkNeighbour(), fields.getLinkVersion(),
                        fields.getReachabilityOnly()};
  return control;
}

AckFrame decode_ack(wire::FrameHeader::Ack::Reader fields) {
  return {fields.getReceived(), fields.getSent(), fields.getReleased()};
}

OfferFrame decode_offer(wire::FrameHeader::Offer::Reader fields) {
  return {{fields.getProcess(), fields.getDescriptor(), fields.getBytes(), fields.getToken()}};
}

FiguresFrame decode_figures(wire::FrameHeader::Figures::Reader fields) {
  return {fields.getAsker(), fields.getWish()};
}

/// Nothing if the kind is unknown.
std::optional<FrameBody> decode_body(Reader header) {
  switch (header.which()) {
    case wire::FrameHeader::DATA: return decode_chunk(header.getData());
    case wire::FrameHeader::HEARTBEAT: return HeartbeatFrame{};
    case wire::FrameHeader::GOODBYE: return GoodbyeFrame{};
    case wire::FrameHeader::ABORT: return decode_abort(header.getAbort());
    case wire::FrameHeader::CONTROL: return decode_control(header.getControl());
    case wire::FrameHeader::CONTRIBUTION: return ContributionFrame{};
    case wire::FrameHeader::RUNNING: return RunningFrame{};
    case wire::FrameHeader::ACK: return decode_ack(header.getAck());
    case wire::FrameHeader::OFFER: return decode_offer(header.getOffer());
    case wire::FrameHeader::MAPPED: return MappedFrame{};
    case wire::FrameHeader::LENT: return LentFrame{decode_chunk(header.getLent())};
    case wire::FrameHeader::FIGURES: return decode_figures(header.getFigures());
    case wire::FrameHeader::UNKNOWN: break;
  }
  return std::nullopt;
}

// One check for each kind with fields or a payload that can be wrong.

Status check_payload(const char* name, std::size_t bytes, std::size_t limit) {
  if (bytes <= limit) return {};
  return bad(fmt::format("{} of {} bytes, where {} is the limit", name, bytes, limit));
}

/// Whether a chunk of so many values lies within its message.
Status check_range(std::uint64_t offset, std::uint64_t total, std::uint64_t values) {
  if (offset <= total && values <= total - offset) return {};
  return bad(fmt::format("a chunk of {} values at {} of a message of {}", values, offset, total));
}

Status check(const DataFrame& data, std::uint32_t payload_bytes) {
  GOSSAMER_TRY_STATUS(check_payload("a chunk", payload_bytes, kMaxChunkBytes));
  if (payload_bytes % sizeof(float) != 0)
    return bad(
        fmt::format("a chunk of {} bytes, which is no whole number of values", payload_bytes));
  const std::uint64_t values = payload_bytes / sizeof(float);
  GOSSAMER_TRY_STATUS(check_range(data.offset, data.total, values));
  if (values == 0 && data.total != 0) return bad("an empty chunk of a message that is not empty");
  return {};
}

Status check(const ControlFrame& control, std::uint32_t payload_bytes) {
  if (payload_bytes != 0) return bad("a control message with a payload");
  const auto message = static_cast<std::uint16_t>(control.message);
  if (message == 0 || message >= gossip::kControlMessages)
    return bad(fmt::format("a control message of the unknown kind {}", message));
  return {};
}

Status check(const AbortFrame&, std::uint32_t payload_bytes) {
  return check_payload("an abort", payload_bytes, kMaxAbortBytes);
}

Status check(const ContributionFrame&, std::uint32_t payload_bytes) {
  return check_payload("a contribution", payload_bytes, kMaxContributionBytes);
}

Status check(const LentFrame&, std::uint32_t payload_bytes) {
  if (payload_bytes == sizeof(LentPlace)) return {};
  return bad(fmt::format("a lent chunk with a payload of {} bytes, where {} say its place",
                         payload_bytes, sizeof(LentPlace)));
}

Status check(const FiguresFrame&, std::uint32_t payload_bytes) {
  return check_payload("figures", payload_bytes, kMaxFiguresBytes);
}

/// Every other kind.
template <class Body>
Status check(const Body&, std::uint32_t payload_bytes) {
  return payload_bytes == 0 ? Status() : Status(bad("a payload in a frame that has none"));
}

Status check(const FrameHeader& header, const FrameParties& parties) {
  if (header.run != parties.run) return bad("a frame of another run");
  if (header.from != parties.from || header.to != parties.to)
    return bad(fmt::format("a frame from peer {} to peer {} on the connection from {} to {}",
                           header.from, header.to, parties.from, parties.to));
  return std::visit([&](const auto& body) { return check(body, header.payload_bytes); },
                    header.body);
}

/// The header in a segment of any bytes. Throws kj::Exception if they are no sound Cap'n Proto.
Result<FrameHeader> decode_segment(const Segment& segment) {
  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = 2 * kHeaderWords;
  limits.nestingLimit = 1;
  const kj::ArrayPtr<const capnp::word> segments[] = {kj::arrayPtr(segment.data(), kHeaderWords)};
  capnp::SegmentArrayMessageReader reader(kj::arrayPtr(segments, 1), limits);
  const auto fields = reader.getRoot<wire::FrameHeader>();

  auto body = decode_body(fields);
  if (!body) return bad("a frame of an unknown kind");
  FrameHeader header;
  header.run = fields.getRun();
  header.from = static_cast<int>(fields.getFrom());
  header.to = static_cast<int>(fields.getTo());
  header.payload_bytes = fields.getPayloadBytes();
  header.body = std::move(*body);
  return header;
}

}  // namespace

std::uint32_t short_run(const std::string& run_id) {
  return static_cast<std::uint32_t>(hash64(std::as_bytes(std::span(run_id))));
}

void encode_header(const FrameHeader& header, std::uint64_t payload_hash,
                   std::span<std::byte, kFrameHeaderBytes> bytes) {
  Segment segment = {};
  capnp::MallocMessageBuilder message(kj::arrayPtr(segment.data(), kHeaderWords),
                                      capnp::AllocationStrategy::FIXED_SIZE);
  auto fields = message.initRoot<wire::FrameHeader>();
  fields.setRun(header.run);
  fields.setFrom(static_cast<std::uint32_t>(header.from));
  fields.setTo(static_cast<std::uint32_t>(header.to));
  fields.setPayloadBytes(header.payload_bytes);
  std::visit([&](const auto& body) { encode(body, fields); }, header.body);

  const auto segments = message.getSegmentsForOutput();
  GOSSAMER_CHECK(segments.size() == 1 && segments[0].size() == kHeaderWords,
                 "the header does not have its fixed size");
  const Prefix prefix{kFrameMagic, kHeaderWords, hash_of(segment) ^ payload_hash};
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
  std::memcpy(bytes.data() + sizeof prefix, segment.data(), sizeof segment);
}

std::string encode_place(const LentPlace& place) {
  std::string payload(sizeof place, '\0');
  std::memcpy(payload.data(), &place, sizeof place);
  return payload;
}

Result<LentPlace> decode_place(std::uint64_t offset, std::uint64_t total,
                               const std::string& payload, std::uint64_t bytes) {
  LentPlace place;
  GOSSAMER_CHECK(payload.size() == sizeof place, "decode_header() has checked the length");
  std::memcpy(&place, payload.data(), sizeof place);
  GOSSAMER_TRY_STATUS(check_range(offset, total, place.values));
  if (place.values == 0) return bad("a lent chunk without values");
  if (place.values > kMaxChunkBytes / sizeof(float))
    return bad(fmt::format("a lent chunk of {} values, where {} bytes are the limit", place.values,
                           kMaxChunkBytes));
  if (place.begin % sizeof(float) != 0 || place.begin > bytes ||
      place.values > (bytes - place.begin) / sizeof(float))
    return bad(fmt::format("a lent chunk of {} values at byte {} of {}", place.values, place.begin,
                           bytes));
  return place;
}

Result<DecodedHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                    const FrameParties& parties) {
  Prefix prefix;
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  if (prefix.magic != kFrameMagic) return bad("bytes that are no frame");
  if (prefix.header_words != kHeaderWords)
    return bad(
        fmt::format("a header of {} words instead of {}", prefix.header_words, kHeaderWords));
  Segment segment;
  std::memcpy(segment.data(), bytes.data() + sizeof prefix, sizeof segment);
  try {
    GOSSAMER_TRY(FrameHeader header, decode_segment(segment));
    GOSSAMER_TRY_STATUS(check(header, parties));
    return DecodedHeader{std::move(header), prefix.checksum ^ hash_of(segment)};
  } catch (const kj::Exception& damage) {
    return bad(fmt::format("a header that cannot be read ({})", damage.getDescription().cStr()));
  }
}

}  // namespace gossamer::net
