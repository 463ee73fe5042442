#include "simulator/session/session_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "simulator/session/socket_pair.hpp"
#include "simulator/session/trial_end.hpp"

namespace gossamer::simulator {

using namespace std::chrono_literals;

namespace {

// Of a trial: some seconds of messages and faults, and the delays that these cause.
constexpr Time kLimit = 60s;

class Trial {
 public:
  explicit Trial(std::uint64_t seed);
  TrialReport run();

 private:
  void draw_options();
  void plan_faults();
  void dial(int end, Time pause);
  void accept(int end);
  void connect(bool resumes);
  void hold_back(int end, bool blocked);
  void tick();

  TrialContext context_;
  VirtualScheduler& scheduler_ = context_.scheduler;
  RandomStream& random_ = context_.random;
  TrialOptions& options_ = context_.options;
  std::shared_ptr<SocketPair> pair_;        ///< the newest connection
  std::unique_ptr<net::Socket> accepting_;  ///< its end 0, until end 1's acceptance arrives
  std::array<int, 2> blocks_{};             ///< while above 0, nothing arrives at the end
  std::array<bool, 2> dialling_{};
  std::array<std::unique_ptr<TrialEnd>, 2> ends_;
};

Trial::Trial(std::uint64_t seed) : context_(seed) {
  draw_options();
  for (int k = 0; k < 2; ++k)
    ends_[static_cast<std::size_t>(k)] =
        std::make_unique<TrialEnd>(context_, k, [this, k](Time pause) { dial(k, pause); });
}

void Trial::draw_options() {
  options_.latency = context_.draw_delay(random_.below(2) == 0 ? 1ms : 40ms);
  options_.pause = context_.draw_delay(random_.below(2) == 0 ? 5ms : 100ms);
  options_.room = std::size_t{1} << (9 + random_.below(9));
  // Rows are small, and copied; or large, and leased until the other end has acknowledged them.
  options_.longest_row = random_.below(3) == 0 ? 40000 : 400;
  options_.longest_chunk = 1 + random_.below(static_cast<std::uint32_t>(options_.longest_row));
  options_.longest_chunk = std::max(options_.longest_chunk, options_.longest_row / 16);
  options_.messages = 1 + static_cast<int>(random_.below(options_.longest_row > 400 ? 12 : 60));
  // Everything is sent and acknowledged within some seconds.
  const double ways = 10 / std::max(2 * seconds(options_.latency), 1e-6);
  const double bytes = 4.0 * options_.messages * static_cast<double>(options_.longest_row);
  options_.room = std::max(options_.room, static_cast<std::size_t>(bytes / ways));
  options_.window = 1 + static_cast<int>(random_.below(4));
  options_.delays = random_.next_double();
  options_.may_lose = random_.below(8) == 0;
  for (bool& shares : options_.shares) shares = options_.longest_row > 400 && random_.below(4) > 0;
}

/// Resets, detected at one end or at both; corrupted bytes; and times in which nothing arrives, on
/// one connection or on any.
void Trial::plan_faults() {
  const Time within = options_.messages * options_.pause / 2 + 100ms;
  const auto when = [&] { return context_.draw_delay(within); };
  for (std::uint32_t resets = random_.below(10); resets > 0; --resets)
    scheduler_.after(when(), [this] {
      ++context_.report.breaks;
      const int end = static_cast<int>(random_.below(2));
      const bool both = random_.below(2) == 0;
      const auto pair = pair_;
      pair->reset(end, context_.draw_delay(20ms));
      if (both) pair->reset(1 - end, context_.draw_delay(20ms));
    });
  // A second corruption of the same frame is a protocol violation by the sender.
  for (std::uint32_t damages = options_.may_lose ? random_.below(6) : random_.below(2); damages > 0;
       --damages)
    scheduler_.after(when(), [this] { pair_->corrupt(static_cast<int>(random_.below(2))); });
  // Either one connection falls silent for good, or every connection does for a while. Both
  // together could last longer than the failure timeout.
  const std::uint32_t silent = random_.below(3);
  if (silent == 1)
    scheduler_.after(when(),
                     [this] { pair_->hold_back(static_cast<int>(random_.below(2)), true); });
  if (silent == 2) {
    const Time lasts = context_.draw_delay(options_.may_lose ? 3 * kTrialFailureTimeout
                                                             : kTrialFailureTimeout / 4);
    const int which = static_cast<int>(random_.below(3));
    const Time from = when();
    for (int end = 0; end < 2; ++end) {
      if (which < 2 && end != which) continue;
      scheduler_.after(from, [this, end] { hold_back(end, true); });
      scheduler_.after(from + lasts, [this, end] { hold_back(end, false); });
    }
  }
}

/// Nothing arrives at `end` over any connection.
void Trial::hold_back(int end, bool blocked) {
  blocks_[static_cast<std::size_t>(end)] += blocked ? 1 : -1;
  pair_->hold_back(end, blocked);
}

/// End 0 dials; end 1 asks it to. A dial takes one latency, and its acceptance another one.
void Trial::dial(int end, Time pause) {
  if (std::exchange(dialling_[static_cast<std::size_t>(end)], true)) return;
  scheduler_.after(pause + options_.latency, [this, end] { accept(end); });
}

void Trial::accept(int end) {
  const auto dialler = static_cast<std::size_t>(end);
  net::Session& here = ends_[dialler]->session();
  net::Session& there = ends_[1 - dialler]->session();
  if (here.closed() || !dialling_[dialler]) return;
  if (blocks_[0] > 0 || blocks_[1] > 0 || random_.below(8) == 0) {
    scheduler_.after(50ms, [this, end] { accept(end); });
    return;
  }
  if (there.closed()) {
    scheduler_.after(options_.latency, [this, dialler] {
      dialling_[dialler] = false;
      ends_[dialler]->session().give_up();
    });
    return;
  }
  if (end == 0) return connect(true);
  dial(0, 0ns);
  scheduler_.after(1s, [this] { accept(1); });  // unless they are connected by then
}

void Trial::connect(bool resumes) {
  pair_ = std::make_shared<SocketPair>(scheduler_, random_,
                                       SocketPairOptions{options_.latency, options_.room});
  for (int end = 0; end < 2; ++end)
    if (blocks_[static_cast<std::size_t>(end)] > 0) pair_->hold_back(end, true);
  dialling_[1] = false;
  ends_[1]->session().attach(pair_->socket(1), resumes);
  accepting_ = pair_->socket(0);
  scheduler_.after(options_.latency, [this, resumes] {
    dialling_[0] = false;
    auto socket = std::exchange(accepting_, nullptr);
    if (!ends_[0]->session().closed()) ends_[0]->session().attach(std::move(socket), resumes);
  });
}

void Trial::tick() {
  const Time interval = kTrialFailureTimeout / 16;
  for (auto& end : ends_) end->tick(scheduler_.now(), interval);
  const bool over =
      std::ranges::all_of(ends_, [](const auto& end) { return end->session().closed(); });
  if (over || scheduler_.now() > kLimit) return scheduler_.stop();
  scheduler_.after(interval, [this] { tick(); });
}

TrialReport Trial::run() {
  dialling_[0] = true;
  connect(false);
  plan_faults();
  for (std::size_t k = 0; k < 2; ++k) ends_[k]->begin(*ends_[1 - k]);
  scheduler_.after(kTrialFailureTimeout / 16, [this] { tick(); });
  scheduler_.run();
  context_.report.lost = ends_[0]->failed() || ends_[1]->failed();
  for (std::size_t k = 0; k < 2; ++k) {
    TrialEnd& end = *ends_[k];
    if (!end.session().closed())
      context_.add_violation(
          fmt::format("peer {} is not done after {} s", k, kLimit.count() / 1'000'000'000));
    if (!end.leases_are_back())
      context_.add_violation(
          fmt::format("peer {} waits for leases, though its session is closed", k));
    const std::size_t sent = ends_[1 - k]->sent().size();
    if (!context_.report.lost && !end.closes_early() && end.received() != sent)
      context_.add_violation(
          fmt::format("of {} frames {} arrived at peer {}", sent, end.received(), k));
  }
  return std::move(context_.report);
}

}  // namespace

TrialReport try_session(std::uint64_t seed) { return Trial(seed).run(); }

}  // namespace gossamer::simulator
