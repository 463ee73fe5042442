#include "gossip/exchange/buffered_mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gossamer::gossip {
namespace {

constexpr std::size_t kRoundsWatched =
    64;  // a row that is later than so many rounds tells nothing about lateness
/// How many times its patience a peer waits for a neighbour that has missed so many rounds; 0: it
/// does not wait. Rarely, for one that is slower will not come in time; and longer and longer, for
/// one that is as fast, but behind, is then in step for good.
int tries_again(Round missed) {
  constexpr Round kFirst = 4, kSeldom = 64;
  constexpr int kLongest = 4;
  if (missed < kFirst || (missed < kSeldom ? !std::has_single_bit(missed) : missed % kSeldom != 0))
    return 0;
  return static_cast<int>(std::min<Round>(missed / kFirst, kLongest));
}

}  // namespace

void BufferedMix::Reading::begin(BufferedMix& staged, int peer, Copy& copy) {
  staged_ = &staged;
  peer_ = peer;
  copy_ = copy.row.lend();
}

void BufferedMix::Reading::give_back() {
  if (--chunks_ > 0) return;
  copy_.end();
  if (!staged_->edges_.at(peer_).unsent) return;
  // Whoever ended the lease may be in the middle of changing what a link's send() changes.
  staged_->exchange_.scheduler().after(Time(0), [staged = staged_, peer = peer_] {
    const Edge& edge = staged->edges_.at(peer);
    if (!edge.unsent || edge.reading.busy()) return;
    staged->send(peer);
    staged->endpoint_.notify();
  });
}

BufferedMix::BufferedMix(Endpoint& endpoint, Exchange& exchange, Channel channel,
                         std::size_t length)
    : endpoint_(endpoint), exchange_(exchange), channel_(channel), length_(length) {}

BufferedMix::~BufferedMix() {
  if (timer_) exchange_.scheduler().cancel(*timer_);
}

BufferedMix::Edge& BufferedMix::edge(int peer) {
  Edge& edge = edges_[peer];
  if (!edge.stage)
    edge.stage = std::make_unique<RowAssembler>(
        exchange_.compute().device(), endpoint_.inbox(peer, channel_),
        exchange_.options().gpu_of(endpoint_.peer()), length_, [this, peer] { row_came(peer); });
  return edge;
}

void BufferedMix::begin(Round t, std::span<const float> row, Round as) {
  GOSSAMER_CHECK(!active_ && row.size() == length_,
                 "a row is mixed twice at once, or changed its length");
  active_ = true;
  round_ = t;
  endpoint_.pace_.begin_mix(exchange_.scheduler().now());
  matrix_ = exchange_.schedule().at(t);
  const auto in_neighbours = endpoint_.in_neighbours(*matrix_, t);
  heard_.assign(in_neighbours.begin(), in_neighbours.end());
  const std::span<const int> hearers = endpoint_.out_neighbours(*matrix_, t);
  if (!hearers.empty()) {
    if (!exchange_.validate_outgoing(endpoint_.peer(), t, channel_, row, hearers))
      return;  // the run ends
    exchange_.compute()
        .run_checks();  // so whatever a neighbour's GPU does with the copy comes after the look
    newest_copy_ = &free_copy();
    newest_copy_->round = as;
    const gpu::CopyRequest<float> copy{row.data(), newest_copy_->row.values().data(), row.size()};
    exchange_.compute().device().copy(std::span(&copy, 1));
  }
  const bool deadline = exchange_.options().policy == Policy::deadline;
  if (deadline) open_edges();
  // Each begins with the peer after itself, as Endpoint::send does.
  const auto first = static_cast<std::size_t>(
      std::upper_bound(hearers.begin(), hearers.end(), endpoint_.peer()) - hearers.begin());
  for (std::size_t k = 0; k < hearers.size(); ++k) send(hearers[(first + k) % hearers.size()]);
  if (deadline) begin_waiting();
}

BufferedMix::Copy& BufferedMix::free_copy() {
  // At most one is read by each neighbour, so there are at most one more than neighbours.
  for (auto& copy : copies_)
    if (!copy->row.lent()) return *copy;
  Copy& made = *copies_.emplace_back(std::make_unique<Copy>());
  gpu::Device& device = exchange_.compute().device();
  made.memory = gpu::DeviceRows<float>::on_gpu(device, exchange_.options().gpu_of(endpoint_.peer()),
                                               1, length_);
  made.row.attach(exchange_.scheduler(), made.memory.row(0));
  return made;
}

