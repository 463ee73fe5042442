#include "simulator/session/session_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "net/session/session.hpp"
#include "simulator/session/socket_pair.hpp"
#include "simulator/session/trial_row.hpp"

namespace gossamer::simulator {

using namespace std::chrono_literals;

namespace {

constexpr Time kFailureTimeout = 4s;
// Of a trial: some seconds of messages and faults, and the delays that these cause.
constexpr Time kLimit = 60s;
// For which an end that has closed waits for the other end's last acknowledgement.
constexpr Time kLinger = 1s;
constexpr std::size_t kMostViolations = 5;

/// A frame that was sent, for comparison with what arrives.
struct SentFrame {
  net::FrameKind kind = net::FrameKind::data;
  ChunkHeader head;
  std::uint64_t hash = 0;  ///< of values or text
};

std::uint64_t hash_of(std::span<const float> values) { return hash64(std::as_bytes(values)); }
std::uint64_t hash_of(const std::string& text) { return hash64(std::as_bytes(std::span(text))); }

class Trial {
 public:
  explicit Trial(std::uint64_t seed);
  TrialReport run();

 private:
  class End;
  struct Options {
    Time latency{0}, pause{0};  ///< one way; between two messages
    std::size_t room = 0, longest_row = 0, longest_chunk = 0;
    int messages = 0, window = 0;
    double delays = 0;  ///< the share of chunks that their receiver holds for a while
    bool may_lose = false;
  };

  void plan_faults();
  Time draw_delay(Time most) {
    return Time(std::llround(static_cast<double>(most.count()) * random_.next_double()));
  }
  void dial(int end, Time pause);
  void accept(int end);
  void connect(bool resumes);
  void hold_back(int end, bool blocked);
  void tick();
  void report(std::string sentence);
  void add_to_hash(std::initializer_list<std::uint64_t> words);

  VirtualScheduler scheduler_;
  RandomStream random_;
  Options options_;
  std::shared_ptr<SocketPair> pair_;        ///< the newest connection
  std::unique_ptr<net::Socket> accepting_;  ///< its end 0, until end 1's acceptance arrives
  std::array<int, 2> blocks_{};             ///< while above 0, nothing arrives at the end
  std::array<bool, 2> dialling_{};
  std::array<std::unique_ptr<End>, 2> ends_;
  TrialReport report_;
};

class Trial::End final : public net::SessionOwner {
 public:
  End(Trial& trial, int number) : trial_(trial), number_(number), left_(trial.options_.messages) {
    closes_early_ = trial.random_.below(4) == 0;
    net::SessionOptions options;
    options.incoming = {7, 1 - number, number};
    options.name = fmt::format("peer {}", 1 - number);
    options.window = trial.options_.window;
    options.failure_timeout = kFailureTimeout;
    options.heartbeat = kFailureTimeout / 4;
    options.hashes = &hashes_;
    options.reconnect = [this](Time pause) { trial_.dial(number_, pause); };
    for (TrialRow& row : rows_)
      row.on_free = [this] { trial_.scheduler_.after(0ns, [this] { send_next(); }); };
    session_ =
        std::make_unique<net::Session>(trial.scheduler_, std::move(options), traffic_, *this);
  }
  ~End() override { kept_.clear(); }

  net::Session& session() { return *session_; }
  const std::vector<SentFrame>& sent() const { return sent_; }
  std::size_t received() const { return received_; }
  bool failed() const { return failed_; }
  bool closes_early() const { return closes_early_; }
  bool leases_are_back() const { return std::ranges::all_of(rows_, &TrialRow::free); }

  void begin() {
    trial_.scheduler_.after(trial_.draw_delay(trial_.options_.pause), [this] { send_next(); });
  }

  void tick(Time now, Time counted) {
    if (session_->closed()) return;
    session_->tick(now, counted);
    if (!closing_ || session_->closed()) return;
    // The other end may be gone while its last acknowledgement was lost.
    waited_ = session_->remote().said_goodbye && session_->flushed() ? waited_ + counted : 0ns;
    if (session_->finished() || waited_ > kLinger) session_->close();
  }

