#include "net/discovery/discovery.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// The pause between two exchanges that this process begins. While the last news is young it grows
// with the network, so that all processes together begin about a thousand a second, even if they
// are on one machine. Then it is that of a network which waits, or runs.
constexpr gossip::Time kPausePerNode = 1ms, kShortestPause = 50ms, kLongestPause = 500ms;
constexpr gossip::Time kWaiting = 500ms, kRunning = 5s;
constexpr gossip::Time kYoung = 3s;
// Of the exchanges of a complete book, one in this number is with a seed, or with a lost process.
constexpr std::uint64_t kSeedEvery = 8, kLostEvery = 5;
// Processes that try a suspected one themselves, on average: SWIM's indirect probes.
constexpr std::size_t kProbers = 3;
constexpr std::size_t kMostProbes = 16;
constexpr std::size_t kMostExchanges = 4;
constexpr gossip::Time kReportInterval = 60s;

}  // namespace

Discovery::Discovery(RealScheduler& scheduler, AddressBook& book, DiscoveryOptions options)
    : scheduler_(scheduler),
      book_(book),
      options_(std::move(options)),
      random_(book.options().process) {
  for (const Address& address : options_.seeds)
    if (address != options_.listening) seeds_.push_back({address});
  next_seed_ = random_();
  if (!is_any_host(options_.listening)) book_.listen_at(options_.listening);
}

Discovery::~Discovery() { scheduler_.cancel(timer_); }

void Discovery::start() {
  last_change_ = scheduler_.now();
  exchange_after(0ns);
}

void Discovery::exchange_after(gossip::Time pause) {
  due_ = scheduler_.now() + pause;
  timer_ = scheduler_.after(pause, [this] { exchange(); });
}

/// News is passed on at the pace of young news, and not after the long pause of a running network,
/// in which a suspected process would be lost before it hears of it.
void Discovery::on_news() {
  last_change_ = scheduler_.now();
  if (const gossip::Time soon = pause(); last_change_ + soon < due_) {
    scheduler_.cancel(timer_);
    exchange_after(soon);
  }
}

void Discovery::exchange() {
  book_.tick(scheduler_.now());
  exchange_after(pause());
  if (exchanges_.size() >= kMostExchanges) return;  // with processes that do not answer
  const std::uint64_t number = count_++;
  const auto target = next_target(number);
  if (!target) return;
  if (target->seed != nullptr) ++target->seed->tries;
  const bool first_of_seed = target->seed != nullptr && !target->seed->rejects && !has_contact_;
  exchanges_[number] = std::make_unique<BookExchange>(
      scheduler_,
      BookExchangeOptions{
          .address = target->address,
          .authenticator = options_.authenticator,
          .deadline = options_.deadline,
          .identity = options_.identity,
          .shows_settings = options_.authenticator == nullptr && first_of_seed,
          .records =
              [this](const std::string& local_host) {
                find_own_address(local_host);
                return book_.records();
              },
          .on_records =
              [this, number, target = *target](const auto& records) {
                const auto ended = end(number);
                on_records(target, records);
              },
          .on_failure =
              [this, number, target = *target](ExchangeFailure failure, const std::string& why) {
                const auto ended = end(number);
                on_failure(target, failure, why);
              }});
}

/// The exchange, which the caller keeps alive until it returns.
std::unique_ptr<BookExchange> Discovery::end(std::uint64_t number) {
  auto ended = std::move(exchanges_.at(number));
  exchanges_.erase(number);
  return ended;
}

/// While the book is incomplete, seeds alternate with processes that are known. Seeds stay targets
/// later on, and so do lost processes: parts of the network that were apart find each other again.
std::optional<Discovery::Target> Discovery::next_target(std::uint64_t count) {
  if (!probes_.empty()) {
    const Target probe = probes_.front();
    probes_.pop_front();
    return probe;
  }
  const bool seeds_turn = book_.missing().empty() ? count % kSeedEvery == 0 : count % 2 == 0;
  if (seeds_turn)
    if (Seed* seed = next_seed()) return Target{seed->address, seed};
  if (count % kLostEvery == 0)
    if (auto lost = draw(true)) return lost;
  if (auto known = draw(false)) return known;
  Seed* seed = next_seed();
  return seed == nullptr ? std::nullopt : std::optional(Target{seed->address, seed});
}

Discovery::Seed* Discovery::next_seed() {
  return seeds_.empty() ? nullptr : &seeds_[next_seed_++ % seeds_.size()];
}

/// Any other process of the book, each with the same probability.
std::optional<Discovery::Target> Discovery::draw(bool lost) {
  std::vector<Target> targets;
  for (const AddressRecord& record : book_.records()) {
    const auto same = [&](const Target& target) {
      return target.process == record.process && target.address == record.address;
    };
    if (record.process != book_.options().process && (record.standing == Standing::lost) == lost &&
        options_.may_call(record.address) && (targets.empty() || !same(targets.back())))
      targets.push_back({record.address, nullptr, record.process});
  }
  if (targets.empty()) return std::nullopt;
  return targets[random_() % targets.size()];
}

