#include "simulator/world/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.hpp"
#include "simulator/world/process.hpp"

namespace gossamer::gossip::sim {
namespace {

constexpr double kBytesPerMegabit = 1e6 / 8;
/// A NaN as a float, as each of two bf16, and as the scale of an int8 block.
constexpr float kNotFinite = std::bit_cast<float>(0x7FC07FC0U);

}  // namespace

/// Where a chunk lies at its receiver until the exchange is done with it.
class Wire::Buffer final : public BufferOwner {
 public:
  explicit Buffer(Wire& wire) : wire_(wire) {}
  Chunk fill(const ChunkHeader& head, std::vector<float> values) {
    values_ = std::move(values);
    lent_ = true;
    return Chunk(head, values_, Lease(*this));
  }
  void give_back() override {
    lent_ = false;
    wire_.returned();
  }
  bool lent() const { return lent_; }

 private:
  Wire& wire_;
  std::vector<float> values_;
  bool lent_ = false;
};

Wire::Wire(World& world, const Path& path, int from, int to)
    : world_(world),
      path_(path),
      from_(from),
      to_(to),
      capacity_(world.scenario().bandwidth_mbit_s * kBytesPerMegabit) {
  for (int k = 0; k < world.scenario().window; ++k)
    buffers_.push_back(std::make_unique<Buffer>(*this));
}

Wire::~Wire() = default;

// Nothing happens to a chunk within send(), as with a socket.
void Wire::send(Chunk chunk) {
  if (closed_) return;
  lent_ += chunk.values.size();
  waiting_.push_back(std::move(chunk));
  std::uint64_t& most = world_.trace().most_lent[{from_, to_}];
  most = std::max(most, lent_);
  fill_soon();
}

void Wire::fill_soon() {
  if (std::exchange(fill_due_, true)) return;
  world_.at(world_.now(), [this] {
    fill_due_ = false;
    fill();
  });
}

/// How much later a packet comes because it was lost, perhaps more than once, and its sender did
/// not hear of it.
Time Wire::sent_again() {
  const Scenario& scenario = world_.scenario();
  double later = 0, pause = 2 * (scenario.latency_ms + scenario.jitter_ms);
  for (int losses = 0; scenario.loss > 0 && losses < kMostLosses && world_.chance() < scenario.loss;
       ++losses, pause *= 2)
    later += pause;
  return from_milliseconds(later);
}

// What comes behind a packet that is late waits for it, as TCP has it. Of one that travels twice
// only the bandwidth is seen.
Time Wire::leaves(std::uint64_t bytes) {
  const Time now = world_.now();
  const Scenario& scenario = world_.scenario();
  const Time jitter =
      from_milliseconds(scenario.jitter_ms * (scenario.jitter_ms > 0 ? world_.chance() : 0));
  const Time passed = capacity_.pass({now, now}, bytes).last;
  if (scenario.duplication > 0 && world_.chance() < scenario.duplication)
    capacity_.pass({now, now}, bytes);
  const Time arrives =
      passed + from_milliseconds(scenario.latency_ms) + jitter + sent_again() + path_.delay;
  return last_arrival_ = std::max(last_arrival_, arrives);
}

void Wire::fill() {
  Process& sender = world_.process_of(from_);
  if (sender.paused() || closed_) return;
  bool moved = false;
  while (!waiting_.empty() &&
         on_the_way_.size() < static_cast<std::size_t>(world_.scenario().buffer_chunks)) {
    const Chunk& chunk = waiting_.front();
    Travelling& sent = on_the_way_.emplace_back();
    sent.head = chunk.head;
    sent.values.assign(chunk.values.begin(), chunk.values.end());
    if (spoils_ && sent.head.offset == 0 && !sent.values.empty()) {
      sent.spoiled = std::exchange(spoils_, false);
      sent.values.front() = kNotFinite;
    }
    sent.arrives = leaves(sent.bytes());
    world_.at(sent.arrives, [this] { pump(); });
    lent_ -= chunk.values.size();
    waiting_.pop_front();
    moved = true;
  }
  if (waiting_.empty() && std::exchange(goodbye_due_, false)) {
    said_goodbye_ = true;
    say(&Travelling::goodbye);
  }
  if (moved) sender.touch();
}

bool Wire::reads() const {
  return std::ranges::any_of(buffers_, [](const auto& buffer) { return !buffer->lent(); });
}

void Wire::greet() { say(&Travelling::greeting); }

void Wire::say_goodbye() {
  goodbye_due_ = true;
  fill_soon();
}

void Wire::say(bool Travelling::* word) {
  Travelling& said = on_the_way_.emplace_back();
  said.*word = true;
  said.arrives = leaves(said.bytes());
  world_.at(said.arrives, [this] { pump(); });
}

Wire::Buffer* Wire::free_buffer() {
  const auto found =
      std::ranges::find_if(buffers_, [](const auto& buffer) { return !buffer->lent(); });
  return found == buffers_.end() ? nullptr : found->get();
}

void Wire::pump() {
  Process& receiver = world_.process_of(to_);
  Connection& connection = world_.connection(from_, to_);
  while (!on_the_way_.empty() && on_the_way_.front().arrives <= world_.now() && path_.stops == 0 &&
         !shut_ && !receiver.paused()) {
    if (!reads() && !connection.leaves(to_)) return;
    if (receiver.reads_again > world_.now()) {
      if (!std::exchange(pump_due_, true))
        world_.at(receiver.reads_again, [this] {
          pump_due_ = false;
          pump();
        });
      return;
    }
    Travelling came = std::move(on_the_way_.front());
    on_the_way_.pop_front();
    fill();
    if (came.closing || damaged_)
      return connection.lost(to_, came.closing
                                      ? fmt::format("the connection to peer {} was closed", from_)
                                      : fmt::format("a frame of peer {} is damaged", from_));
    if (came.greeting) {
      connection.greeted(to_);
      continue;
    }
    if (came.goodbye) {
      connection.parted(to_);
      continue;
    }
    if (connection.leaves(to_)) continue;
    if (receiver.read_bytes_per_second > 0)
      receiver.reads_again = world_.now() + from_seconds(static_cast<double>(came.bytes()) /
                                                         receiver.read_bytes_per_second);
    const ChunkHeader& head = came.head;
    const LinkState& link = head.link_state;
    const std::uint64_t subject = std::uint64_t{link.version} << 32 |
                                  static_cast<std::uint64_t>(link.end) << 16 |
                                  static_cast<std::uint64_t>(link.neighbour);
    const std::uint64_t channel = head.channel | (link.reachability_only ? 1U : 0U);
    world_.note({static_cast<std::uint64_t>(head.from) << 32 | static_cast<std::uint64_t>(head.to),
                 head.round, channel << 32 | static_cast<std::uint64_t>(head.control), head.offset,
                 head.total | subject | head.donor_steps,
                 static_cast<std::uint64_t>(world_.now().count())});
    Chunk chunk = came.values.empty() ? Chunk(head, {}, {})
                                      : free_buffer()->fill(head, std::move(came.values));
    const Status status = receiver.deliver(std::move(chunk));
    if (status.ok() && came.spoiled)
      world_.trace().complaints.push_back(
          fmt::format("peer {} took a NaN from peer {}", to_, from_));
    if (!status.ok()) {
      if (!came.spoiled) world_.trace().complaints.push_back(status.error().message);
      return connection.lost(to_, status.error().message);
    }
  }
}

void Wire::returned() {
  listen();
  if (!std::exchange(pump_due_, true))
    world_.at(world_.now(), [this] {
      pump_due_ = false;
      pump();
    });
}

void Wire::close(bool told, bool cuts_off) {
  closed_ = true;
  waiting_.clear();
  lent_ = 0;
  if (cuts_off && !on_the_way_.empty()) {
    const auto kept =
        static_cast<std::size_t>(world_.chance() * static_cast<double>(on_the_way_.size() + 1));
    on_the_way_.resize(std::min(kept, on_the_way_.size()));
  }
  if (told && !shut_) {
    Travelling& news = on_the_way_.emplace_back();
    news.closing = true;
    const Time passing =
        Time(std::llround(static_cast<double>(kResetTime.count()) * world_.chance()));
    news.arrives = last_arrival_ = std::max(last_arrival_, world_.now() + passing);
    world_.at(news.arrives, [this] { pump(); });
  }
  hear();
}

void Wire::shut() {
  shut_ = true;
  on_the_way_.clear();
}

bool Wire::mute() const {
  const Process& sender = world_.process_of(from_);
  return path_.stops > 0 || closed_ || sender.paused() || !sender.alive();
}

void Wire::hear() {
  if (mute_ == mute()) return;
  mute_ = !mute_;
  if (!mute_) return;
  heard_ = world_.now() + from_milliseconds(world_.scenario().latency_ms);
  watch();
}

void Wire::listen() {
  if (!mute_ || shut_) return;
  heard_ = world_.now();
  watch();
}

void Wire::watch() {
  const Time since = heard_;
  world_.at(since + from_seconds(world_.scenario().silence), [this, since] {
    const Process& receiver = world_.process_of(to_);
    if (!mute_ || heard_ != since || shut_ || receiver.paused() || !receiver.alive() || !reads())
      return;
    world_.connection(from_, to_)
        .lost(to_,
              fmt::format("nothing came from peer {} for {} s", from_, world_.scenario().silence));
  });
}

/// What is sent while the link is not there is dropped.
class Connection::Gate final : public Link {
 public:
  Gate(Connection& connection, int from) : connection_(connection), from_(from) {}
  void send(Chunk chunk) override {
    const std::size_t k = connection_.index(from_);
    if (connection_.states_[k] == State::up && !connection_.leaving_[k] && !connection_.parted_[k])
      connection_.wire(from_).send(std::move(chunk));
  }

