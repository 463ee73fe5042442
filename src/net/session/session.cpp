#include "net/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// A message that the sender keeps lent is acknowledged when it is whole, a long one each time that
// so much has come; anything else with what is said next, if it is worth a frame, or with the next
// tick.
constexpr std::size_t kTellBytes = std::size_t{2} << 20, kWorthTelling = SendQueue::kSmallBytes;
// How long an owner waits for its row at most where the row is kept for an acknowledgement alone.
constexpr gossip::Time kLookAtLeases = 2ms;

/// The error that an abort frame names, if it is one we know.
ErrorKind error_kind(std::uint64_t value) {
  using enum ErrorKind;
  for (ErrorKind kind :
       {internal, invalid, data, join_timeout, lost_peer, rejected, network, diverged, interrupted})
    if (value == static_cast<std::uint64_t>(kind)) return kind;
  return lost_peer;
}

/// A stranger's sentence, on one line.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

}  // namespace

Session::Session(gossip::Scheduler& scheduler, SessionOptions options, Traffic& traffic,
                 SessionOwner& owner)
    : scheduler_(scheduler),
      options_(std::move(options)),
      traffic_(traffic),
      owner_(owner),
      pool_(
          static_cast<std::size_t>(options_.window), [this] { buffer_returned(); },
          options_.chunk_memory),
      reader_(options_.incoming, pool_),
      send_queue_(*options_.hashes),
      spoke_(scheduler.now()) {
  reader_.hold_data(options_.hold_data);
}

Session::~Session() {
  GOSSAMER_CHECK(!taking_frames_, "a session ends in the middle of its call");
  close();
}

// Sending.

FrameHeader Session::control(FrameKind kind) const {
  FrameHeader head;
  head.kind = kind;
  head.run = options_.incoming.run;
  head.from = local();
  head.to = remote();
  return head;
}

void Session::send(gossip::Chunk chunk) {
  if (!takes_words()) return;
  GOSSAMER_CHECK(chunk.values.size_bytes() <= kMaxChunkBytes, "a chunk larger than frames can be");
  GOSSAMER_CHECK(chunk.head.from == local() && chunk.head.to == remote(),
                 "a chunk on another pair's link");
  const bool note = chunk.head.control != gossip::ControlMessage::none;
  FrameHeader head = control(note ? FrameKind::control : FrameKind::data);
  head.round = chunk.head.round;
  head.channel = chunk.head.channel;
  head.offset = note ? static_cast<std::uint64_t>(chunk.head.control) : chunk.head.offset;
  const gossip::LinkState& link = chunk.head.link_state;
  head.total = chunk.head.total | chunk.head.donor_steps | std::uint64_t{link.version} << 32 |
               static_cast<std::uint64_t>(link.end) << 16 |
               static_cast<std::uint64_t>(link.neighbour);
  head.channel |= link.reachability_only ? 1 : 0;
  head.payload_bytes = static_cast<std::uint32_t>(chunk.values.size_bytes());
  round_ = std::max(round_.value_or(0), head.round);
  traffic_.data_bytes_sent += kFrameHeaderBytes + head.payload_bytes;
  say(head, std::move(chunk));
}

void Session::tell(std::string statement) {
  if (!takes_words()) return;
  GOSSAMER_CHECK(statement.size() <= kMaxStatementBytes, "a statement larger than frames can be");
  FrameHeader head = control(FrameKind::statement);
  head.payload_bytes = static_cast<std::uint32_t>(statement.size());
  say(head, {}, std::move(statement));
}

void Session::tell_running() {
  if (takes_words()) say(control(FrameKind::running));
}

void Session::say(const FrameHeader& head, gossip::Chunk chunk, std::string text) {
  if (abandoned_) return;
  send_queue_.push(head, std::move(chunk), std::move(text));
  write_more();
  if (send_queue_.is_interrupted()) look_after_leases();
}

