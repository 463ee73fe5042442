// Frames without sockets: frames are read as they were written, and damaged, torn, oversized or
// invented ones are rejected with a reason.
#include <algorithm>

#include "base/philox.hpp"
#include "net/wire/frame_reader.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

const FrameParties kParties{short_run("run-1"), 3, 5};
constexpr std::size_t kKindOffset = 40;  // docs/WIRE.md

/// Feeds bytes to a reader in pieces of at most `piece` bytes, and keeps the frames that it
/// returns.
struct Stream {
  explicit Stream(std::size_t window = 2) : pool(window, [] {}) {}

  /// False if the reader rejected the bytes, or accepts no more because all buffers are leased.
  bool feed(std::span<const std::byte> bytes, std::size_t piece = SIZE_MAX) {
    while (!bytes.empty()) {
      if (!take()) return false;
      const auto areas = reader.areas();
      if (areas.empty()) return false;
      std::size_t limit = std::min(piece, bytes.size()), fed = 0;
      for (const Area& area : areas) {
        const std::size_t count = std::min(limit - fed, area.size);
        std::memcpy(area.data, bytes.data() + fed, count);
        fed += count;
      }
      reader.filled(fed);
      bytes = bytes.subspan(fed);
    }
    return take();
  }
  bool take() {
    for (;;) {
      auto frame = reader.next();
      if (!frame.ok()) {
        error = frame.error().message;
        return false;
      }
      if (!frame->has_value()) return true;
      headers.push_back((**frame).header);
      values.insert(values.end(), (**frame).values.begin(), (**frame).values.end());
      text += (**frame).text;
      if (keep) leases.push_back(std::move((**frame).lease));
    }
  }

  BufferPool pool;
  FrameReader reader{kParties, pool};
  std::vector<FrameHeader> headers;
  std::vector<float> values;
  std::string text, error;
  bool keep = false;
  std::vector<gossip::Lease> leases;
};

std::vector<std::byte> frame_of_data(std::size_t count, std::uint64_t damage = 0) {
  const Row row(count);
  return frame_bytes(data_header(3, 5, count), std::as_bytes(std::span(row.values)), damage);
}

FrameHeader header_of(const FrameBody& body) { return frame_header(3, 5, body); }

/// Several frames of all kinds, as they follow each other on a connection.
std::vector<std::byte> conversation() {
  std::vector<std::byte> all;
  auto add = [&all](const std::vector<std::byte>& bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  add(frame_of_data(5));
  add(frame_bytes(header_of(RunningFrame{}), {}));
  add(frame_bytes(header_of(HeartbeatFrame{}), {}));
  add(frame_of_data(300));
  add(frame_of_data(0));
  add(frame_bytes(header_of(AbortFrame{}), std::as_bytes(std::span("peer 9 was lost", 15))));
  add(frame_of_data(9000));
  add(frame_bytes(header_of(ContributionFrame{}), std::as_bytes(std::span("what I have", 11))));
  add(frame_bytes(header_of(FiguresFrame{4, 7}), std::as_bytes(std::span("figures", 7))));
  add(frame_bytes(header_of(GoodbyeFrame{}), {}));
  return all;
}

std::string refusal(const FrameHeader& header, std::size_t payload = 0) {
  Stream stream;
  stream.feed(frame_bytes(header, std::vector<std::byte>(payload)));
  return stream.error;
}

}  // namespace

TEST_CASE("a header of each kind is read as it was written") {
  constexpr std::uint64_t kMax = ~std::uint64_t{0};
  const gossip::LinkState link{65535, 65534, 0xFFFFFFFF, true};
  std::vector<FrameBody> bodies = {DataFrame{kMax, 65535, 10, 1000},
                                   HeartbeatFrame{},
                                   GoodbyeFrame{},
                                   ContributionFrame{},
                                   RunningFrame{},
                                   AckFrame{kMax, kMax - 1, kMax - 2},
                                   OfferFrame{{0xFFFFFFFF, 0xFFFFFFFE, kMax, kMax - 1}},
                                   MappedFrame{},
                                   LentFrame{{kMax, 65535, 10, 1000}},
                                   FiguresFrame{0xFFFFFFFF, kMax}};
  for (const ErrorKind kind : {ErrorKind::internal, ErrorKind::diverged, ErrorKind::interrupted})
    bodies.push_back(AbortFrame{kind});
  for (std::uint16_t message = 1; message < gossip::kControlMessages; ++message)
    bodies.push_back(ControlFrame{static_cast<gossip::ControlMessage>(message), kMax, 65535, link,
                                  kMax - message, static_cast<std::uint8_t>(255 - message)});
  for (const FrameBody& body : bodies) {
    FrameHeader header = header_of(body);
    if (header.data() != nullptr) header.payload_bytes = 400;
    if (header.lent() != nullptr) header.payload_bytes = sizeof(LentPlace);
    CAPTURE(static_cast<int>(header.kind()));
    std::array<std::byte, kFrameHeaderBytes> bytes;
    encode_header(header, 42, bytes);
    CHECK(bytes[kKindOffset] == static_cast<std::byte>(header.kind()));
    const auto read = decode_header(bytes, kParties);
    REQUIRE(read.ok());
    CHECK(read->header == header);
    CHECK(read->payload_hash == 42);
  }
}

