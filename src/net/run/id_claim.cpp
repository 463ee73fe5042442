#include "net/run/id_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "net/discovery/discovery.hpp"
#include "net/run/network_book.hpp"
#include "net/startup/acceptor.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kClaimReportEvery = 5s;
// For how long a process at the address of a seed looks for other seeds before it claims an id.
constexpr gossip::Time kOtherSeeds = 1s;
// For how long a process that is settled helps the others to learn of it.
constexpr gossip::Time kFarewell = 2s;
// Processes that may exchange books with this one at a time.
constexpr int kMostCallers = 512;
// How often the wait looks at the clock and at `stopped`.
constexpr gossip::Time kTick = 50ms;

AddressBookOptions book_options(const IdClaimRequest& request, const Listening& listening) {
  AddressBookOptions options =
      book_options(request.run_id, request.nodes, request.options, listening, nullptr);
  options.first = request.first;
  options.former = request.former;
  return options;
}

class IdClaim {
 public:
  IdClaim(const IdClaimRequest& request, std::shared_ptr<Listening> listening)
      : request_(request),
        listening_(std::move(listening)),
        book_(book_options(request, *listening_)),
        discovery_(scheduler_, book_, discovery_options()),
        acceptor_(scheduler_, acceptor_options()) {}

  Result<ClaimedId> run() {
    GOSSAMER_TRY_STATUS(acceptor_.open(listening_->port));
    discovery_.start();
    tick();
    scheduler_.run_until([this] { return over(); });
    scheduler_.cancel(timer_);
    if (error_) return *error_;
    listening_->book = book_.records();
    return ClaimedId{*book_.own().begin(), listening_};
  }

 private:
  /// What a process without an id knows of the network.
  Identity identity() const {
    Identity identity;
    identity.run_id = request_.run_id;
    identity.peers = request_.nodes;
    identity.settings = request_.settings;
    return identity;
  }

  DiscoveryOptions discovery_options() {
    DiscoveryOptions options = net::discovery_options(request_.options, *listening_);
    options.identity = identity();
    options.message = request_.message;
    options.on_rejected = [this](Error error) { error_ = std::move(error); };
    return options;
  }

  AcceptorOptions acceptor_options() {
    AcceptorOptions options;
    options.identity = identity();
    options.pairs = static_cast<std::size_t>(std::min(request_.nodes, kMostCallers));
    options.deadline = exchange_deadline(request_.options);
    options.failure_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        gossip::from_seconds(request_.options.failure_timeout));
    options.running = [] { return false; };
    options.on_rejected = [](const Hello&, HandshakeResult, const std::string&) {};
    options.message = request_.message;
    options.exchange_books = [this](const auto& records, const std::string& local_host) {
      return discovery_.answer(records, local_host);
    };
    options.book_network = book_.options().network;
    return options;
  }

  bool at_seed() const {
    const std::string own = to_string(listening_->address);
    return std::ranges::find(request_.options.seeds, own) != request_.options.seeds.end();
  }

  /// Whether this process knows as much as it can know of the ids that others have.
  bool is_informed() const {
    if (discovery_.has_contact()) return true;
    return at_seed() && (request_.options.seeds.size() == 1 || scheduler_.now() >= kOtherSeeds);
  }

  bool over() {
    if (error_) return true;
    if (is_informed()) book_.claim();
    if (!settled_at_ && agrees(book_)) {
      book_.settle();
      settled_at_ = scheduler_.now();
    }
    return settled_at_ && (settled(book_) || scheduler_.now() - *settled_at_ >= kFarewell);
  }

  void tick() {
    const gossip::Time now = scheduler_.now();
    if (request_.stopped())
      error_ = Error{ErrorKind::interrupted, "interrupted while waiting for other processes"};
    else if (now >= gossip::from_seconds(request_.options.join_timeout) && !settled_at_)
      error_ =
          Error{ErrorKind::join_timeout, fmt::format("after {:.3g} s (net.join_timeout) {}",
                                                     request_.options.join_timeout, describe())};
    else if (now - reported_ >= kClaimReportEvery && !settled_at_) {
      reported_ = now;
      request_.message("waiting for an id: " + describe());
    }
    timer_ = scheduler_.after(kTick, [this] { tick(); });
  }

  std::string describe() const {
    const auto missing = book_.missing().size();
    const auto nodes = static_cast<std::size_t>(book_.options().nodes);
    std::string text = missing == 0
                           ? fmt::format("all {} ids have a process", nodes)
                           : fmt::format("{} of {} ids have a process", nodes - missing, nodes);
    if (const std::string seeds = discovery_.describe_seeds(); !seeds.empty())
      text += "; seeds: " + seeds;
    return text;
  }

  const IdClaimRequest& request_;
  std::shared_ptr<Listening> listening_;
  RealScheduler scheduler_;
  AddressBook book_;
  Discovery discovery_;
  Acceptor acceptor_;
  gossip::Scheduler::TimerId timer_;
  gossip::Time reported_{0};
  std::optional<gossip::Time> settled_at_;
  std::optional<Error> error_;
};

}  // namespace

Result<ClaimedId> claim_id(const IdClaimRequest& request) {
  GOSSAMER_TRY(Listening listening, open_listening(request.options, {}));
  return IdClaim(request, std::make_shared<Listening>(std::move(listening))).run();
}

}  // namespace gossamer::net