 private:
  Connection& connection_;
  int from_;
};

Connection::Connection(World& world, int a, int b)
    : world_(world),
      ends_{a, b},
      lives_{world.life_of(a), world.life_of(b)},
      wires_{std::make_unique<Wire>(world, paths_[0], a, b),
             std::make_unique<Wire>(world, paths_[1], b, a)},
      gates_{std::make_unique<Gate>(*this, a), std::make_unique<Gate>(*this, b)} {}

Connection::~Connection() = default;

Link& Connection::link(int from) { return *gates_[index(from)]; }

void Connection::stop(int from) {
  ++paths_[index(from)].stops;
  wire(from).hear();
}

void Connection::go(int from) {
  --paths_[index(from)].stops;
  wire(from).hear();
  wire(from).pump();
}

void Connection::tell(int end, bool back) {
  const Process& process = world_.process_of(end);
  const Round round = process.round_of(end);
  world_.trace().links.push_back(
      {back, lives_[index(end)], lives_[index(other(end))], opening_, round, world_.now()});
  world_.tell(fmt::format("peer {}, in round {}: the link to peer {} is {}", end, round, other(end),
                          back ? "back" : "lost"));
  world_.note({static_cast<std::uint64_t>(end) << 32 | static_cast<std::uint64_t>(other(end)),
               back ? 1U : 0U, round});
}

/// Whether the link was there at this end.
bool Connection::close(int end, bool told, bool cuts_off) {
  if (state(end) == State::down) return false;
  wire(other(end)).shut();
  wire(end).close(told, cuts_off);
  return std::exchange(state(end), State::down) == State::up;
}

void Connection::find_broken(int end, bool cuts_off, const std::string& why) {
  const bool was_up = close(end, true, cuts_off);
  if (!world_.process_of(end).alive()) return;
  world_.process_of(end).touch();  // what it had lent is its own again
  if (parted_[index(end)] || leaving_[index(end)]) return;
  if (was_up) {
    tell(end, false);
    world_.process_of(end).lost(end, other(end), why);
  }
  if (end == ends_[0]) call_later();
}

void Connection::lost(int end, const std::string& why) { find_broken(end, false, why); }

void Connection::ended(int end, bool told) { close(end, told, told); }

void Connection::broken_off(int end) {
  find_broken(end, true, fmt::format("the connection to peer {} broke", other(end)));
}

void Connection::leave(int end) {
  leaving_[index(end)] = true;
  if (state(end) == State::up) wire(end).say_goodbye();
}

bool Connection::may_go(int end) const {
  const std::size_t k = index(end);
  return states_[k] != State::up || parted_[k] || wires_[k]->parted();
}

void Connection::parted(int end) {
  parted_[index(end)] = true;
  if (!leaves(end)) world_.process_of(end).left(end, other(end));
}

void Connection::begun_again(int end) {
  if (end == ends_[0]) call_later();
}

/// One call at a time.
void Connection::call_later() {
  if (std::exchange(calling_, true)) return;
  const Time pause = from_seconds(world_.scenario().call_again * (0.5 + 0.5 * world_.chance()));
  world_.at(world_.now() + pause, [this] { call(); });
}

void Connection::call() {
  calling_ = false;
  const Process& caller = world_.process_of(ends_[0]);
  if (parted_[0] || states_[0] != State::down || !caller.alive() || caller.done() || world_.over())
    return;
  if (caller.paused()) return call_later();
  calling_ = true;
  world_.at(world_.now() + from_milliseconds(world_.scenario().latency_ms) + paths_[0].delay,
            [this] { answer(); });
}

bool Connection::answers() const {
  for (std::size_t k = 0; k < 2; ++k) {
    const Process& process = world_.process_of(ends_[k]);
    if (states_[k] != State::down || paths_[k].stops > 0 || !process.alive() || process.paused() ||
        process.done())
      return false;
  }
  return true;
}

/// One that lets nobody in, or cannot be heard, is called again.
void Connection::answer() {
  calling_ = false;
  if (!answers()) return call_later();
  ++opening_;
  states_ = {State::opening, State::opening};
  for (std::size_t k = 0; k < 2; ++k) {
    lives_[k] = world_.life_of(ends_[k]);
    old_wires_.push_back(std::move(wires_[k]));
    wires_[k] = std::make_unique<Wire>(world_, paths_[k], ends_[k], ends_[1 - k]);
  }
  wires_[1]->greet();
}

void Connection::greeted(int end) {
  GOSSAMER_CHECK(state(end) == State::opening, "a first word on a connection that is there");
  state(end) = State::up;
  if (end == ends_[0]) wire(end).greet();  // before anything else is said
  tell(end, true);
  world_.process_of(end).back(end, other(end));
}

}  // namespace gossamer::gossip::sim
