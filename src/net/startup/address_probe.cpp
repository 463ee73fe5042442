#include "net/startup/address_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "net/startup/handshake_stream.hpp"
#include "net/tls/authenticator.hpp"
#include "net/tls/error.hpp"

namespace gossamer::net {
namespace {

constexpr gossip::Time kProbeTick = std::chrono::milliseconds(100);
constexpr int kSilence = 7;           // ticks
constexpr std::size_t kAtOnce = 128;  // addresses: each takes a descriptor

/// Thread: the scheduler's.
class AddressProbe {
 public:
  AddressProbe(RealScheduler& scheduler, Authenticator* authenticator, ProbeRequest request,
               gossip::Time deadline)
      : scheduler_(scheduler),
        authenticator_(authenticator),
        request_(std::move(request)),
        deadline_(deadline) {
    const auto address = parse_address(request_.address);
    if (!address.ok()) {
      finish(ProbeOutcome::failed, address.error().message);
      return;
    }
    timer_ = scheduler_.after(deadline_, [this] {
      finish(ProbeOutcome::no_answer,
             fmt::format("no answer in {:g} s", gossip::seconds(deadline_)));
    });
    attempt_ = connect(scheduler_, *address, [this](Result<std::unique_ptr<Socket>> socket) {
      scheduler_.cancel(timer_);
      if (!socket.ok())
        return finish(socket.error().kind == ErrorKind::rejected ? ProbeOutcome::no_process
                                                                 : ProbeOutcome::failed,
                      socket.error().message);
      if (authenticator_ == nullptr)
        return finish(ProbeOutcome::listens, "a process listens there");
      prove(std::move(socket).value());
    });
  }
  ~AddressProbe() {
    scheduler_.cancel(timer_);
    if (stream_) stream_->close();
  }
  AddressProbe(const AddressProbe&) = delete;
  AddressProbe& operator=(const AddressProbe&) = delete;

  const std::optional<ProbeResult>& result() const { return result_; }

 private:
  void prove(std::unique_ptr<Socket> socket) {
    stream_ = std::make_shared<HandshakeStream>(
        scheduler_, authenticator_->connect(std::move(socket), request_.peer, shown_), deadline_,
        [this](const std::string& why) { on_end(why); });
    stream_->read(1, [this](std::span<const std::byte>) {
      finish(ProbeOutcome::failed, "the process there speaks before it is asked");
    });
    await_silence(kSilence);
  }

  /// The process there has nothing to say before a hello: silence after the proof of its key means
  /// that it takes this one's. The connection is closed well before the other end gives up on it.
  void await_silence(int left) {
    if (left == 0) return accept();
    timer_ = scheduler_.after(kProbeTick,
                              [this, left] { await_silence(shown_->key ? left - 1 : kSilence); });
  }

  void accept() {
    finish(ProbeOutcome::listens, "the peer listens there, and both know their keys");
  }

  void on_end(const std::string& why) {
    const std::error_code error = stream_->error();
    if (error == TlsError::key_was_refused)
      return finish(ProbeOutcome::refused, authenticator_->describe_refusal());
    if (error == TlsError::refused_key)
      return finish(ProbeOutcome::wrong_key, fmt::format("the process there has the key {}, which "
                                                         "is not that of peer {}",
                                                         shown_->text(), request_.peer));
    finish(ProbeOutcome::failed, why);
  }

  void finish(ProbeOutcome outcome, std::string text) {
    scheduler_.cancel(timer_);
    if (stream_) stream_->close();
    if (!result_) result_ = {outcome, std::move(text)};
  }

  RealScheduler& scheduler_;
  Authenticator* authenticator_;
  ProbeRequest request_;
  gossip::Time deadline_;
  gossip::Scheduler::TimerId timer_;
  std::unique_ptr<Attempt> attempt_;
  std::shared_ptr<HandshakeStream> stream_;
  std::shared_ptr<ShownKey> shown_ = std::make_shared<ShownKey>();
  std::optional<ProbeResult> result_;
};

}  // namespace

std::vector<ProbeResult> probe_addresses(const std::vector<ProbeRequest>& requests,
                                         const std::optional<Credentials>& credentials,
                                         gossip::Time deadline) {
  RealScheduler scheduler;
  std::optional<Authenticator> authenticator;
  if (credentials) authenticator.emplace(scheduler, *credentials);
  std::vector<ProbeResult> results;
  while (results.size() < requests.size()) {
    std::vector<std::unique_ptr<AddressProbe>> probes;
    const std::size_t end = std::min(results.size() + kAtOnce, requests.size());
    for (std::size_t i = results.size(); i < end; ++i)
      probes.push_back(std::make_unique<AddressProbe>(
          scheduler, authenticator ? &*authenticator : nullptr, requests[i], deadline));
    scheduler.run_until([&] {
      return std::ranges::all_of(probes,
                                 [](const auto& probe) { return probe->result().has_value(); });
    });
    for (const auto& probe : probes) results.push_back(*probe->result());
  }
  return results;
}

}  // namespace gossamer::net