/// Writes what waits, and before it how much has come, if they do not know.
void Session::write_more() {
  if (!attached() || send_queue_.writing() || !write_error_.empty()) return;
  if (state_ != State::aborting &&
      (tell_now_ || (untold_bytes_ >= kWorthTelling && !send_queue_.empty()))) {
    FrameHeader head = control(FrameKind::ack);
    head.round = told_ = received_;
    head.offset = send_queue_.pushed_count();
    send_queue_.push_first(head);
    untold_bytes_ = 0;
    tell_now_ = false;
  }
  if (const auto areas = send_queue_.gather(); !areas.empty()) socket_->write(areas);
}

void Session::write_done(const Transfer& transfer) {
  if (transfer.error) return write_broke(transfer);
  spoke_ = scheduler_.now();
  traffic_.bytes_sent += transfer.bytes;
  send_queue_.written(transfer.bytes);
  if (count_to_hear_ && send_queue_.between_frames())
    hear_count(*std::exchange(count_to_hear_, std::nullopt));
  write_more();
  look_after_leases();
  if (attached() && !send_queue_.writing() && state_ == State::aborting) socket_->finish_sending();
}

/// The other side is gone, but what it said last may lie unread: reading goes on, and another
/// connection is asked for meanwhile.
void Session::write_broke(const Transfer& transfer) {
  write_error_ = reason(transfer);
  send_queue_.interrupted();
  if (state_ == State::aborting || abandoned_) return send_queue_.drop();
  look_after_leases();
  options_.call_again(0ns);
}

/// As long as something is lent that only waits to be acknowledged.
void Session::look_after_leases() {
  if (closed() || lease_timer_ || !send_queue_.lends()) return;
  lease_timer_ = scheduler_.after(kLookAtLeases, [this] {
    lease_timer_.reset();
    if (send_queue_.copy_awaited()) look_after_leases();
  });
}

// Receiving.

void Session::read_more() {
  if (!attached() || reading_ || taking_frames_) return;
  if (!take_frames()) return;
  if (tell_now_) write_more();
  const auto areas = reader_.areas();
  if (areas.empty()) return;  // no free buffer: a lease's end goes on
  reading_ = true;
  quiet_ = 0ns;
  socket_->read(areas);
}

/// A lease has ended, and with it perhaps the wait for a buffer. Whoever ended it may be in the
/// middle of changing what deliver() changes, so reading goes on from the scheduler's loop.
void Session::buffer_returned() {
  if (!attached() || reading_ || taking_frames_ || resume_) return;
  resume_ = scheduler_.after(gossip::Time(0), [this] {
    resume_.reset();
    read_more();
  });
}

void Session::read_done(const Transfer& transfer) {
  reading_ = false;
  if (transfer.end || transfer.error) return ended(transfer);
  if (std::exchange(suspected_, false)) options_.message(fmt::format("{} is heard again", name()));
  traffic_.bytes_received += transfer.bytes;
  reader_.filled(transfer.bytes);
  read_more();
}

/// Handles the frames that are whole. False if that ended the connection.
bool Session::take_frames() {
  std::optional<std::string> damage;
  {
    struct Taking {
      bool& flag;
      ~Taking() { flag = false; }
    };
    const Taking taking{taking_frames_ = true};
    while (!closed()) {
      auto frame = reader_.next();
      if (!frame.ok()) damage = frame.error().message;
      if (damage || !frame->has_value()) break;
      handle(std::move(**frame));
    }
  }
  if (damage) damaged(*damage);
  return !damage && !closed();
}

/// What the network may have done is borne once: the frame is asked for again. Twice the same is
/// the sender's doing.
void Session::damaged(const std::string& what) {
  std::string sentence = fmt::format("{} broke the protocol: it sent {}", name(), what);
  if (state_ == State::aborting) return close();
  if (std::exchange(damaged_at_, received_) == received_) return misuse(std::move(sentence));
  misused_ = true;
  options_.message(fmt::format("{} sent {}; it is asked for it again", name(), what));
  broke(std::move(sentence));
}