/// A slow link that still reads an earlier row is let finish: under `deadline` this round's row is
/// then not sent to it, else the newest one when it is done.
void BufferedMix::send(int to) {
  Edge& edge = this->edge(to);
  if (exchange_.options().policy == Policy::deadline && round_ < edge.declined_end) return;
  edge.unsent = false;
  if (edge.reading.busy()) {
    if (exchange_.options().policy != Policy::deadline) edge.unsent = true;
    else if (decides(to)) decide(to, edge, Outcome::declined);
    else say(to, ControlMessage::query, round_);
    return;
  }
  edge.reading.begin(*this, to, *newest_copy_);
  const std::span<const float> values = newest_copy_->row.values();
  const std::size_t step = exchange_.options().chunk_values;
  Link& link = exchange_.link(endpoint_.peer(), to);
  const Lease whole =
      edge.reading.lend();  // the first chunk may be done with before the second is sent
  for (std::size_t offset = 0; offset < values.size(); offset += step) {
    const ChunkHeader head{endpoint_.peer(), to,     newest_copy_->round,
                           channel_,         offset, values.size()};
    link.send(Chunk(head, values.subspan(offset, std::min(step, values.size() - offset)),
                    edge.reading.lend()));
  }
}

void BufferedMix::say(int to, ControlMessage note, Round t) {
  const ChunkHeader head{endpoint_.peer(), to, t, channel_, 0, 0, note};
  exchange_.link(endpoint_.peer(), to).send(Chunk(head, {}, {}));
}

bool BufferedMix::is_decided() {
  const ExchangeOptions& options = exchange_.options();
  if (options.policy == Policy::async) return true;
  for (const topology::Neighbour& neighbour : heard_) {
    const Edge& edge = this->edge(neighbour.peer);
    if (options.policy == Policy::deadline) {
      if (edge.outcome == Outcome::open) return false;
      continue;
    }
    const auto newest = edge.stage->newest();
    const Round done_by_it = newest ? newest->round : 0;
    if (round_ + 1 > done_by_it + options.staleness) return false;
  }
  return true;
}

void BufferedMix::wake() {
  if (waiter_ && is_decided()) exchange_.scheduler().post(std::exchange(waiter_, {}));
}

BufferedMix::Rows BufferedMix::take(std::vector<Deviation>& deviations) {
  GOSSAMER_CHECK(active_, "a mix ends that has not begun");
  active_ = false;
  if (timer_) exchange_.scheduler().cancel(*timer_);
  timer_.reset();
  Rows rows;
  for (const topology::Neighbour& neighbour : matrix_->in_neighbours(endpoint_.peer())) {
    if (!endpoint_.present(neighbour.peer, round_)) {
      deviations.push_back({round_, neighbour.peer, channel_, true});
      continue;
    }
    Edge& edge = this->edge(neighbour.peer);
    auto row = exchange_.options().policy == Policy::deadline ? std::exchange(edge.row, nullptr)
                                                              : edge.stage->newest();
    if (!row || row->round != round_)
      deviations.push_back(
          {round_, neighbour.peer, channel_, row == nullptr, row ? row->round : 0});
    if (!row) continue;
    rows.sources.push_back({row->row.row(0).data(), static_cast<float>(neighbour.weight)});
    rows.from.push_back(neighbour.peer);
    rows.held.push_back(std::move(row));
  }
  took_part_ = !rows.sources.empty();
  return rows;
}

void BufferedMix::rounds_seen(std::map<int, std::pair<Round, Time>>& seen) const {
  for (const auto& [peer, edge] : edges_) {
    const auto row = edge.stage ? edge.stage->newest() : nullptr;
    if (row && (edge.skip_end == 0 || row->round > edge.skip_end))
      seen[peer] = std::max(seen[peer], std::pair(row->round, edge.came));
  }
}

void BufferedMix::row_came(int from) {
  if (exchange_.options().policy == Policy::deadline) {
    Edge& edge = edges_.at(from);
    const auto row = edge.stage->newest();
    edge.came = exchange_.scheduler().now();
    if (decides(from)) {
      note_lateness(edge, row->round);
      if (active_ && edge.outcome == Outcome::open && edge.round == row->round)
        decide(from, edge, Outcome::counted);
    }
    if (active_) advance();
  }
  wake();
}

