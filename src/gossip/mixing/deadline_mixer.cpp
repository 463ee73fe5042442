#include "gossip/mixing/deadline_mixer.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace gossamer::gossip {
namespace {

constexpr std::size_t kRoundsTimed = 64;  // the lateness of older rounds' rows is not measured

/// How many times its patience a peer waits for a neighbour that has missed `missed` rounds; 0: it
/// does not wait. Rarely, because a slower neighbour will not be in time; and longer and longer,
/// because a neighbour that is as fast, but behind, is then in step for good.
int retry_factor(Round missed) {
  constexpr Round kFirst = 4, kInterval = 64;
  constexpr int kLongest = 4;
  if (missed < kFirst ||
      (missed < kInterval ? !std::has_single_bit(missed) : missed % kInterval != 0))
    return 0;
  return static_cast<int>(std::min<Round>(missed / kFirst, kLongest));
}

}  // namespace

DeadlineMix::~DeadlineMix() {
  if (timer_) context_.process.scheduler.cancel(*timer_);
}

DeadlineMix::Edge& DeadlineMix::edge(int peer) {
  open(peer);
  return edges_[peer];
}

// ---- a mix

void DeadlineMix::on_begin() {
  const Time now = context_.process.scheduler.now();
  pace_.begin_mix(now);
  if (!begun_.empty()) {
    const auto& [round, time] = *begun_.rbegin();
    smooth(round_seconds_, seconds(now - time));
  }
  begun_[round_] = now;
  if (begun_.size() > kRoundsTimed) begun_.erase(begun_.begin());
  deadlines_passed_ = 0;
  patience_factor_ = 1;
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    Edge& edge = this->edge(neighbour.peer);
    edge.round = round_;
    edge.outcome = round_ < edge.declined_end ? Outcome::declined : Outcome::open;
    const int retry = edge.on_time || round_ == skipped_to_ ? 0 : retry_factor(++edge.missed);
    edge.waited_for = edge.on_time || round_ == skipped_to_ || retry > 0;
    patience_factor_ = std::max(patience_factor_, retry);
  }
  // A peer that would wait for no neighbour waits for every neighbour: a round without a
  // neighbour's row would be done for nothing, and in no time.
  const bool any =
      std::ranges::any_of(in_neighbours_, [&](const auto& j) { return edge(j.peer).waited_for; });
  for (const topology::Neighbour& neighbour : in_neighbours_)
    edge(neighbour.peer).waited_for = edge(neighbour.peer).waited_for || !any;
}

/// A link that still reads an earlier row may finish it: this round's row is not sent over it, and
/// the exchange does not count. Nor does it where an attack withholds the row.
void DeadlineMix::send(int to) {
  Edge& edge = this->edge(to);
  if (round_ < edge.declined_end) return;
  if (transmit(to)) return;
  if (decides(to)) decide(to, edge, Outcome::declined);
  else send_control(to, ControlMessage::query, round_);
}

// Control messages about an exchange follow the row.
void DeadlineMix::on_sent() {
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    Edge& edge = this->edge(neighbour.peer);
    const auto row = newest(neighbour.peer);
    if (!decides(neighbour.peer)) {
      if (edge.outcome == Outcome::open && !edge.waited_for)
        send_control(neighbour.peer, ControlMessage::query, round_);
    } else if (row && row->round == round_) {
      note_lateness(edge, round_);
      if (edge.outcome == Outcome::open) decide(neighbour.peer, edge, Outcome::committed);
    }
  }
  advance();
}

void DeadlineMix::on_whole_row(int from) {
  Edge& edge = edges_.at(from);
  const auto row = newest(from);
  edge.arrived = context_.process.scheduler.now();
  if (decides(from)) {
    note_lateness(edge, row->round);
    if (active_ && edge.outcome == Outcome::open && edge.round == row->round)
      decide(from, edge, Outcome::committed);
  }
  if (active_) advance();
  decided_.update();
}

bool DeadlineMix::is_decided() {
  return std::ranges::none_of(in_neighbours_, [&](const topology::Neighbour& neighbour) {
    return edge(neighbour.peer).outcome == Outcome::open;
  });
}

std::shared_ptr<const BufferedRow> DeadlineMix::take_row(int peer) {
  auto row = std::exchange(edge(peer).row, nullptr);
  took_part_ = took_part_ || row;
  return row;
}

void DeadlineMix::on_end() {
  took_part_ = false;
  if (timer_) context_.process.scheduler.cancel(*timer_);
  timer_.reset();
}

// ---- decisions

void DeadlineMix::decide(int peer, Edge& edge, Outcome outcome) {
  const bool committed = outcome == Outcome::committed;
  edge.outcome = outcome;
  edge.on_time = committed;
  if (edge.on_time) edge.missed = 0;
  if (committed) edge.row = newest(peer);
  else edge.declined_end = std::max(edge.declined_end, edge.round + 1);
  if (decides(peer))
    send_control(peer, committed ? ControlMessage::commit : ControlMessage::decline, edge.round);
}

/// If no open edge is waited for, the others are not waited for either; else a deadline is set.
void DeadlineMix::advance() {
  bool waiting = false;
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    const Edge& edge = this->edge(neighbour.peer);
    waiting = waiting || (edge.outcome == Outcome::open && edge.waited_for);
  }
  if (waiting) return arm_timer();
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    Edge& edge = this->edge(neighbour.peer);
    if (edge.outcome == Outcome::open && decides(neighbour.peer))
      decide(neighbour.peer, edge, Outcome::declined);
  }
}

