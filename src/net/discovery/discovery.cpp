#include "net/discovery/discovery.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
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
// Of the exchanges of a complete book: every so many with a seed, and with a process that is lost.
constexpr std::uint64_t kSeedEvery = 8, kLostEvery = 5;
// Processes that try a suspected one themselves, on average: SWIM's indirect probes.
constexpr std::size_t kProbers = 3;
constexpr std::size_t kMostProbes = 16;

bool is_any_host(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

}  // namespace

Discovery::Discovery(RealScheduler& scheduler, AddressBook& book, DiscoveryOptions options)
    : scheduler_(scheduler), book_(book), options_(std::move(options)), random_(book.process()) {
  for (const Address& address : options_.seeds)
    if (address != options_.listening) seeds_.push_back({address});
  next_seed_ = random_();
  if (!is_any_host(options_.listening.host)) book_.listen_at(options_.listening);
}

Discovery::~Discovery() { scheduler_.cancel(timer_); }

void Discovery::start() {
  last_change_ = scheduler_.now();
  timer_ = scheduler_.after(0ns, [this] { exchange(); });
}

void Discovery::exchange() {
  book_.tick(scheduler_.now());
  const auto target = next_target();
  timer_ = scheduler_.after(pause(), [this] { exchange(); });
  if (!target || exchange_) return;
  if (target->seed != nullptr) ++target->seed->tries;
  exchange_ = std::make_unique<BookExchange>(
      scheduler_,
      BookExchangeOptions{.address = target->address,
                          .authenticator = options_.authenticator,
                          .deadline = options_.deadline,
                          .identity = options_.identity,
                          .records =
                              [this](const std::string& local_host) {
                                find_own_address(local_host);
                                return book_.records();
                              },
                          .done =
                              [this, target = *target](Result<std::vector<AddressRecord>> result) {
                                on_done(target, std::move(result));
                              }});
}

/// While the book is incomplete, seeds alternate with processes that are known. Seeds stay targets
/// later on, and so do lost processes: parts of the network that were apart find each other again.
std::optional<Discovery::Target> Discovery::next_target() {
  const std::uint64_t count = exchanges_++;
  if (!probes_.empty()) {
    const Target probe = probes_.front();
    probes_.pop_front();
    return probe;
  }
  const bool seeds_turn = book_.complete() ? count % kSeedEvery == 0 : count % 2 == 0;
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
  std::map<std::uint64_t, Address> processes;
  for (const AddressRecord& record : book_.records())
    if (record.process != book_.process() && (record.standing == Standing::lost) == lost)
      processes.emplace(record.process, record.address);
  if (processes.empty()) return std::nullopt;
  const auto drawn =
      std::next(processes.begin(), static_cast<std::ptrdiff_t>(random_() % processes.size()));
  return Target{drawn->second, nullptr, drawn->first};
}

void Discovery::on_done(const Target& target, Result<std::vector<AddressRecord>> result) {
  const auto ended = std::move(exchange_);  // alive until this returns
  if (result.ok()) {
    if (target.seed != nullptr) target.seed->outcome = "it answered";
    return merge_answer(target, *result);
  }
  const Error& error = result.error();
  if (target.seed == nullptr) return book_.suspect(target.process, scheduler_.now());
  target.seed->outcome = error.message;
  if (error.kind == ErrorKind::rejected && !has_contact_)
    options_.on_rejected(
        {ErrorKind::rejected, fmt::format("the process at the seed {} rejected this one: {}",
                                          to_string(target.address), error.message)});
}

void Discovery::merge_answer(const Target& target, const std::vector<AddressRecord>& records) {
  const auto merged = book_.merge(records, scheduler_.now());
  if (!merged.ok()) {
    if (target.seed != nullptr) target.seed->outcome = merged.error().message;
    return;
  }
  const bool first = !std::exchange(has_contact_, true);
  if (*merged) last_change_ = scheduler_.now();
  probe_suspects(records);
  report_rivals();
  if (!first) return;
  // What this process has learned may have given it an id, which is news for the other one.
  scheduler_.cancel(timer_);
  timer_ = scheduler_.after(0ns, [this] { exchange(); });
}

Result<std::vector<AddressRecord>> Discovery::answer(const std::vector<AddressRecord>& records,
                                                     const std::string& local_host) {
  find_own_address(local_host);
  GOSSAMER_TRY(const bool changed, book_.merge(records, scheduler_.now()));
  has_contact_ = true;
  if (changed) last_change_ = scheduler_.now();
  probe_suspects(records);
  report_rivals();
  return book_.records();
}

/// Of a process that listens on every interface. An address that other machines reach replaces one
/// that only this machine does.
void Discovery::find_own_address(const std::string& local_host) {
  if (!is_any_host(options_.listening.host) || local_host.empty()) return;
  const Address address{local_host, options_.listening.port};
  if (own_address_ && (!is_loopback(*own_address_) || is_loopback(address))) return;
  own_address_ = address;
  book_.listen_at(address);
}

void Discovery::probe_suspects(const std::vector<AddressRecord>& records) {
  const std::size_t others = std::max<std::size_t>(1, book_.records().size());
  for (const AddressRecord& record : records) {
    const AddressRecord* known = book_.find(record.peer);
    const bool suspected = record.standing == Standing::suspected && known != nullptr &&
                           *known == record && record.process != book_.process();
    if (!suspected || probes_.size() >= kMostProbes || random_() % others >= kProbers) continue;
    const auto same = [&](const Target& probe) { return probe.process == record.process; };
    if (std::ranges::none_of(probes_, same))
      probes_.push_back({record.address, nullptr, record.process});
  }
}

void Discovery::report_rivals() {
  if (book_.rivals().size() == reported_rivals_) return;
  reported_rivals_ = book_.rivals().size();
  options_.message(
      fmt::format("another process hosts a peer of this one, {}: was it started twice? Seen at {}",
                  fmt::join(book_.own(), ", "), fmt::join(book_.rivals(), ", ")));
}

/// With a jitter of a quarter in either direction, so that processes which were started together do
/// not stay together.
gossip::Time Discovery::pause() {
  const bool young = scheduler_.now() - last_change_ < kYoung;
  gossip::Time pause = slow_ ? kRunning : kWaiting;
  if (young)
    pause = std::clamp<gossip::Time>(book_.nodes() * kPausePerNode, kShortestPause, kLongestPause);
  const double jitter = 0.75 + 0.5 * static_cast<double>(random_() % 1024) / 1024;
  return gossip::from_seconds(gossip::seconds(pause) * jitter);
}

Result<Address> Discovery::find(int peer) const {
  if (const AddressRecord* record = book_.find(peer)) return record->address;
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
