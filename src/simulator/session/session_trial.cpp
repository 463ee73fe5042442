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
#include "simulator/session/line.hpp"
#include "simulator/session/row.hpp"

namespace gossamer::net::sim {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kSilence = 4s;
constexpr gossip::Time kLimit =
    60s;  // of a trial: some seconds of talk and faults, and what they hold up
constexpr gossip::Time kAfterGoodbye = 1s;  // that one waits for a last word
constexpr std::size_t kMostViolations = 5;

/// What was said, as it must be heard.
struct Said {
  FrameKind kind = FrameKind::data;
  gossip::ChunkHeader head;
  std::uint64_t hash = 0;  ///< of values or text
};

std::uint64_t hash_of(std::span<const float> values) { return hash64(std::as_bytes(values)); }
std::uint64_t hash_of(const std::string& text) { return hash64(std::as_bytes(std::span(text))); }

class Trial {
 public:
  explicit Trial(std::uint64_t seed);
  SessionVerdict run();

 private:
  class End;
  struct Options {
    gossip::Time latency{0}, pause{0};  ///< there; between two messages
    std::size_t room = 0, longest_row = 0, longest_chunk = 0;
    int messages = 0, window = 0;
    double keeps = 0;  ///< the share of chunks that their receiver keeps for a while
    bool may_lose = false;
  };

  void plan_faults();
  gossip::Time a_while(gossip::Time most) {
    return gossip::Time(std::llround(static_cast<double>(most.count()) * chance_.next_double()));
  }
  void call(int end, gossip::Time pause);
  void come(int end);
  void connect(bool resumes);
  void hold(int end, bool held);
  void tick();
  void complain(std::string sentence);
  void note(std::initializer_list<std::uint64_t> words);

  gossip::VirtualScheduler scheduler_;
  RandomStream chance_;
  Options options_;
  std::shared_ptr<Line> line_;      ///< the newest,
  std::unique_ptr<Socket> answer_;  ///< and its end 0, until the answer is there
  std::array<int, 2> held_{};       ///< what keeps anything from coming at an end
  std::array<bool, 2> calling_{};
  std::array<std::unique_ptr<End>, 2> ends_;
  SessionVerdict verdict_;
};

class Trial::End final : public SessionOwner {
 public:
  End(Trial& trial, int number) : trial_(trial), number_(number), left_(trial.options_.messages) {
    hurries_ = trial.chance_.below(4) == 0;
    SessionOptions options;
    options.incoming = {7, 1 - number, number};
    options.name = fmt::format("peer {}", 1 - number);
    options.window = trial.options_.window;
    options.failure_timeout = kSilence;
    options.heartbeat = kSilence / 4;
    options.hashes = &hashes_;
    options.call_again = [this](gossip::Time pause) { trial_.call(number_, pause); };
    for (Row& row : rows_)
      row.on_free = [this] { trial_.scheduler_.after(0ns, [this] { speak(); }); };
    session_ = std::make_unique<Session>(trial.scheduler_, std::move(options), traffic_, *this);
  }
  ~End() override { kept_.clear(); }

  Session& session() { return *session_; }
  const std::vector<Said>& said() const { return said_; }
  std::size_t heard() const { return heard_; }
  bool failed() const { return failed_; }
  bool hurries() const { return hurries_; }
  bool leases_are_back() const { return std::ranges::all_of(rows_, &Row::free); }

  void begin() {
    trial_.scheduler_.after(trial_.a_while(trial_.options_.pause), [this] { speak(); });
  }

  void tick(gossip::Time now, gossip::Time counted) {
    if (session_->closed()) return;
    session_->tick(now, counted);
    if (!leaving_ || session_->closed()) return;
    // One that said goodbye may have gone while its last word, that it has ours too, was lost.
    waited_ = session_->heard_goodbye() && session_->flushed() ? waited_ + counted : 0ns;
    if (session_->finished() || waited_ > kAfterGoodbye) session_->close();
  }