  Status on_chunk(Chunk chunk) override {
    const bool note = chunk.header.control != ControlMessage::none;
    receive({note ? net::FrameKind::control : net::FrameKind::data, chunk.header,
             hash_of(chunk.values)});
    if (note || trial_.random_.next_double() >= trial_.options_.delays) return {};
    const std::uint64_t id = ++kept_ids_;
    kept_.emplace_back(id, std::move(chunk));
    if (kept_.size() > static_cast<std::size_t>(trial_.options_.window))
      trial_.report(fmt::format("peer {} has {} chunks, and {} buffers", number_, kept_.size(),
                                trial_.options_.window));
    trial_.scheduler_.after(trial_.draw_delay(20ms), [this, id] {
      std::erase_if(kept_, [id](const auto& entry) { return entry.first == id; });
    });
    return {};
  }
  Status on_contribution(net::Session&, std::string contribution) override {
    receive({net::FrameKind::contribution, {}, hash_of(contribution)});
    return {};
  }
  void on_running() override { receive({net::FrameKind::running, {}, 0}); }
  void on_alive(net::Session&) override {}
  void on_goodbye(net::Session&) override {
    close_soon();
    if (!closing_ && received_ != other().sent().size())
      trial_.report(fmt::format("the close reached peer {} before all that was sent", number_));
  }
  /// A failure is harmless to an end that has closed and misses nothing.
  void on_failure(net::Session&, Error error) override {
    if (closing_ && (closes_early_ || (other().left_ == 0 && received_ == other().sent().size())))
      return;
    failed_ = true;
    if (!trial_.options_.may_lose) trial_.report(error.message);
  }
  void on_abort(net::Session&, Error error) override { trial_.report(error.message); }

 private:
  std::size_t index() const { return static_cast<std::size_t>(number_); }
  End& other() { return *trial_.ends_[1 - index()]; }

  /// Closes once it has sent everything; an end that does not close early, once it has received
  /// everything too.
  void close_if_done() {
    if (session_->finished()) session_->close();
    if (left_ > 0 || closing_ || session_->closed()) return;
    if (!closes_early_ && (other().left_ > 0 || received_ < other().sent().size())) return;
    closing_ = true;
    session_->say_goodbye();
  }

  void receive(const SentFrame& came) {
    const std::vector<SentFrame>& due = other().sent();
    ++trial_.report_.frames;
    trial_.add_to_hash({index(), static_cast<std::uint64_t>(came.kind), came.head.round,
                        came.head.offset, came.hash,
                        static_cast<std::uint64_t>(trial_.scheduler_.now().count())});
    if (received_ == due.size())
      return trial_.report(fmt::format("peer {} receives what was not sent", number_));
    const SentFrame& sent = due[received_++];
    const bool same =
        came.kind == sent.kind && came.hash == sent.hash && came.head.round == sent.head.round &&
        came.head.offset == sent.head.offset && came.head.total == sent.head.total &&
        came.head.control == sent.head.control && came.head.link_state == sent.head.link_state &&
        came.head.donor_steps == sent.head.donor_steps;
    if (!same)
      trial_.report(
          fmt::format("frame {1} at peer {0} is not what was sent: kind {2} of round {3}, and not "
                      "kind {4} of round {5}",
                      number_, received_ - 1, static_cast<int>(came.kind), came.head.round,
                      static_cast<int>(sent.kind), sent.head.round));
    close_soon();
  }

  /// Later, because the session is in the middle of a call.
  void close_soon() {
    trial_.scheduler_.after(0ns, [this] { close_if_done(); });
  }

  /// Sends one message, and the next one later.
  void send_next() {
    if (session_->closed() || closing_) return;
    if (left_ == 0) {
      close_if_done();
      return other().close_if_done();
    }
    RandomStream& random = trial_.random_;
    const std::uint32_t kind = random.below(10);
    if (kind >= 3 && !send_row()) return;  // continues when the row is free
    if (kind == 0) {
      std::string contribution(1 + random.below(60), static_cast<char>('a' + random.below(26)));
      sent_.push_back({net::FrameKind::contribution, {}, hash_of(contribution)});
      session_->send_contribution(std::move(contribution));
    } else if (kind == 1) {
      sent_.push_back({net::FrameKind::running, {}, 0});
      session_->send_running();
    } else if (kind == 2) {
      ChunkHeader head{number_, 1 - number_, round_, 0, 0, 0, ControlMessage::propose_round};
      head.donor_steps = random.below(1000);
      sent_.push_back({net::FrameKind::control, head, hash_of(std::span<const float>())});
      session_->send(Chunk(head, {}, {}));
    }
    --left_;
    trial_.scheduler_.after(trial_.draw_delay(trial_.options_.pause), [this] { send_next(); });
  }