TEST_CASE("a kind of error that this version does not know is read as a lost peer") {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode_header(header_of(AbortFrame{ErrorKind{99}}), 0, bytes);
  const auto read = decode_header(bytes, kParties);
  REQUIRE(read.ok());
  CHECK(std::get<AbortFrame>(read->header.body).error == ErrorKind::lost_peer);
}

TEST_CASE("a stream in pieces of any size gives the same frames") {
  const auto bytes = conversation();
  for (std::size_t piece : {1, 2, 3, 7, 8, 71, 72, 73, 1000, 16383, 16384, 16385, 1 << 20}) {
    Stream stream;
    REQUIRE(stream.feed(bytes, piece));
    CHECK(stream.headers.size() == 10);
    CHECK(stream.values.size() == 9305);
    CHECK(stream.values.back() == 8999 % 8191);
    CHECK(stream.text == "peer 9 was lostwhat I havefigures");
    CHECK_FALSE(stream.reader.inside_frame());
  }
}

TEST_CASE("headers with fields out of range are rejected") {
  CHECK(refusal(data_header(4, 5, 0)) ==
        "a frame from peer 4 to peer 5 on the connection from 3 to 5");
  CHECK(refusal(data_header(3, 6, 0)) ==
        "a frame from peer 3 to peer 6 on the connection from 3 to 5");
  FrameHeader other_run = data_header(3, 5, 0);
  ++other_run.run;
  CHECK(refusal(other_run) == "a frame of another run");
  CHECK(refusal(data_header(3, 5, 2), 3) ==
        "a chunk of 3 bytes, which is no whole number of values");
  CHECK(refusal(data_header(3, 5, 2), 12) == "a chunk of 3 values at 0 of a message of 2");
  CHECK(refusal(data_header(3, 5, 2, 3), 4) == "a chunk of 1 values at 3 of a message of 2");
  CHECK(refusal(data_header(3, 5, ~0ull, ~0ull), 4)
            .starts_with("a chunk of 1 values at 18446744073709551615"));
  CHECK(refusal(data_header(3, 5, 2), 0) == "an empty chunk of a message that is not empty");
  CHECK(refusal(data_header(3, 5, 2 << 20), (4 << 20) + 4) ==
        "a chunk of 4194308 bytes, where 4194304 is the limit");
  for (const FrameBody& body :
       {FrameBody(HeartbeatFrame{}), FrameBody(GoodbyeFrame{}), FrameBody(RunningFrame{}),
        FrameBody(AckFrame{3, 4}), FrameBody(OfferFrame{}), FrameBody(MappedFrame{})})
    CHECK(refusal(header_of(body), 1) == "a payload in a frame that has none");
  CHECK(refusal(header_of(AbortFrame{}), kMaxAbortBytes + 1) ==
        "an abort of 2049 bytes, where 2048 is the limit");
  CHECK(refusal(header_of(ContributionFrame{}), kMaxContributionBytes + 1) ==
        "a contribution of 65537 bytes, where 65536 is the limit");
  CHECK(refusal(header_of(FiguresFrame{}), kMaxFiguresBytes + 1) ==
        "figures of 65537 bytes, where 65536 is the limit");
  for (const std::uint16_t message :
       {std::uint16_t{0}, gossip::kControlMessages, std::uint16_t{77}})
    CHECK(refusal(header_of(ControlFrame{static_cast<gossip::ControlMessage>(message)})) ==
          fmt::format("a control message of the unknown kind {}", message));
  CHECK(refusal(header_of(ControlFrame{gossip::ControlMessage::commit}), 1) ==
        "a control message with a payload");
  for (const std::byte kind : {std::byte{0}, std::byte{77}}) {
    auto bytes = frame_bytes(header_of(HeartbeatFrame{}), {});
    bytes[kKindOffset] = kind;
    Stream stream;
    CHECK_FALSE(stream.feed(bytes));
    CHECK(stream.error == "a frame of an unknown kind");
  }
}

