#include "net/door.hpp"

#include <fmt/format.h>

#include <vector>

namespace gossamer::net {

Door::~Door() {
  listener_.reset();
  for (auto& stranger : strangers_) stranger.talk->close();
}

Status Door::open(const Address& address) {
  auto listener = listen(scheduler_, address, [this](std::unique_ptr<Socket> socket) { welcome(std::move(socket)); });
  if (!listener.ok()) return listener.error();
  listener_ = std::move(listener).value();
  return {};
}

void Door::welcome(std::unique_ptr<Socket> socket) {
  if (strangers_.size() >= kMaxStrangers) turn_away(strangers_.begin(), "too many connections say nothing");
  const auto stranger = strangers_.emplace(strangers_.end());
  stranger->talk =
      std::make_shared<Talk>(scheduler_, std::move(socket), plan_.deadline, [this, stranger](const std::string& why) {
        turn_away(stranger, why == "no answer" ? "it said no hello" : why + " before its hello");
      });
  Talk& talk = *stranger->talk;
  talk.read(kHelloPrefixBytes, [this, stranger, &talk](std::span<const std::byte> prefix) {
    const auto words = decode_hello_prefix(prefix.first<kHelloPrefixBytes>());
    if (!words) return turn_away(stranger, "it does not speak our protocol");
    if (words->version != kProtocolVersion) {
      Hello other;
      other.from = other.to = -1;
      other.identity.protocol = words->version;
      return answer(stranger, other, Verdict::wrong_version);
    }
    std::vector<std::byte> bytes(prefix.begin(), prefix.end());
    talk.read(kHelloBytes - kHelloPrefixBytes,
              [this, stranger, bytes = std::move(bytes)](std::span<const std::byte> rest) mutable {
                bytes.insert(bytes.end(), rest.begin(), rest.end());
                judge(stranger, bytes);
              });
  });
}

void Door::judge(Strangers::iterator stranger, std::span<const std::byte> bytes) {
  const auto hello = decode_hello(bytes.first<kHelloBytes>());
  if (!hello) return turn_away(stranger, "it does not speak our protocol");
  Verdict verdict = compare(plan_.identity, hello->identity);
  if (verdict == Verdict::accepted) verdict = plan_.admit(*hello);
  answer(stranger, *hello, verdict);
}

void Door::answer(Strangers::iterator stranger, const Hello& hello, Verdict verdict) {
  const Hello ours{verdict, hello.to, hello.from, plan_.silence, plan_.identity, plan_.running(),
                   hello.session};
  Talk& talk = *stranger->talk;
  if (takes(verdict)) {
    talk.write(encode_hello(ours), [this, stranger, hello, verdict] {
      // Two calls of one peer may have been admitted before either was answered.
      if (plan_.admit(hello) != verdict) return turn_away(stranger, "it called twice, or too late");
      auto socket = stranger->talk->release();
      strangers_.erase(stranger);
      plan_.admitted(std::move(socket), hello, verdict);
    });
    return;
  }
  const std::string clause = describe(verdict, hello.identity, plan_.identity, hello.from);
  if (!comes_again(verdict) && verdict != Verdict::gone) {  // else it calls perhaps many times, or is no stranger
    const std::string who = hello.from >= 0 ? fmt::format("peer {} ({})", hello.from, talk.remote()) : "a peer at " + talk.remote();
    report(fmt::format("refused {}: {}", who, clause));
  }
  stranger->answered = true;
  talk.write(encode_hello(ours), [&talk] { talk.hang_up(); });
  plan_.refused(hello, verdict, clause);
}

void Door::turn_away(Strangers::iterator stranger, const std::string& why) {
  const Stranger gone = *stranger;  // alive until we return, wherever we were called from
  strangers_.erase(stranger);
  gone.talk->close();
  if (!gone.answered) report(fmt::format("closed a connection from {}: {}", gone.talk->remote(), why));
}

void Door::report(const std::string& line) {
  if (reports_ > kMaxReports) return;
  plan_.message(++reports_ > kMaxReports ? "more strangers have called; they are not reported any more" : line);
}

}  // namespace gossamer::net
