#include "net/startup/handshake_stream.hpp"

#include <utility>

namespace gossamer::net {

HandshakeStream::HandshakeStream(RealScheduler& scheduler, std::unique_ptr<Socket> socket,
                                 gossip::Time deadline, OnEnd on_end)
    : scheduler_(scheduler),
      socket_(std::move(socket)),
      remote_(socket_->remote()),
      on_end_(std::move(on_end)) {
  socket_->set_user(this);
  timer_ = scheduler_.after(deadline, [this] { end("no answer"); });
}

HandshakeStream::~HandshakeStream() { close(); }

void HandshakeStream::read(std::size_t bytes,
                           std::function<void(std::span<const std::byte>)> then) {
  in_.resize(bytes);
  in_got_ = 0;
  after_read_ = std::move(then);
  read_on();
}

void HandshakeStream::read_on() {
  const Area area{in_.data() + in_got_, in_.size() - in_got_};
  socket_->read({&area, 1});
}

void HandshakeStream::read_done(const Transfer& transfer) {
  const auto self = shared_from_this();
  if (transfer.end || transfer.error) return end(reason(transfer));
  if (discarding_) return read_on();
  in_got_ += transfer.bytes;
  if (in_got_ < in_.size()) return read_on();
  std::exchange(after_read_, nullptr)(in_);
}

void HandshakeStream::write(std::span<const std::byte> bytes, std::function<void()> then) {
  out_.assign(bytes.begin(), bytes.end());
  out_written_ = 0;
  after_write_ = std::move(then);
  const Area area{out_.data(), out_.size()};
  socket_->write({&area, 1});
}

void HandshakeStream::write_done(const Transfer& transfer) {
  const auto self = shared_from_this();
  if (transfer.error) return end(reason(transfer));
  out_written_ += transfer.bytes;
  if (out_written_ < out_.size()) {
    const Area area{out_.data() + out_written_, out_.size() - out_written_};
    return socket_->write({&area, 1});
  }
  if (after_write_) std::exchange(after_write_, nullptr)();
}

void HandshakeStream::hang_up() {
  socket_->finish_sending();
  discarding_ = true;
  in_.resize(512);
  in_got_ = 0;
  read_on();
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

void HandshakeStream::end(const std::string& why) {
  const auto self = shared_from_this();
  const auto on_end = std::move(on_end_);
  close();
  if (on_end) on_end(why);
}

}  // namespace gossamer::net
