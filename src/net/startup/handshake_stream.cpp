#include "net/startup/handshake_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gossamer::net {

namespace {

constexpr std::size_t kPieceBytes = 16384;  // of a book

}  // namespace

HandshakeStream::HandshakeStream(RealScheduler& scheduler, std::unique_ptr<Socket> socket,
                                 gossip::Time deadline, OnEnd on_end)
    : scheduler_(scheduler),
      socket_(std::move(socket)),
      remote_(socket_->remote()),
      local_host_(socket_->local_host()),
      on_end_(std::move(on_end)) {
  socket_->set_user(this);
  timer_ = scheduler_.after(deadline, [this] { end("no answer"); });
}

HandshakeStream::~HandshakeStream() { close(); }

void HandshakeStream::read(std::size_t bytes,
                           std::function<void(std::span<const std::byte>)> then) {
  in_.resize(bytes);
  received_ = 0;
  after_read_ = std::move(then);
  continue_read();
}

void HandshakeStream::read_hello(std::function<bool(const HelloPrefix&)> goes_on,
                                 std::function<void(const std::optional<Hello>&)> on_hello) {
  read(kHelloPrefixBytes, [this, goes_on = std::move(goes_on),
                           on_hello = std::move(on_hello)](std::span<const std::byte> first) {
    const auto prefix = decode_hello_prefix(first.first<kHelloPrefixBytes>());
    if (!prefix) return on_hello(std::nullopt);
    if (!goes_on(*prefix)) return;
    std::vector<std::byte> bytes(first.begin(), first.end());
    read(kHelloBytes - kHelloPrefixBytes,
         [this, bytes = std::move(bytes), on_hello](std::span<const std::byte> rest) mutable {
           bytes.insert(bytes.end(), rest.begin(), rest.end());
           read_settings(std::move(bytes), on_hello);
         });
  });
}

void HandshakeStream::read_settings(
    std::vector<std::byte> hello,
    const std::function<void(const std::optional<Hello>&)>& on_hello) {
  const auto more = settings_bytes(std::span(hello).first<kHelloBytes>());
  if (!more || *more == 0) return on_hello(decode_hello(hello));
  read(*more, [hello = std::move(hello), on_hello](std::span<const std::byte> rest) mutable {
    hello.insert(hello.end(), rest.begin(), rest.end());
    on_hello(decode_hello(hello));
  });
}

void HandshakeStream::read_book(int nodes, const std::string& network,
                                std::function<void(const std::optional<ReceivedBook>&)> on_book) {
  read(kBookHeaderBytes - kHelloPrefixBytes,
       [this, nodes, network, on_book = std::move(on_book)](std::span<const std::byte> rest) {
         std::array<std::byte, kBookHeaderBytes> bytes;
         std::ranges::copy(encode_book_prefix(), bytes.begin());  // as it was read
         std::ranges::copy(rest, bytes.begin() + kHelloPrefixBytes);
         const auto header = decode_book_header(bytes);
         if (!header) return on_book(std::nullopt);
         if (header->network != network) return on_book(ReceivedBook{});
         if (header->bytes > most_book_bytes(nodes)) return on_book(std::nullopt);
         read_payload({}, header->bytes, [nodes, on_book](std::span<const std::byte> payload) {
           auto records = decode_book(payload, nodes);
           if (!records) return on_book(std::nullopt);
           on_book(ReceivedBook{true, *std::move(records)});
         });
       });
}

void HandshakeStream::read_relay_request(
    std::function<void(const std::optional<RelayRequest>&)> on_request) {
  read(kRelayRequestBytes - kHelloPrefixBytes,
       [on_request = std::move(on_request)](std::span<const std::byte> rest) {
         std::array<std::byte, kRelayRequestBytes> bytes;
         std::ranges::copy(encode_relay_prefix(), bytes.begin());  // as it was read
         std::ranges::copy(rest, bytes.begin() + kHelloPrefixBytes);
         on_request(decode_relay_request(bytes));
       });
}

/// `missing` more bytes after those that have come, in pieces: memory grows with what is sent.
void HandshakeStream::read_payload(std::vector<std::byte> payload, std::size_t missing,
                                   std::function<void(std::span<const std::byte>)> then) {
  if (missing == 0) return then(payload);
  const std::size_t piece = std::min(missing, kPieceBytes);
  read(piece, [this, payload = std::move(payload), missing,
               then = std::move(then)](std::span<const std::byte> bytes) mutable {
    payload.insert(payload.end(), bytes.begin(), bytes.end());
    read_payload(std::move(payload), missing - bytes.size(), std::move(then));
  });
}

void HandshakeStream::continue_read() {
  const Area area{in_.data() + received_, in_.size() - received_};
  socket_->read({&area, 1});
}

void HandshakeStream::read_done(const Transfer& transfer) {
  const auto self = shared_from_this();
  if (transfer.end || transfer.error) return on_failure(transfer);
  heard_ = true;
  if (discarding_) {
    drained_ += transfer.bytes;
    if (drained_ >= kMaxDrainedBytes) return end("it sent more after it was refused");
    return continue_read();
  }
  received_ += transfer.bytes;
  if (received_ < in_.size()) return continue_read();
  std::exchange(after_read_, nullptr)(in_);
}

void HandshakeStream::write(std::span<const std::byte> bytes, std::function<void()> then) {
  out_.assign(bytes.begin(), bytes.end());
  written_ = 0;
  after_write_ = std::move(then);
  const Area area{out_.data(), out_.size()};
  socket_->write({&area, 1});
}

void HandshakeStream::write_done(const Transfer& transfer) {
  const auto self = shared_from_this();
  if (transfer.error) return on_failure(transfer);
  written_ += transfer.bytes;
  if (written_ < out_.size()) {
    const Area area{out_.data() + written_, out_.size() - written_};
    return socket_->write({&area, 1});
  }
  if (after_write_) std::exchange(after_write_, nullptr)();
}

void HandshakeStream::close_gracefully() {
  socket_->finish_sending();
  discarding_ = true;
  in_.resize(512);
  received_ = 0;
  continue_read();
}

std::unique_ptr<Socket> HandshakeStream::release() {
  auto socket = std::move(socket_);
  socket->set_user(nullptr);
  close();
  return socket;
}

void HandshakeStream::close() {
  scheduler_.cancel(timer_);
  socket_.reset();
  on_end_ = nullptr;
}

void HandshakeStream::on_failure(const Transfer& transfer) {
  error_ = transfer.error;
  end(reason(transfer));
}

void HandshakeStream::end(const std::string& why) {
  const auto self = shared_from_this();
  const auto on_end = std::move(on_end_);
  close();
  if (on_end) on_end(why);
}

}  // namespace gossamer::net
