// Bytes of a connection: of a stranger before the handshake, and of a peer after it.
#include <algorithm>
#include <cstring>

#include "base/hash.hpp"
#include "gossip/scheduler.hpp"
#include "net/discovery/address_book.hpp"
#include "net/session/session.hpp"
#include "net/tls/context.hpp"
#include "net/tls/engine.hpp"
#include "net/tls/keys.hpp"
#include "net/wire/frame_reader.hpp"
#include "net/wire/hello.hpp"
#include "net/wire/relay_request.hpp"
#include "tests/fuzz/target.hpp"

namespace gossamer::fuzz {
namespace {

using namespace std::chrono_literals;
using namespace net;

constexpr FrameParties kParties{7, 1, 0};
constexpr std::size_t kChecked = 16;  // the header's bytes from here on are hashed (docs/WIRE.md)
constexpr std::size_t kPayloadBytes = 36;

// ---- hello

void run_hello(std::span<const std::byte> input) {
  std::vector<std::byte> bytes(input.begin(), input.end());
  bytes.resize(std::max(bytes.size(), kHelloBytes));
  if (const auto more = settings_bytes(std::span(bytes).first<kHelloBytes>()))
    bytes.resize(kHelloBytes + *more);
  decode_hello_prefix(std::span(bytes).first<kHelloPrefixBytes>());
  const auto head = std::span(bytes).first<kRelayRequestBytes>();
  if (const auto request = decode_relay_request(head))
    require(std::ranges::equal(encode_relay_request(*request), head),
            "a request to a relay that is read is written as it was");
  const auto hello = decode_hello(bytes);
  if (!hello) return;
  const auto again = decode_hello(encode_hello(*hello));
  require(again && again->from == hello->from && again->session == hello->session &&
              again->identity.run_id == hello->identity.run_id &&
              again->identity.settings == hello->identity.settings,
          "a hello that is read is written and read as the same");
  Identity ours;
  ours.settings = "run.peers=4\nrun.seed=0\n";
  require(!describe(compare(ours, hello->identity), hello->identity, ours, hello->from).empty(),
          "every result has words");
}

std::vector<Bytes> hello_seeds() {
  Hello hello;
  hello.from = 1;
  hello.identity.run_id = "run";
  hello.identity.peers = 4;
  hello.session = 17;
  const auto bare = encode_hello(hello);
  hello.identity.settings = "run.peers=5\nrun.seed=0\n";
  const auto relayed =
      encode_relay_request({RelayRequest::Kind::call, 2, 1, relay_network(hello.identity)});
  return {bare, encode_hello(hello), Bytes(relayed.begin(), relayed.end())};
}

// ---- address book

/// The first two bytes are the number of nodes.
void run_book(std::span<const std::byte> input) {
  if (input.size() < 2 + kBookHeaderBytes) return;
  const int nodes = 1 + std::to_integer<int>(input[0]) + 256 * std::to_integer<int>(input[1]);
  input = input.subspan(2);
  const auto header = decode_book_header(input.first<kBookHeaderBytes>());
  const auto records = decode_book(input.subspan(kBookHeaderBytes), nodes);
  if (!records) return;
  AddressBookOptions options;
  options.nodes = nodes;
  options.network = book_network("run", nodes);
  options.process = 5;
  AddressBook book(options);
  book.listen_at({"127.0.0.1", 7000});
  book.claim();
  book.merge(*records, gossip::Time(0));
  book.tick(1h);
  const auto merged = book.records();
  require(merged.size() <= static_cast<std::size_t>(nodes), "a record for each node at most");
  const auto bytes = encode_book(header ? header->network : options.network, merged);
  require(decode_book(std::span(bytes).subspan(kBookHeaderBytes), nodes) == merged,
          "a book that is read is written and read as the same");
}

std::vector<Bytes> book_seeds() {
  std::vector<AddressRecord> records(2);
  records[0].process = records[1].process = 9;
  records[0].version = records[1].version = 3;
  records[0].address = {"10.0.0.5", 7000};
  records[1].address = {"node-1", 7001};
  records[1].peer = 2;
  records[1].signature.emplace();
  Bytes seed{std::byte{3}, std::byte{0}};
  for (const std::byte each : encode_book(book_network("run", 4), records)) seed.push_back(each);
  return {seed};
}

// ---- frames

/// Gives a reader the bytes in pieces; calls `take` with each frame. False: they were refused.
template <class Take>
bool feed(FrameReader& reader, std::span<const std::byte> bytes, std::size_t piece, Take take) {
  while (true) {
    auto frame = reader.next();
    if (!frame.ok()) {
      require(!frame.error().message.empty(), "a refusal has a reason");
      return false;
    }
    if (frame->has_value()) {
      take(std::move(**frame));
      continue;
    }
    const auto areas = reader.areas();
    if (bytes.empty() || areas.empty()) return true;
    const std::size_t count = std::min({piece, bytes.size(), areas.front().size});
    std::memcpy(areas.front().data, bytes.data(), count);
    reader.filled(count);
    bytes = bytes.subspan(count);
  }
}

void run_frame(std::span<const std::byte> input) {
  Source source(input);
  const std::size_t piece = 1 + source.below(200);
  const auto bytes = source.rest();
  std::size_t whole = 0, pieces = 0;
  for (std::size_t* frames : {&whole, &pieces}) {
    BufferPool pool(2, [] {});
    FrameReader reader(kParties, pool);
    feed(reader, bytes, frames == &whole ? bytes.size() + 1 : piece, [&](Frame frame) {
      ++*frames;
      std::array<std::byte, kFrameHeaderBytes> again;
      encode_header(frame.header, 3, again);
      const auto read = decode_header(again, kParties);
      require(read.ok() && read->header == frame.header, "a header is written as it was read");
    });
  }
  require(whole == pieces, "the same frames come in pieces of any size");
}

/// A frame as a session target takes it: what the checksum covers, without it, and the payload.
Bytes frame_item(const FrameHeader& header, std::span<const std::byte> payload) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode_header(header, hash64(payload), bytes);
  Bytes item{std::byte{1}};
  item.insert(item.end(), bytes.begin() + kChecked, bytes.end());
  for (const std::size_t byte : {payload.size() & 255, payload.size() >> 8})
    item.push_back(static_cast<std::byte>(byte));
  item.insert(item.end(), payload.begin(), payload.end());
  return item;
}

FrameHeader header_of(const FrameBody& body, std::size_t payload = 0) {
  FrameHeader header;
  header.run = kParties.run;
  header.from = kParties.from;
  header.to = kParties.to;
  header.payload_bytes = static_cast<std::uint32_t>(payload);
  header.body = body;
  return header;
}

/// One frame of the input with a checksum that is right: a random one never is.
Bytes next_frame(Source& source) {
  const bool patches_size = (source.number(1) & 1) != 0;
  Bytes frame(kFrameHeaderBytes);
  std::memcpy(frame.data(), "GOSf", 4);
  frame[4] = std::byte{7};
  const auto fields = source.take(kFrameHeaderBytes - kChecked);
  std::ranges::copy(fields, frame.begin() + kChecked);
  const auto payload = source.take(source.number(2));
  if (patches_size) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    std::memcpy(frame.data() + kPayloadBytes, &size, sizeof(size));
  }
  const std::uint64_t checksum = hash64(std::span(frame).subspan(kChecked)) ^ hash64(payload);
  std::memcpy(frame.data() + 8, &checksum, sizeof(checksum));
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

// ---- a whole session, whose other end is hostile

/// A connection over which the input comes, in pieces; what is written disappears.
class InputSocket final : public Socket {
 public:
  InputSocket(gossip::Scheduler& scheduler, Bytes bytes, std::size_t piece)
      : scheduler_(scheduler), bytes_(std::move(bytes)), piece_(piece) {}
  ~InputSocket() override { close(); }

