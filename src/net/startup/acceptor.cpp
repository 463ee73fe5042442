#include "net/startup/acceptor.hpp"

#include <fmt/format.h>

#include <vector>

namespace gossamer::net {

Acceptor::~Acceptor() {
  listener_.reset();
  for (auto& stranger : pending_) stranger.talk->close();
}

Status Acceptor::open(const Address& address) {
  auto listener = listen(scheduler_, address,
                         [this](std::unique_ptr<Socket> socket) { on_accept(std::move(socket)); });
  if (!listener.ok()) return listener.error();
  listener_ = std::move(listener).value();
  return {};
}

void Acceptor::on_accept(std::unique_ptr<Socket> socket) {
  if (pending_.size() >= kMaxPendingConnections)
    reject(pending_.begin(), "too many connections say nothing");
  const auto stranger = pending_.emplace(pending_.end());
  stranger->talk = std::make_shared<HandshakeStream>(
      scheduler_, std::move(socket), plan_.deadline, [this, stranger](const std::string& why) {
        reject(stranger, why == "no answer" ? "it said no hello" : why + " before its hello");
      });
  HandshakeStream& talk = *stranger->talk;
  talk.read(kHelloPrefixBytes, [this, stranger, &talk](std::span<const std::byte> prefix) {
    const auto words = decode_hello_prefix(prefix.first<kHelloPrefixBytes>());
    if (!words) return reject(stranger, "it does not speak our protocol");
    if (words->version != kProtocolVersion) {
      Hello other;
      other.from = other.to = -1;
      other.identity.protocol = words->version;
      return answer(stranger, other, HandshakeResult::wrong_version);
    }
    std::vector<std::byte> bytes(prefix.begin(), prefix.end());
    talk.read(kHelloBytes - kHelloPrefixBytes,
              [this, stranger, bytes = std::move(bytes)](std::span<const std::byte> rest) mutable {
                bytes.insert(bytes.end(), rest.begin(), rest.end());
                judge(stranger, bytes);
              });
  });
}

void Acceptor::judge(PendingConnections::iterator stranger, std::span<const std::byte> bytes) {
  const auto hello = decode_hello(bytes.first<kHelloBytes>());
  if (!hello) return reject(stranger, "it does not speak our protocol");
  HandshakeResult verdict = compare(plan_.identity, hello->identity);
  if (verdict == HandshakeResult::accepted) verdict = plan_.admit(*hello);
  answer(stranger, *hello, verdict);
}

void Acceptor::answer(PendingConnections::iterator stranger, const Hello& hello,
                      HandshakeResult verdict) {
  const Hello ours{verdict,        hello.to,        hello.from,   plan_.failure_timeout,
                   plan_.identity, plan_.running(), hello.session};
  HandshakeStream& talk = *stranger->talk;
  if (takes(verdict)) {
    talk.write(encode_hello(ours), [this, stranger, hello, verdict] {
      // Two calls of one peer may have been admitted before either was answered.
      if (plan_.admit(hello) != verdict) return reject(stranger, "it called twice, or too late");
      auto socket = stranger->talk->release();
      pending_.erase(stranger);
      plan_.admitted(std::move(socket), hello, verdict);
    });
    return;
  }
  const std::string clause = describe(verdict, hello.identity, plan_.identity, hello.from);
  if (!comes_again(verdict) &&
      verdict != HandshakeResult::gone) {  // else it calls perhaps many times, or is no stranger
    const std::string who = hello.from >= 0 ? fmt::format("peer {} ({})", hello.from, talk.remote())
                                            : "a peer at " + talk.remote();
    report(fmt::format("refused {}: {}", who, clause));
  }
  stranger->answered = true;
  talk.write(encode_hello(ours), [&talk] { talk.hang_up(); });
  plan_.refused(hello, verdict, clause);
}

void Acceptor::reject(PendingConnections::iterator stranger, const std::string& why) {
  const PendingConnection gone = *stranger;  // alive until we return, wherever we were called from
  pending_.erase(stranger);
  gone.talk->close();
  if (!gone.answered)
    report(fmt::format("closed a connection from {}: {}", gone.talk->remote(), why));
}

void Acceptor::report(const std::string& line) {
  if (reports_ > kMaxReports) return;
  plan_.message(++reports_ > kMaxReports
                    ? "more strangers have called; they are not reported any more"
                    : line);
}

}  // namespace gossamer::net