  /// False while the row is leased.
  bool send_row() {
    TrialRow& row = rows_[round_ % rows_.size()];
    if (!row.free()) return row.wait_until_free(), false;
    RandomStream& random = trial_.random_;
    const auto& options = trial_.options_;
    row.values.resize(1 + random.below(static_cast<std::uint32_t>(options.longest_row)));
    const auto first = static_cast<float>(random.below(1 << 20));
    for (std::size_t k = 0; k < row.values.size(); ++k)
      row.values[k] = first + static_cast<float>(k);
    const std::size_t part = options.longest_chunk / 8 + 1 +
                             random.below(static_cast<std::uint32_t>(options.longest_chunk));
    std::vector<Chunk> chunks;
    for (std::size_t offset = 0; offset < row.values.size(); offset += part) {
      const auto values = std::span<const float>(row.values)
                              .subspan(offset, std::min(part, row.values.size() - offset));
      const ChunkHeader head{number_, 1 - number_, round_, 0, offset, row.values.size()};
      sent_.push_back({net::FrameKind::data, head, hash_of(values)});
      chunks.emplace_back(head, values, row.lease());
    }
    ++round_;
    for (Chunk& chunk : chunks) session_->send(std::move(chunk));
    return true;
  }

  Trial& trial_;
  int number_;
  int left_;
  net::SocketTraffic traffic_;
  net::HashMemo hashes_;
  std::array<TrialRow, 3> rows_;
  std::vector<SentFrame> sent_;
  std::vector<std::pair<std::uint64_t, Chunk>> kept_;
  std::unique_ptr<net::Session> session_;
  std::size_t received_ = 0;
  std::uint64_t kept_ids_ = 0;
  Round round_ = 0;
  Time waited_{0};
  bool closing_ = false, failed_ = false, closes_early_ = false;
};

Trial::Trial(std::uint64_t seed) : random_(seed, kNoPeer, Purpose::scenario, 5) {
  options_.latency = draw_delay(random_.below(2) == 0 ? 1ms : 40ms);
  options_.pause = draw_delay(random_.below(2) == 0 ? 5ms : 100ms);
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
  for (std::size_t k = 0; k < 2; ++k) ends_[k] = std::make_unique<End>(*this, static_cast<int>(k));
}

void Trial::report(std::string sentence) {
  if (report_.violations.size() < kMostViolations)
    report_.violations.push_back(std::move(sentence));
}

void Trial::add_to_hash(std::initializer_list<std::uint64_t> words) {
  std::vector<std::uint64_t> all{report_.hash};
  all.insert(all.end(), words);
  report_.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
}

/// Resets, detected at one end or at both; corrupted bytes; and times in which nothing arrives, on
/// one connection or on any.
void Trial::plan_faults() {
  const Time within = options_.messages * options_.pause / 2 + 100ms;
  const auto when = [&] { return draw_delay(within); };
  for (std::uint32_t resets = random_.below(10); resets > 0; --resets)
    scheduler_.after(when(), [this] {
      ++report_.breaks;
      const int end = static_cast<int>(random_.below(2));
      const bool both = random_.below(2) == 0;
      const auto pair = pair_;
      pair->reset(end, draw_delay(20ms));
      if (both) pair->reset(1 - end, draw_delay(20ms));
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
    const Time lasts = draw_delay(options_.may_lose ? 3 * kFailureTimeout : kFailureTimeout / 4);
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
  const Time interval = kFailureTimeout / 16;
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
  for (auto& end : ends_) end->begin();
  scheduler_.after(kFailureTimeout / 16, [this] { tick(); });
  scheduler_.run();
  report_.lost = ends_[0]->failed() || ends_[1]->failed();
  for (std::size_t k = 0; k < 2; ++k) {
    End& end = *ends_[k];
    if (!end.session().closed())
      report(fmt::format("peer {} is not done after {} s", k, kLimit.count() / 1'000'000'000));
    if (!end.leases_are_back())
      report(fmt::format("peer {} waits for leases, though its session is closed", k));
    const std::size_t sent = ends_[1 - k]->sent().size();
    if (!report_.lost && !end.closes_early() && end.received() != sent)
      report(fmt::format("of {} frames {} arrived at peer {}", sent, end.received(), k));
  }
  return std::move(report_);
}

}  // namespace

TrialReport try_session(std::uint64_t seed) { return Trial(seed).run(); }

}  // namespace gossamer::simulator