void DeadlineMix::note_lateness(Edge& edge, Round t) {
  const auto begun = begun_.find(t);
  if (begun != begun_.end())
    smooth(edge.lateness, seconds(context_.process.scheduler.now() - begun->second));
}

/// Seconds: twice the lateness of the neighbour in the middle (of two the quicker), so that a late
/// one does not make others wait, and a part of a round. Unknown before the first row.
std::optional<double> DeadlineMix::patience() const {
  std::vector<double> lateness;
  for (const auto& [peer, edge] : edges_)
    if (edge.lateness) lateness.push_back(*edge.lateness);
  if (lateness.empty()) return std::nullopt;
  const auto middle = lateness.begin() + static_cast<std::ptrdiff_t>((lateness.size() - 1) / 2);
  std::nth_element(lateness.begin(), middle, lateness.end());
  return 2 * *middle + context_.process.options.deadline_slack * round_seconds_.value_or(*middle);
}

void DeadlineMix::arm_timer() {
  if (timer_ || deadlines_passed_ == 2) return;
  Time from = begun_.at(round_);
  if (round_ == skipped_to_) {
    // A peer that skipped rounds to be in time waits until a neighbour is there too.
    if (std::ranges::none_of(in_neighbours_, [&](const auto& j) {
          return edge(j.peer).outcome == Outcome::committed;
        }))
      return;
    from = context_.process.scheduler.now();
  }
  const std::optional<double> patience = this->patience();
  // The end that does not decide waits twice as long: the answer follows the other end's deadline.
  if (patience)
    timer_ = context_.process.scheduler.at(
        from + from_seconds(*patience * patience_factor_ * (1 + deadlines_passed_)),
        [this] { on_deadline(); });
}

void DeadlineMix::on_deadline() {
  timer_.reset();
  // Counted first: an answer may arrive while messages are sent, and sets the next deadline.
  const int before = deadlines_passed_++;
  for (const topology::Neighbour& neighbour : in_neighbours_) {
    Edge& edge = this->edge(neighbour.peer);
    if (edge.outcome != Outcome::open) continue;
    const bool ours = decides(neighbour.peer);
    if (before == 0 && ours) decide(neighbour.peer, edge, Outcome::declined);
    if (before == 1 && !ours) send_control(neighbour.peer, ControlMessage::query, round_);
  }
  advance();
  decided_.update();
}

// ---- control messages

Status DeadlineMix::on_control_message(const ChunkHeader& header) {
  if (header.control == ControlMessage::finished)
    return protocol_error(header, "a control message of another policy");
  const bool ours = decides(header.from), skips = header.control == ControlMessage::skip;
  if (!skips && ours != (header.control == ControlMessage::query))
    return protocol_error(header, "it decides an exchange that the other end decides");
  if (header.control == ControlMessage::commit) return on_commit(header);
  Edge& edge = this->edge(header.from);
  const bool concerned = active_ && edge.outcome == Outcome::open && edge.round <= header.round;
  if (active_ && edge.outcome == Outcome::committed && edge.round == header.round)
    return {};  // the commit was sent before
  edge.declined_end = std::max(edge.declined_end, header.round + 1);
  if (concerned) edge.outcome = Outcome::declined;
  if (concerned && !skips) edge.on_time = false;
  if (skips) edge.skip_end = header.round + 1;
  else if (ours) send_control(header.from, ControlMessage::decline, header.round);
  if (active_) advance();
  decided_.update();
  return {};
}

Status DeadlineMix::on_commit(const ChunkHeader& header) {
  Edge& edge = this->edge(header.from);
  const auto row = newest(header.from);
  if (!active_ || edge.outcome != Outcome::open || edge.round != header.round || !row ||
      row->round != header.round)
    return protocol_error(header, "it commits an exchange that this peer does not wait for");
  note_lateness(edge, header.round);
  decide(header.from, edge, Outcome::committed);
  advance();
  decided_.update();
  return {};
}

void DeadlineMix::skip_to(Round next) {
  if (next == 0) return;
  skipped_to_ = next;
  for (auto& [peer, edge] : edges_) {
    if (!context_.view.is_present(peer)) continue;
    edge.declined_end = std::max(edge.declined_end, next);
    send_control(peer, ControlMessage::skip, next - 1);
  }
}

// ---- presence

void DeadlineMix::forget(int peer) {
  Edge& edge = edges_.at(peer);
  edge.outcome = Outcome::declined;
  edge.row.reset();
  edge.lateness.reset();
}

void DeadlineMix::on_link_restored(int peer, Round first) {
  Edge& edge = this->edge(peer);
  edge.declined_end = first;
  edge.skip_end = 0;
  edge.on_time = true;
  edge.arrived = Time(0);
}

void DeadlineMix::observe(Pace::Others& others) const {
  for (const auto& [peer, edge] : edges_) {
    const auto row = newest(peer);
    if (row && (edge.skip_end == 0 || row->round > edge.skip_end))
      others.seen[peer] = std::max(others.seen[peer], std::pair(row->round, edge.arrived));
  }
  others.took_part = others.took_part || took_part_;
}

// ---- all rows

std::unique_ptr<BufferedMix> DeadlineMixer::make_mix(Channel channel, std::size_t length) {
  auto mix = std::make_unique<DeadlineMix>(context_, channel, length, pace_);
  mixes_[channel] = mix.get();
  return mix;
}

Round DeadlineMixer::next_round(Round t) {
  Pace::Others others;
  for (const auto& [channel, mix] : mixes_) mix->observe(others);
  return std::max(t + 1, pace_.next(t, others, context_.process.scheduler.now()));
}

}  // namespace gossamer::gossip