void Session::count(const Frame& frame) {
  ++received_;
  progressed();
  const FrameHeader& head = frame.head;
  untold_bytes_ += kFrameHeaderBytes + head.payload_bytes;
  const bool values = head.kind == FrameKind::data;
  const bool last = values && head.offset + head.payload_bytes / sizeof(float) == head.total;
  if (untold_bytes_ >= kTellBytes || head.kind == FrameKind::goodbye ||
      (last && head.total * sizeof(float) > SendQueue::kSmallBytes))
    tell_now_ = true;
}

void Session::progressed() {
  troubled_ = false;
  fruitless_ = 0;
}

void Session::hear_count(const FrameHeader& head) {
  if (state_ == State::aborting || abandoned_) return;
  if (counts_due_ && !send_queue_.between_frames()) {  // a heartbeat is on its way out
    count_to_hear_ = head;
    return;
  }
  const std::uint64_t before = send_queue_.acknowledged_count();
  const bool resumes = std::exchange(counts_due_, false);
  if (!(resumes ? send_queue_.resume(head.round) : send_queue_.acknowledged(head.round)))
    return misuse(
        fmt::format("{} broke the protocol: it has received what was never sent", name()));
  const bool nothing_due = resumes && send_queue_.settled() && head.offset == received_;
  if (head.round > before || nothing_due) progressed();
  if (resumes) write_more();
}

void Session::handle(Frame frame) {
  if (heard_goodbye_ && state_ != State::aborting && frame.head.kind != FrameKind::abort &&
      frame.head.kind != FrameKind::ack)
    return misuse(fmt::format("{} broke the protocol: it spoke after its goodbye", name()));
  if (!greeted_ && frame.head.kind != FrameKind::goodbye && frame.head.kind != FrameKind::abort) {
    greeted_ = true;
    owner_.greeted(*this);
    if (closed()) return;
  }
  if (is_counted(frame.head.kind)) count(frame);
  if (frame.dropped) return;
  switch (frame.head.kind) {
    case FrameKind::heartbeat: return;
    case FrameKind::ack: return hear_count(frame.head);
    case FrameKind::running:
      if (state_ == State::open) owner_.network_runs();
      return;
    case FrameKind::goodbye: heard_goodbye_ = true; return owner_.left(*this);
    case FrameKind::abort:
      if (state_ != State::aborting)
        owner_.aborted(*this, {error_kind(frame.head.round), printable(std::move(frame.text))});
      return;
    case FrameKind::statement:
      if (state_ == State::open)
        if (const Status status = owner_.told(*this, std::move(frame.text)); !status.ok())
          misuse(status.error().message);
      return;
    case FrameKind::data:
    case FrameKind::control: break;
  }
  const FrameHeader& head = frame.head;
  traffic_.data_bytes_received += kFrameHeaderBytes + head.payload_bytes;
  round_ = std::max(round_.value_or(0), head.round);
  if (state_ != State::open) return;
  const bool note = head.kind == FrameKind::control;
  gossip::ChunkHeader chunk_head{head.from, head.to, head.round, head.channel};
  if (note) {
    chunk_head.control = static_cast<gossip::ControlMessage>(head.offset);
    if (chunk_head.control == gossip::ControlMessage::propose_round) {
      chunk_head.donor_steps = head.total;
    } else if (gossip::has_link_state(chunk_head.control)) {
      chunk_head.channel = 0;
      chunk_head.link_state = {static_cast<int>(head.total >> 16 & 0xFFFF),
                               static_cast<int>(head.total & 0xFFFF),
                               static_cast<std::uint32_t>(head.total >> 32), head.channel == 1};
    }
  } else {
    chunk_head.offset = head.offset;
    chunk_head.total = head.total;
  }
  const Status status =
      owner_.deliver(gossip::Chunk(chunk_head, frame.values, std::move(frame.lease)));
  if (!status.ok()) misuse(status.error().message);
}

void Session::hold_data(bool hold) {
  if (state_ != State::open) return;  // there they are dropped
  reader_.hold_data(hold);
  read_more();
}

}  // namespace gossamer::net