  void set_user(SocketUser* user) override { user_ = user; }
  void read(std::span<const Area> areas) override {
    const std::size_t count = std::min({piece_, bytes_.size() - read_, areas.front().size});
    if (count > 0) std::memcpy(areas.front().data, bytes_.data() + read_, count);
    read_ += count;
    reading_ = scheduler_.after(1us, [this, count] { user_->read_done({count, count == 0, {}}); });
  }
  void write(std::span<const Area> areas) override {
    std::size_t count = 0;
    for (const Area& area : areas) count += area.size;
    writing_ = scheduler_.after(1us, [this, count] { user_->write_done({count, false, {}}); });
  }
  void finish_sending() override {}
  void close() override {
    scheduler_.cancel(reading_);
    scheduler_.cancel(writing_);
  }
  const std::string& remote() const override { return address_; }
  bool is_local() const override { return true; }

 private:
  gossip::Scheduler& scheduler_;
  Bytes bytes_;
  std::size_t piece_, read_ = 0;
  SocketUser* user_ = nullptr;
  gossip::Scheduler::TimerId reading_{}, writing_{};
  std::string address_ = "127.0.0.1:1";
};

/// Takes what a session delivers, and holds some chunks for a while.
class Owner final : public SessionOwner {
 public:
  Status on_chunk(gossip::Chunk chunk) override {
    require(chunk.header.from == kParties.from && chunk.header.to == kParties.to,
            "a chunk is of the session's peers");
    if (chunk.header.round % 5 == 4) return Error{ErrorKind::lost_peer, "refused"};
    if (held_.size() >= 2) held_.clear();
    held_.push_back(std::move(chunk));
    return {};
  }
  Status on_contribution(Session&, std::string text) override {
    require(text.size() <= kMaxContributionBytes, "a contribution is within its limit");
    return {};
  }
  Status on_figures(Session&, const FiguresFrame&, std::string entries) override {
    require(entries.size() <= kMaxFiguresBytes, "figures are within their limit");
    return {};
  }
  void on_running() override {}
  void on_alive(Session&) override {}
  void on_goodbye(Session&) override {}
  void on_failure(Session&, Error error) override {
    require(!failed && !error.message.empty(), "a session fails once, with a reason");
    failed = true;
  }
  void on_abort(Session& session, Error error) override {
    require(error.message.size() < 1024, "a reason is short");
    session.close();
  }