  Status deliver(gossip::Chunk chunk) override {
    const bool note = chunk.head.control != gossip::ControlMessage::none;
    hear({note ? FrameKind::control : FrameKind::data, chunk.head, hash_of(chunk.values)});
    if (note || trial_.chance_.next_double() >= trial_.options_.keeps) return {};
    const std::uint64_t id = ++kept_ids_;
    kept_.emplace_back(id, std::move(chunk));
    if (kept_.size() > static_cast<std::size_t>(trial_.options_.window))
      trial_.complain(fmt::format("peer {} has {} chunks, and {} buffers", number_, kept_.size(),
                                  trial_.options_.window));
    trial_.scheduler_.after(trial_.a_while(20ms), [this, id] {
      std::erase_if(kept_, [id](const auto& entry) { return entry.first == id; });
    });
    return {};
  }
  Status told(Session&, std::string statement) override {
    hear({FrameKind::statement, {}, hash_of(statement)});
    return {};
  }
  void network_runs() override { hear({FrameKind::running, {}, 0}); }
  void greeted(Session&) override {}
  void left(Session&) override {
    leave_soon();
    if (!leaving_ && heard_ != other().said().size())
      trial_.complain(fmt::format("a goodbye came to peer {} before all that was said", number_));
  }
  /// Of no account to one that has said goodbye, and misses nothing.
  void failed(Session&, Error error) override {
    if (leaving_ && (hurries_ || (other().left_ == 0 && heard_ == other().said().size()))) return;
    failed_ = true;
    if (!trial_.options_.may_lose) trial_.complain(error.message);
  }
  void aborted(Session&, Error error) override { trial_.complain(error.message); }

 private:
  std::size_t index() const { return static_cast<std::size_t>(number_); }
  End& other() { return *trial_.ends_[1 - index()]; }

  /// Says goodbye when it has said all; but for one in a hurry, which drops what still comes, when
  /// it has heard all too.
  void leave() {
    if (session_->finished()) session_->close();
    if (left_ > 0 || leaving_ || session_->closed()) return;
    if (!hurries_ && (other().left_ > 0 || heard_ < other().said().size())) return;
    leaving_ = true;
    session_->say_goodbye();
  }

  void hear(const Said& came) {
    const std::vector<Said>& due = other().said();
    ++trial_.verdict_.frames;
    trial_.note({index(), static_cast<std::uint64_t>(came.kind), came.head.round, came.head.offset,
                 came.hash, static_cast<std::uint64_t>(trial_.scheduler_.now().count())});
    if (heard_ == due.size())
      return trial_.complain(fmt::format("peer {} hears what nobody said", number_));
    const Said& said = due[heard_++];
    const bool same =
        came.kind == said.kind && came.hash == said.hash && came.head.round == said.head.round &&
        came.head.offset == said.head.offset && came.head.total == said.head.total &&
        came.head.control == said.head.control && came.head.link_state == said.head.link_state &&
        came.head.donor_steps == said.head.donor_steps;
    if (!same)
      trial_.complain(
          fmt::format("what comes to peer {} as number {} is not what was said: kind {} of round "
                      "{}, and not kind {} of round {}",
                      number_, heard_ - 1, static_cast<int>(came.kind), came.head.round,
                      static_cast<int>(said.kind), said.head.round));
    leave_soon();
  }

  /// Not in the middle of a call of the session's.
  void leave_soon() {
    trial_.scheduler_.after(0ns, [this] { leave(); });
  }

  /// One message, and later the next.
  void speak() {
    if (session_->closed() || leaving_) return;
    if (left_ == 0) {
      leave();
      return other().leave();
    }
    RandomStream& chance = trial_.chance_;
    const std::uint32_t kind = chance.below(10);
    if (kind >= 3 && !say_row()) return;  // goes on when the row is free
    if (kind == 0) {
      std::string statement(1 + chance.below(60), static_cast<char>('a' + chance.below(26)));
      said_.push_back({FrameKind::statement, {}, hash_of(statement)});
      session_->tell(std::move(statement));
    } else if (kind == 1) {
      said_.push_back({FrameKind::running, {}, 0});
      session_->tell_running();
    } else if (kind == 2) {
      gossip::ChunkHeader head{
          number_, 1 - number_, round_, 0, 0, 0, gossip::ControlMessage::propose_round};
      head.donor_steps = chance.below(1000);
      said_.push_back({FrameKind::control, head, hash_of(std::span<const float>())});
      session_->send(gossip::Chunk(head, {}, {}));
    }
    --left_;
    trial_.scheduler_.after(trial_.a_while(trial_.options_.pause), [this] { speak(); });
  }