TEST_CASE("bytes that are no frame, or a damaged frame, are rejected") {
  Stream noise;
  CHECK_FALSE(noise.feed(garbage()));
  CHECK(noise.error == "bytes that are no frame");

  auto long_header = frame_of_data(1);
  long_header[4] = std::byte{200};
  Stream header;
  CHECK_FALSE(header.feed(long_header));
  CHECK(header.error == "a header of 200 words instead of 7");

  Stream damaged;
  CHECK_FALSE(damaged.feed(frame_of_data(10, 1)));
  CHECK(damaged.error == "a frame whose checksum does not match: it was damaged on the way");
}

TEST_CASE("a reader without a free buffer stops, and resumes when one is returned") {
  Stream stream(2);
  stream.keep = true;
  std::vector<std::byte> bytes;
  for (int i = 0; i < 3; ++i) {
    const auto frame = frame_of_data(100);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  stream.feed(bytes);
  CHECK(stream.headers.size() == 2);
  CHECK(stream.reader.areas().empty());
  stream.leases.pop_back();
  CHECK(stream.take());
  CHECK(stream.headers.size() == 3);
}

TEST_CASE("a buffer may be returned after its reader is destroyed") {
  gossip::Lease survivor;
  {
    Stream stream;
    stream.keep = true;
    stream.feed(frame_of_data(100));
    survivor = std::move(stream.leases.front());
  }
  survivor.end();
}

TEST_CASE("the sizes in a header cost no memory beyond the window") {
  FrameHeader header = data_header(3, 5, ~0ull);
  header.payload_bytes = kMaxChunkBytes;
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode_header(header, 0, bytes);
  Stream stream(2);
  stream.feed(bytes);
  CHECK(stream.pool.allocated_bytes() == kMaxChunkBytes);
  CHECK(stream.reader.inside_frame());
}

TEST_CASE("a stream with any one byte changed is rejected") {
  const auto sound = conversation();
  RandomStream random(7, kNoPeer, Purpose::test);
  int rejected = 0, tries = 0;
  for (std::size_t at = 0; at < sound.size(); at += at < 2000 ? 1 : 41) {
    for (std::uint32_t flip : {1u, 0x80u, 1 + random.below(255)}) {
      auto bytes = sound;
      bytes[at] ^= static_cast<std::byte>(flip);
      Stream stream;
      stream.feed(bytes, 1 + random.below(5000));
      // A changed length can leave the stream waiting for bytes that never come: the frame is then
      // neither rejected nor returned.
      rejected += !stream.error.empty() || stream.headers.size() < 7;
      ++tries;
      CHECK(stream.pool.allocated_bytes() <= 2 * kMaxChunkBytes);
    }
  }
  CHECK(rejected == tries);  // magic, Cap'n Proto's checks and checksum cover every byte
}

TEST_CASE("noise, cuts and repetitions never pass the reader") {
  const auto sound = conversation();
  for (std::uint32_t trial = 0; trial < 3000; ++trial) {
    RandomStream random(8, trial, Purpose::test);
    auto bytes = sound;
    for (std::uint32_t i = random.below(4); i > 0; --i) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
      const std::size_t count = std::min<std::size_t>(random.below(200), bytes.size() - at);
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 last = first + static_cast<std::ptrdiff_t>(count);
      switch (random.below(3)) {
        case 0: bytes.erase(first, last); break;
        case 1:
          std::ranges::generate(first, last,
                                [&] { return static_cast<std::byte>(random.next_u32()); });
          break;
        default:
          bytes.insert(bytes.end(), sound.begin() + static_cast<std::ptrdiff_t>(random.below(1000)),
                       sound.end());
      }
      if (bytes.empty()) break;
    }
    Stream stream;
    stream.feed(bytes, 1 + random.below(20000));
    CHECK(stream.values.size() <= bytes.size() / sizeof(float));
  }
}
