#include "net/relay/relay_call.hpp"

#include <utility>

namespace gossamer::net {

RelayCall::RelayCall(RealScheduler& scheduler, RelayCallOptions options)
    : scheduler_(scheduler), options_(std::move(options)) {
  timer_ = scheduler_.after(options_.deadline, [this] { fail(); });
  attempt_ = connect(scheduler_, options_.address, [this](Result<std::unique_ptr<Socket>> socket) {
    scheduler_.cancel(timer_);
    if (!socket.ok()) return fail();
    send(std::move(socket).value());
  });
}

RelayCall::~RelayCall() {
  scheduler_.cancel(timer_);
  if (stream_) stream_->close();
}

void RelayCall::send(std::unique_ptr<Socket> socket) {
  reached_ = true;
  if (options_.authenticator != nullptr)
    socket = options_.authenticator->connect(std::move(socket), options_.peer, shown_);
  const bool waits = options_.request.kind == RelayRequest::Kind::wait;
  stream_ = std::make_shared<HandshakeStream>(scheduler_, std::move(socket),
                                              waits ? options_.patience : options_.deadline,
                                              [this](const std::string&) { fail(); });
  stream_->write(encode_relay_request(options_.request), [this] {
    stream_->read(kHelloPrefixBytes,
                  [this](std::span<const std::byte> bytes) { on_answer(bytes); });
  });
}

void RelayCall::on_answer(std::span<const std::byte> bytes) {
  const auto answer = decode_hello_prefix(bytes.first<kHelloPrefixBytes>());
  if (!answer || answer->opening != Opening::hello || answer->version != kProtocolVersion ||
      answer->result != HandshakeResult::accepted)
    return fail();
  Connection connection{stream_->release()};
  if (options_.peer == options_.request.to) {
    connection.key = shown_->key;
    connection.route = {Route::Way::reversed};
  } else {
    connection.route = {Route::Way::relayed, options_.peer};
  }
  const auto on_connected = options_.on_connected;  // may destroy this object
  on_connected(std::move(connection));
}

void RelayCall::fail() {
  const auto on_failure = options_.on_failure;  // may destroy this object
  on_failure(reached_);
}

}  // namespace gossamer::net