// ---- deadline

void BufferedMix::open_edges() {
  const Time now = exchange_.scheduler().now();
  if (!began_.empty()) {
    const auto& [round, time] = *began_.rbegin();
    smooth(round_seconds_, seconds(now - time));
  }
  began_[round_] = now;
  if (began_.size() > kRoundsWatched) began_.erase(began_.begin());
  deadlines_passed_ = 0;
  stretch_ = 1;
  for (const topology::Neighbour& neighbour : heard_) {
    Edge& edge = this->edge(neighbour.peer);
    edge.round = round_;
    edge.outcome = round_ < edge.declined_end ? Outcome::declined : Outcome::open;
    const int again = edge.on_time || round_ == waits_in_ ? 0 : tries_again(++edge.missed);
    edge.waited_for = edge.on_time || round_ == waits_in_ || again > 0;
    stretch_ = std::max(stretch_, again);
  }
  // Who would wait for nobody waits for all: to mix with none is to have done the round for
  // nothing, and in no time.
  const bool any =
      std::ranges::any_of(heard_, [&](const auto& j) { return edge(j.peer).waited_for; });
  for (const topology::Neighbour& neighbour : heard_)
    edge(neighbour.peer).waited_for = edge(neighbour.peer).waited_for || !any;
}

/// Our rows are out: what is said of an exchange comes after the row.
void BufferedMix::begin_waiting() {
  for (const topology::Neighbour& neighbour : heard_) {
    Edge& edge = this->edge(neighbour.peer);
    const auto row = edge.stage->newest();
    if (!decides(neighbour.peer)) {
      if (edge.outcome == Outcome::open && !edge.waited_for)
        say(neighbour.peer, ControlMessage::query, round_);
    } else if (row && row->round == round_) {
      note_lateness(edge, round_);
      if (edge.outcome == Outcome::open) decide(neighbour.peer, edge, Outcome::counted);
    }
  }
  advance();
}

/// Where nobody is left that is waited for, the others are not waited for either; else there is a
/// deadline.
void BufferedMix::advance() {
  bool waiting = false;
  for (const topology::Neighbour& neighbour : heard_) {
    const Edge& edge = this->edge(neighbour.peer);
    waiting = waiting || (edge.outcome == Outcome::open && edge.waited_for);
  }
  if (waiting) return arm();
  for (const topology::Neighbour& neighbour : heard_) {
    Edge& edge = this->edge(neighbour.peer);
    if (edge.outcome == Outcome::open && decides(neighbour.peer))
      decide(neighbour.peer, edge, Outcome::declined);
  }
}

void BufferedMix::note_lateness(Edge& edge, Round t) {
  const auto began = began_.find(t);
  if (began != began_.end())
    smooth(edge.lateness, seconds(exchange_.scheduler().now() - began->second));
}

void BufferedMix::decide(int peer, Edge& edge, Outcome outcome) {
  edge.outcome = outcome;
  edge.on_time = outcome == Outcome::counted;
  if (edge.on_time) edge.missed = 0;
  if (outcome == Outcome::counted) edge.row = edge.stage->newest();
  else edge.declined_end = std::max(edge.declined_end, edge.round + 1);
  if (decides(peer))
    say(peer, outcome == Outcome::counted ? ControlMessage::commit : ControlMessage::decline,
        edge.round);
}

/// Twice what it usually takes until an exchange is known to count, and a part of a round beyond.
/// Of the neighbours the middle one is asked (of two the quicker), so that a late one does not make
/// others wait. Not known before the first.
std::optional<double> BufferedMix::patience() const {
  std::vector<double> lateness;
  for (const auto& [peer, edge] : edges_)
    if (edge.lateness) lateness.push_back(*edge.lateness);
  if (lateness.empty()) return std::nullopt;
  const auto middle = lateness.begin() + static_cast<std::ptrdiff_t>((lateness.size() - 1) / 2);
  std::nth_element(lateness.begin(), middle, lateness.end());
  return 2 * *middle + exchange_.options().slack * round_seconds_.value_or(*middle);
}