  bool failed = false;

 private:
  std::vector<gossip::Chunk> held_;
};

/// The memory of this process, which the input may offer to it as that of the other end.
const SharedMemory& own_memory() {
  static const auto memory = SharedMemory::reserve().value();
  return *memory;
}

void run_session(std::span<const std::byte> input) {
  Source source(input);
  const std::uint64_t choices = source.number(1);
  const std::size_t piece = 1 + source.below(1 << 14);
  Bytes bytes;
  while (!source.empty()) {
    const Bytes frame = next_frame(source);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  gossip::VirtualScheduler scheduler;
  SocketTraffic traffic;
  HashMemo hashes;
  Owner owner;
  SessionOptions options;
  options.incoming = kParties;
  options.name = "peer 1";
  options.id = 9;
  options.failure_timeout = 2s;
  options.heartbeat = 500ms;
  options.hashes = &hashes;
  options.lending = std::make_shared<Lending>(scheduler, &own_memory());
  Session session(scheduler, options, traffic, owner);
  session.attach(std::make_unique<InputSocket>(scheduler, std::move(bytes), piece),
                 (choices & 1) != 0);
  if ((choices & 2) != 0) session.hold_data(true);
  for (int tick = 0; tick < 40; ++tick) {
    scheduler.after(100ms * tick, [&, tick] {
      session.tick(scheduler.now(), 100ms);
      if ((choices & 4) != 0 && tick == 3) session.say_goodbye();
      if ((choices & 2) != 0 && tick == 5) session.hold_data(false);
      if ((choices & 8) != 0 && tick == 7) {
        const Error reason{ErrorKind::interrupted, "interrupted"};
        session.abort(&reason);
      }
    });
  }
  scheduler.run();
  session.close();
}

std::vector<Bytes> session_seeds() {
  const std::array<float, 8> values{1, 2, 3, 4, 5, 6, 7, 8};
  const auto payload = std::as_bytes(std::span(values));
  const std::string place_text = encode_place({4096, 20'000});
  const auto place = std::as_bytes(std::span(place_text));
  Bytes all(9);
  for (const Bytes& item :
       {frame_item(header_of(AckFrame{0, 0}), {}),
        frame_item(header_of(DataFrame{3, 0, 0, 8}, payload.size()), payload),
        frame_item(header_of(ControlFrame{gossip::ControlMessage::commit, 3, 0, {}, 0, 0}), {}),
        frame_item(header_of(HeartbeatFrame{}), {}),
        frame_item(header_of(ContributionFrame{}, 4), payload.first(4)),
        frame_item(header_of(OfferFrame{own_memory().name()}), {}),
        frame_item(header_of(MappedFrame{}), {}),
        frame_item(header_of(LentFrame{{3, 0, 0, 20'000}}, sizeof(LentPlace)), place),
        frame_item(header_of(RunningFrame{}), {}), frame_item(header_of(GoodbyeFrame{}), {})})
    all.insert(all.end(), item.begin(), item.end());
  Bytes aborted(9);
  const Bytes abort = frame_item(header_of(AbortFrame{ErrorKind::diverged}, 8), payload.first(8));
  aborted.insert(aborted.end(), abort.begin(), abort.end());
  return {all, aborted};
}

std::vector<Bytes> frame_seeds() {
  std::vector<Bytes> seeds;
  for (const Bytes& session : session_seeds()) {
    Source source(session);
    source.number(8), source.number(1);
    Bytes bytes(8);
    while (!source.empty()) {
      const Bytes frame = next_frame(source);
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    seeds.push_back(std::move(bytes));
  }
  return seeds;
}

// ---- TLS

void run_tls(std::span<const std::byte> input) {
  static const TlsContext context(KeyPair::generate());
  TlsEngine engine(context, TlsRole::server, [](const PublicKey&) { return false; });
  std::size_t taken = 0;
  while (!input.empty()) {
    const Area room = engine.input_room();
    const std::size_t count = std::min(room.size, input.size());
    std::memcpy(room.data, input.data(), count);
    engine.input_filled(count);
    input = input.subspan(count);
    taken += count;
    const bool failed = static_cast<bool>(engine.handshake());
    engine.take_output();
    require(!engine.established(), "a handshake completes only with an allowed key");
    if (failed) return;
    require(taken <= TlsEngine::kMaxHandshakeBytes + room.size, "a handshake has a limit");
  }
}

std::vector<Bytes> tls_seeds() {
  const TlsContext context(KeyPair::generate());
  TlsEngine client(context, TlsRole::client, [](const PublicKey&) { return true; });
  if (client.handshake()) return {};
  const auto first = client.take_output();
  return {{first.begin(), first.end()}};
}

}  // namespace

std::vector<Target> wire_targets() {
  return {{"hello", run_hello, hello_seeds},
          {"book", run_book, book_seeds},
          {"frame", run_frame, frame_seeds},
          {"session", run_session, session_seeds},
          {"tls", run_tls, tls_seeds}};
}

}  // namespace gossamer::fuzz