void Discovery::on_records(const Target& target, const std::vector<AddressRecord>& records) {
  if (target.seed != nullptr) {
    target.seed->outcome = "it answered";
    target.seed->rejects = false;
  }
  silent_since_.erase(target.process);
  if (take(records)) return;
  // What this process has learned first may have given it an id, which is news for the other one.
  scheduler_.cancel(timer_);
  exchange_after(0ns);
}

/// Where no process listens, there is none. A process that listens and does not answer may be busy
/// for long before its network begins, with its data.
void Discovery::on_failure(const Target& target, ExchangeFailure failure, const std::string& why) {
  if (target.seed == nullptr) {
    const gossip::Time now = scheduler_.now();
    const gossip::Time since = silent_since_.emplace(target.process, now).first->second;
    if (failure == ExchangeFailure::no_process || now - since >= options_.patience)
      if (book_.suspect(target.process, now)) on_news();
    return;
  }
  target.seed->outcome = why;
  const bool rejected_before =
      std::exchange(target.seed->rejects, failure == ExchangeFailure::refused);
  if (!target.seed->rejects || has_contact_) return;
  const std::string text = fmt::format("the process at the seed {} rejected this one: {}",
                                       to_string(target.address), why);
  if (std::ranges::all_of(seeds_, &Seed::rejects))
    options_.on_rejected({ErrorKind::rejected, text});
  else if (!rejected_before) options_.message(text + "; trying the other seeds");
}

/// Returns whether this process had contact with another one before.
bool Discovery::take(const std::vector<AddressRecord>& records) {
  if (book_.merge(records, scheduler_.now())) on_news();
  probe(records);
  report_rival();
  return std::exchange(has_contact_, true);
}

std::vector<AddressRecord> Discovery::answer(const std::vector<AddressRecord>& records,
                                             const std::string& local_host) {
  find_own_address(local_host);
  take(records);
  return book_.records();
}

/// Of a process that listens on every interface. An address that other machines reach replaces one
/// that only this machine does.
void Discovery::find_own_address(const std::string& local_host) {
  if (!is_any_host(options_.listening) || local_host.empty()) return;
  const Address address{local_host, options_.listening.port};
  if (own_address_ && (!is_loopback(*own_address_) || is_loopback(address))) return;
  own_address_ = address;
  book_.listen_at(address);
}

/// Of the processes that the records name, this one calls some suspected ones itself, and those
/// with an id of its own: where all others know only one of the two, neither would learn of the
/// other from them.
void Discovery::probe(const std::vector<AddressRecord>& records) {
  for (const AddressRecord& record : records) {
    if (record.process == book_.options().process || record.standing == Standing::lost) continue;
    const AddressRecord* known = book_.find(record.peer);
    const bool suspected = record.standing == Standing::suspected && known != nullptr &&
                           *known == record && random_() % records.size() < kProbers;
    const bool rival = book_.own().contains(record.peer);
    const auto same = [&](const Target& probe) { return probe.process == record.process; };
    if ((suspected || rival) && probes_.size() < kMostProbes && options_.may_call(record.address) &&
        std::ranges::none_of(probes_, same))
      probes_.push_back({record.address, nullptr, record.process});
  }
}

void Discovery::report_rival() {
  const auto rival = book_.take_rival();
  if (!rival) return;
  if (rival->has_priority) options_.on_prior_rival(rival->address);
  const gossip::Time now = scheduler_.now();
  if (reported_ && now - *reported_ < kReportInterval) return;
  reported_ = now;
  options_.message(
      fmt::format("another process, at {}, hosts a peer of this one, {}: was it started twice?",
                  rival->address, fmt::join(book_.own(), ", ")));
}

/// With a jitter of a quarter in either direction, so that processes which were started together do
/// not stay together.
gossip::Time Discovery::pause() {
  const bool young = scheduler_.now() - last_change_ < kYoung;
  gossip::Time pause = slow_ ? kRunning : kWaiting;
  if (young)
    pause = std::clamp<gossip::Time>(book_.options().nodes * kPausePerNode, kShortestPause,
                                     kLongestPause);
  const double jitter = 0.75 + 0.5 * static_cast<double>(random_() % 1024) / 1024;
  return gossip::from_seconds(gossip::seconds(pause) * jitter);
}

Result<Address> Discovery::find(int peer) const {
  if (const AddressRecord* record = book_.find(peer)) {
    if (!record->address.is_none()) return record->address;
    return Error{ErrorKind::network, "it cannot be called (its net.advertise is none)"};
  }
  const std::string seeds = describe_seeds();
  return Error{ErrorKind::network,
               seeds.empty()
                   ? std::string("it has not been found yet, and this process is the seed")
                   : "it has not been found yet; seeds: " + seeds};
}

std::string Discovery::describe_seeds() const {
  std::vector<std::string> lines;
  for (const Seed& seed : seeds_)
    lines.push_back(fmt::format("{}: {}, {} {}", to_string(seed.address), seed.outcome, seed.tries,
                                seed.tries == 1 ? "try" : "tries"));
  return fmt::format("{}", fmt::join(lines, ", "));
}

}  // namespace gossamer::net