void BufferedMix::arm() {
  if (timer_ || deadlines_passed_ == 2) return;
  // Who has left rounds out to come in time waits until the others are there too.
  Time from = began_.at(round_);
  if (round_ == waits_in_) {
    if (std::ranges::none_of(
            heard_, [&](const auto& j) { return edge(j.peer).outcome == Outcome::counted; }))
      return;
    from = exchange_.scheduler().now();
  }
  const std::optional<double> patience = this->patience();
  // Who does not decide gives the other end twice as long: its answer comes after its own deadline.
  if (patience)
    timer_ = exchange_.scheduler().at(
        from + from_seconds(*patience * stretch_ * (1 + deadlines_passed_)),
        [this] { on_deadline(); });
}

void BufferedMix::on_deadline() {
  timer_.reset();
  const int before = deadlines_passed_++;  // first: an answer may come while it is being said, and
                                           // sets the next one
  for (const topology::Neighbour& neighbour : heard_) {
    Edge& edge = this->edge(neighbour.peer);
    if (edge.outcome != Outcome::open) continue;
    const bool ours = decides(neighbour.peer);
    if (before == 0 && ours) decide(neighbour.peer, edge, Outcome::declined);
    if (before == 1 && !ours) say(neighbour.peer, ControlMessage::query, round_);
  }
  advance();
  wake();
}

Status BufferedMix::heard(const ChunkHeader& head) {
  if (exchange_.options().policy != Policy::deadline && head.control == ControlMessage::skip) {
    edge(head.from).ended = true;
    return {};
  }
  if (exchange_.options().policy != Policy::deadline)
    return protocol_error(head, "it speaks of deadlines under another policy");
  const bool ours = decides(head.from), skipping = head.control == ControlMessage::skip;
  if (!skipping && ours != (head.control == ControlMessage::query))
    return protocol_error(head, "it decides what is not its to decide");
  Edge& edge = this->edge(head.from);
  const bool concerned = active_ && edge.outcome == Outcome::open && edge.round <= head.round;
  if (head.control == ControlMessage::commit) {
    const auto row = edge.stage->newest();
    if (!concerned || edge.round != head.round || !row || row->round != head.round)
      return protocol_error(head, "an exchange counts that was not waited for");
    note_lateness(edge, head.round);
    decide(head.from, edge, Outcome::counted);
    advance();
    wake();
    return {};
  }
  if (active_ && edge.outcome == Outcome::counted && edge.round == head.round)
    return {};  // that was said before
  edge.declined_end = std::max(edge.declined_end, head.round + 1);
  if (concerned) edge.outcome = Outcome::declined;
  if (concerned && !skipping) edge.on_time = false;
  if (skipping) edge.skip_end = head.round + 1;
  else if (ours) say(head.from, ControlMessage::decline, head.round);
  if (active_) advance();
  wake();
  return {};
}

void BufferedMix::end(Round last) {
  for (auto& [peer, edge] : edges_)
    if (endpoint_.present(peer)) say(peer, ControlMessage::skip, last);
}

bool BufferedMix::has_rest() const {
  return std::ranges::any_of(edges_, [](const auto& entry) { return entry.second.unsent; });
}

bool BufferedMix::ended(int peer) const {
  const auto found = edges_.find(peer);
  return found != edges_.end() && found->second.ended;
}

void BufferedMix::lose(int peer) {
  if (const auto found = edges_.find(peer); found != edges_.end()) {
    Edge& edge = found->second;  // what still reads of our copies knows it
    edge.unsent = false;
    edge.outcome = Outcome::declined;
    edge.row.reset();
    edge.lateness.reset();
    endpoint_.inbox(peer, channel_).consumer = nullptr;
    edge.stage.reset();
    endpoint_.notify();
  }
  // One of whom nothing has come yet is waited for too.
  std::erase_if(heard_,
                [peer](const topology::Neighbour& neighbour) { return neighbour.peer == peer; });
  if (active_ && exchange_.options().policy == Policy::deadline) advance();
  wake();
}

void BufferedMix::enter(int peer, Round first) {
  Edge& edge = this->edge(peer);
  edge.declined_end = first;
  edge.ended = false;
  edge.skip_end = 0;
  edge.on_time = true;
  edge.came = Time(0);
}

void BufferedMix::skip_to(Round next) {
  if (exchange_.options().policy != Policy::deadline || next == 0) return;
  waits_in_ = next;
  for (auto& [peer, edge] : edges_) {
    if (!endpoint_.present(peer)) continue;
    edge.declined_end = std::max(edge.declined_end, next);
    say(peer, ControlMessage::skip, next - 1);
  }
}

}  // namespace gossamer::gossip
