#include "net/startup/connector.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gossamer::net {

Connector::Connector(RealScheduler& scheduler, Plan plan)
    : scheduler_(scheduler), plan_(std::move(plan)), began_(scheduler.now()), pause_(kFirstPause) {
  timer_ = scheduler_.after(plan_.pause, [this] { call(); });
}

Connector::~Connector() {
  scheduler_.cancel(timer_);
  if (stream_) stream_->close();
}

std::string Connector::trouble() const {
  if (tries_ == 0) return why_.empty() ? "not called yet" : why_;
  const double seconds = std::chrono::duration<double>(scheduler_.now() - began_).count();
  return fmt::format("{}, {} {} in {:.0f} s", why_.empty() ? "being called" : why_, tries_,
                     tries_ == 1 ? "try" : "tries", seconds);
}

void Connector::call() {
  const auto address = plan_.find();
  if (!address.ok()) return plan_.absent ? give_up() : retry(address.error().message);
  address_ = to_string(*address);
  ++tries_;
  timer_ = scheduler_.after(plan_.deadline, [this] { retry("no answer"); });
  attempt_ = connect(scheduler_, *address, [this](Result<std::unique_ptr<Socket>> socket) {
    scheduler_.cancel(timer_);
    if (!socket.ok()) {
      const bool nobody = plan_.absent && socket.error().kind == ErrorKind::rejected;
      return nobody ? give_up() : retry(socket.error().message);
    }
    talk(std::move(socket).value());
  });
}

void Connector::retry(std::string why) {
  why_ = std::move(why);
  attempt_.reset();
  stream_.reset();
  scheduler_.cancel(timer_);
  timer_ = scheduler_.after(pause_, [this] { call(); });
  pause_ = std::min(2 * pause_, kLongestPause);
}

void Connector::talk(std::unique_ptr<Socket> socket) {
  stream_ = std::make_shared<HandshakeStream>(
      scheduler_, std::move(socket), plan_.deadline,
      [this](const std::string& why) { retry(why + " to our hello"); });
  plan_.hello.running = plan_.running();
  stream_->write(encode_hello(plan_.hello), [this] { read_answer(); });
}

void Connector::read_answer() {
  stream_->read(kHelloPrefixBytes, [this](std::span<const std::byte> prefix) {
    const auto words = decode_hello_prefix(prefix.first<kHelloPrefixBytes>());
    if (!words) return retry("what answers there is no gossamer peer");
    if (words->version != kProtocolVersion)
      return refuse(
          fmt::format("its protocol version is {}, ours is {}", words->version, kProtocolVersion));
    std::vector<std::byte> bytes(prefix.begin(), prefix.end());
    stream_->read(kHelloBytes - kHelloPrefixBytes,
                  [this, bytes = std::move(bytes)](std::span<const std::byte> rest) mutable {
                    bytes.insert(bytes.end(), rest.begin(), rest.end());
                    judge(bytes);
                  });
  });
}

void Connector::judge(std::span<const std::byte> bytes) {
  const auto answer = decode_hello(bytes.first<kHelloBytes>());
  if (!answer) return retry("what answers there is no gossamer peer");
  if (!takes(answer->verdict)) {
    const std::string clause =
        describe(answer->verdict, answer->identity, plan_.hello.identity, plan_.hello.from);
    const bool moved = plan_.moving && answer->verdict == HandshakeResult::not_hosted;
    return moved || comes_again(answer->verdict) ? retry(clause) : refuse(clause);
  }
  const HandshakeResult ours = compare(plan_.hello.identity, answer->identity);
  if (ours != HandshakeResult::accepted)
    return refuse(describe(ours, answer->identity, plan_.hello.identity, plan_.hello.from));
  if (answer->from != plan_.hello.to)
    return retry(fmt::format("peer {} answers there", answer->from));
  auto socket = stream_->release();
  const auto connected = plan_.connected;  // may end this object
  connected(std::move(socket), *answer);
}

void Connector::give_up() {
  const auto absent = plan_.absent;  // may end this object
  absent();
}

void Connector::refuse(const std::string& clause) {
  const auto refused = plan_.refused;  // may end this object
  if (refused({ErrorKind::rejected,
               fmt::format("peer {} at {} refused us: {}", plan_.hello.to, address_, clause)}))
    retry(clause);
}

}  // namespace gossamer::net