  /// False while its memory is still read.
  bool say_row() {
    Row& row = rows_[round_ % rows_.size()];
    if (!row.free()) return row.want(), false;
    RandomStream& chance = trial_.chance_;
    const auto& options = trial_.options_;
    row.values.resize(1 + chance.below(static_cast<std::uint32_t>(options.longest_row)));
    const auto first = static_cast<float>(chance.below(1 << 20));
    for (std::size_t k = 0; k < row.values.size(); ++k)
      row.values[k] = first + static_cast<float>(k);
    const std::size_t part = options.longest_chunk / 8 + 1 +
                             chance.below(static_cast<std::uint32_t>(options.longest_chunk));
    std::vector<gossip::Chunk> chunks;
    for (std::size_t offset = 0; offset < row.values.size(); offset += part) {
      const auto values = std::span<const float>(row.values)
                              .subspan(offset, std::min(part, row.values.size() - offset));
      const gossip::ChunkHeader head{number_, 1 - number_, round_, 0, offset, row.values.size()};
      said_.push_back({FrameKind::data, head, hash_of(values)});
      chunks.emplace_back(head, values, row.lend());
    }
    ++round_;
    for (gossip::Chunk& chunk : chunks) session_->send(std::move(chunk));
    return true;
  }

  Trial& trial_;
  int number_;
  int left_;
  Traffic traffic_;
  HashMemo hashes_;
  std::array<Row, 3> rows_;
  std::vector<Said> said_;
  std::vector<std::pair<std::uint64_t, gossip::Chunk>> kept_;
  std::unique_ptr<Session> session_;
  std::size_t heard_ = 0;
  std::uint64_t kept_ids_ = 0;
  gossip::Round round_ = 0;
  gossip::Time waited_{0};
  bool leaving_ = false, failed_ = false, hurries_ = false;
};

Trial::Trial(std::uint64_t seed) : chance_(seed, kNoPeer, Purpose::scenario, 5) {
  options_.latency = a_while(chance_.below(2) == 0 ? 1ms : 40ms);
  options_.pause = a_while(chance_.below(2) == 0 ? 5ms : 100ms);
  options_.room = std::size_t{1} << (9 + chance_.below(9));
  // Rows are small, and copied; or large, and lent until the other side has them.
  options_.longest_row = chance_.below(3) == 0 ? 40000 : 400;
  options_.longest_chunk = 1 + chance_.below(static_cast<std::uint32_t>(options_.longest_row));
  options_.longest_chunk = std::max(options_.longest_chunk, options_.longest_row / 16);
  options_.messages = 1 + static_cast<int>(chance_.below(options_.longest_row > 400 ? 12 : 60));
  // All of it is there and back within some seconds.
  const double ways = 10 / std::max(2 * gossip::seconds(options_.latency), 1e-6);
  const double bytes = 4.0 * options_.messages * static_cast<double>(options_.longest_row);
  options_.room = std::max(options_.room, static_cast<std::size_t>(bytes / ways));
  options_.window = 1 + static_cast<int>(chance_.below(4));
  options_.keeps = chance_.next_double();
  options_.may_lose = chance_.below(8) == 0;
  for (std::size_t k = 0; k < 2; ++k) ends_[k] = std::make_unique<End>(*this, static_cast<int>(k));
}

void Trial::complain(std::string sentence) {
  if (verdict_.violations.size() < kMostViolations)
    verdict_.violations.push_back(std::move(sentence));
}

void Trial::note(std::initializer_list<std::uint64_t> words) {
  std::vector<std::uint64_t> all{verdict_.hash};
  all.insert(all.end(), words);
  verdict_.hash = hash64(std::as_bytes(std::span<const std::uint64_t>(all)));
}

/// Resets, told to one end or both; bytes that are damaged; times in which nothing comes, on one
/// connection or on any.
void Trial::plan_faults() {
  const gossip::Time within = options_.messages * options_.pause / 2 + 100ms;
  const auto when = [&] { return a_while(within); };
  for (std::uint32_t resets = chance_.below(10); resets > 0; --resets)
    scheduler_.after(when(), [this] {
      ++verdict_.breaks;
      const int end = static_cast<int>(chance_.below(2));
      const bool both = chance_.below(2) == 0;
      const auto line = line_;
      line->reset(end, a_while(20ms));
      if (both) line->reset(1 - end, a_while(20ms));
    });
  // Of a frame that is damaged twice its sender is believed to send it so.
  for (std::uint32_t damages = options_.may_lose ? chance_.below(6) : chance_.below(2); damages > 0;
       --damages)
    scheduler_.after(when(), [this] { line_->damage(static_cast<int>(chance_.below(2))); });
  // On one connection until there is another, or on any for a while: one after the other could last
  // longer than the silence.
  const std::uint32_t silent = chance_.below(3);
  if (silent == 1)
    scheduler_.after(when(), [this] { line_->hold(static_cast<int>(chance_.below(2)), true); });
  if (silent == 2) {
    const gossip::Time lasts = a_while(options_.may_lose ? 3 * kSilence : kSilence / 4);
    const int which = static_cast<int>(chance_.below(3));
    const gossip::Time from = when();
    for (int end = 0; end < 2; ++end) {
      if (which < 2 && end != which) continue;
      scheduler_.after(from, [this, end] { hold(end, true); });
      scheduler_.after(from + lasts, [this, end] { hold(end, false); });
    }
  }
}

/// Nothing comes at `end` over any connection.
void Trial::hold(int end, bool held) {
  held_[static_cast<std::size_t>(end)] += held ? 1 : -1;
  line_->hold(end, held);
}

/// End 0 is the one that calls; end 1 asks it to. A call is there after a way; its answer back
/// after another.
void Trial::call(int end, gossip::Time pause) {
  if (std::exchange(calling_[static_cast<std::size_t>(end)], true)) return;
  scheduler_.after(pause + options_.latency, [this, end] { come(end); });
}

void Trial::come(int end) {
  const auto caller = static_cast<std::size_t>(end);
  Session& here = ends_[caller]->session();
  Session& there = ends_[1 - caller]->session();
  if (here.closed() || !calling_[caller]) return;
  if (held_[0] > 0 || held_[1] > 0 || chance_.below(8) == 0) {
    scheduler_.after(50ms, [this, end] { come(end); });
    return;
  }
  if (there.closed()) {
    scheduler_.after(options_.latency, [this, caller] {
      calling_[caller] = false;
      ends_[caller]->session().give_up();
    });
    return;
  }
  if (end == 0) return connect(true);
  call(0, 0ns);
  scheduler_.after(1s, [this] { come(1); });  // unless there is a connection by then
}

void Trial::connect(bool resumes) {
  line_ = std::make_shared<Line>(scheduler_, chance_, LineOptions{options_.latency, options_.room});
  for (int end = 0; end < 2; ++end)
    if (held_[static_cast<std::size_t>(end)] > 0) line_->hold(end, true);
  calling_[1] = false;
  ends_[1]->session().attach(line_->socket(1), resumes);
  answer_ = line_->socket(0);
  scheduler_.after(options_.latency, [this, resumes] {
    calling_[0] = false;
    auto socket = std::exchange(answer_, nullptr);
    if (!ends_[0]->session().closed()) ends_[0]->session().attach(std::move(socket), resumes);
  });
}

void Trial::tick() {
  const gossip::Time interval = kSilence / 16;
  for (auto& end : ends_) end->tick(scheduler_.now(), interval);
  const bool over =
      std::ranges::all_of(ends_, [](const auto& end) { return end->session().closed(); });
  if (over || scheduler_.now() > kLimit) return scheduler_.stop();
  scheduler_.after(interval, [this] { tick(); });
}

SessionVerdict Trial::run() {
  calling_[0] = true;
  connect(false);
  plan_faults();
  for (auto& end : ends_) end->begin();
  scheduler_.after(kSilence / 16, [this] { tick(); });
  scheduler_.run();
  verdict_.lost = ends_[0]->failed() || ends_[1]->failed();
  for (std::size_t k = 0; k < 2; ++k) {
    End& end = *ends_[k];
    if (!end.session().closed())
      complain(fmt::format("peer {} is not done after {} s", k, kLimit.count() / 1'000'000'000));
    if (!end.leases_are_back())
      complain(fmt::format("peer {} waits for leases, though its session is closed", k));
    const std::size_t said = ends_[1 - k]->said().size();
    if (!verdict_.lost && !end.hurries() && end.heard() != said)
      complain(fmt::format("of {} frames {} came to peer {}", said, end.heard(), k));
  }
  return std::move(verdict_);
}

}  // namespace

SessionVerdict try_session(std::uint64_t seed) { return Trial(seed).run(); }

}  // namespace gossamer::net::sim
