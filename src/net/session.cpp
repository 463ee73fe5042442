#include "net/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace gossamer::net {

namespace {

// A write takes about this much: large enough that system calls do not count, small enough that what was hashed is still in
// the cache when the kernel copies it.
constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

/// The error that an abort frame names, if it is one we know.
ErrorKind error_kind(std::uint64_t value) {
  using enum ErrorKind;
  for (ErrorKind kind : {internal, invalid, data, join_timeout, lost_peer, rejected, network, diverged, interrupted})
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

std::span<const std::byte> Session::Outgoing::payload() const {
  return head.kind == FrameKind::data ? std::as_bytes(chunk.values) : std::as_bytes(std::span(text));
}

Session::Session(RealScheduler& scheduler, SessionOptions options, std::unique_ptr<Socket> socket, Traffic& traffic,
                 SessionOwner& owner)
    : scheduler_(scheduler),
      options_(std::move(options)),
      socket_(std::move(socket)),
      traffic_(traffic),
      owner_(owner),
      pool_(static_cast<std::size_t>(options_.window), [this] { buffer_returned(); }, options_.chunk_memory),
      reader_(options_.incoming, pool_),
      heard_(scheduler.now()),
      spoke_(heard_) {
  reader_.hold_data(options_.hold_data);
}

Session::~Session() {
  GOSSAMER_CHECK(!taking_frames_, "a session ends in the middle of its call");
  close();
}

void Session::start() {
  socket_->set_user(this);
  read_more();
}

// Sending.

FrameHead Session::control(FrameKind kind) const {
  FrameHead head;
  head.kind = kind;
  head.run = options_.incoming.run;
  head.from = local();
  head.to = remote();
  return head;
}

void Session::send(gossip::Chunk chunk) {
  if (closed() || state_ != State::open || heard_goodbye_) return;
  GOSSAMER_CHECK(chunk.values.size_bytes() <= kMaxChunkBytes, "a chunk larger than frames can be");
  GOSSAMER_CHECK(chunk.head.from == local() && chunk.head.to == remote(), "a chunk on another pair's link");
  Outgoing outgoing;
  const bool note = chunk.head.note != gossip::Note::none;
  outgoing.head = control(note ? FrameKind::note : FrameKind::data);
  outgoing.head.round = chunk.head.round;
  outgoing.head.channel = chunk.head.channel;
  outgoing.head.offset = note ? static_cast<std::uint64_t>(chunk.head.note) : chunk.head.offset;
  outgoing.head.total = chunk.head.total;
  outgoing.head.payload_bytes = static_cast<std::uint32_t>(chunk.values.size_bytes());
  outgoing.chunk = std::move(chunk);
  outgoing.lent = options_.hashes->lent();
  round_ = std::max(round_.value_or(0), outgoing.head.round);
  traffic_.data_bytes_sent += outgoing.size();
  queue(std::move(outgoing));
}

void Session::tell(std::string statement) {
  if (closed() || state_ != State::open || heard_goodbye_) return;
  GOSSAMER_CHECK(statement.size() <= kMaxStatementBytes, "a statement larger than frames can be");
  Outgoing outgoing;
  outgoing.head = control(FrameKind::statement);
  outgoing.head.payload_bytes = static_cast<std::uint32_t>(statement.size());
  outgoing.text = std::move(statement);
  queue(std::move(outgoing));
}

void Session::tell_running() {
  if (closed() || state_ != State::open || heard_goodbye_) return;
  Outgoing outgoing;
  outgoing.head = control(FrameKind::running);
  queue(std::move(outgoing));
}

void Session::queue(Outgoing outgoing) {
  if (!broken_.empty()) return;
  queue_.push_back(std::move(outgoing));
  if (in_flight_ == 0) write_more();
}

/// Gathers headers and payloads of the first frames into one write. A frame is hashed when it is first gathered, just before
/// the kernel reads the same bytes.
void Session::write_more() {
  std::size_t areas = 0, bytes = 0, skip = front_written_;
  in_flight_ = 0;
  for (Outgoing& frame : queue_) {
    if (areas + 2 > areas_.size() || bytes >= kWriteBytes) break;
    const auto payload = frame.payload();
    if (!frame.encoded) {
      encode_head(frame.head, head_checksum(frame.head) ^ options_.hashes->hash(payload, frame.lent), frame.bytes);
      frame.encoded = true;
    }
    if (skip < kFrameHeadBytes) areas_[areas++] = {frame.bytes.data() + skip, kFrameHeadBytes - skip};
    const std::size_t skip_payload = skip > kFrameHeadBytes ? skip - kFrameHeadBytes : 0;
    if (payload.size() > skip_payload)
      areas_[areas++] = {const_cast<std::byte*>(payload.data()) + skip_payload, payload.size() - skip_payload};
    bytes += frame.size() - skip;
    skip = 0;
    ++in_flight_;
  }
  if (in_flight_ > 0) socket_->write({areas_.data(), areas});
}

void Session::write_done(const Transfer& transfer) {
  if (transfer.error) return stop_writing(transfer);
  spoke_ = scheduler_.now();
  traffic_.bytes_sent += transfer.bytes;
  written(transfer.bytes);
  if (closed()) return;
  write_more();
  if (in_flight_ == 0 && state_ == State::aborting) socket_->finish_sending();
}

/// Takes whole frames off the queue; with them their chunks' leases end.
void Session::written(std::size_t bytes) {
  front_written_ += bytes;
  while (!closed() && !queue_.empty() && front_written_ >= queue_.front().size()) {
    front_written_ -= queue_.front().size();
    const Outgoing done = std::move(queue_.front());  // ends after the queue is in order: a lease's end may send more
    queue_.pop_front();
    options_.hashes->release(done.payload());
  }
}

/// The other side is gone, but what it said last (a goodbye, or why the run ends) may lie unread: reading finds out.
void Session::stop_writing(const Transfer& transfer) {
  broken_ = reason(transfer);
  in_flight_ = 0;
  front_written_ = 0;
  drop_unwritten(0);
}

/// Drops all but the first `keep` frames.
void Session::drop_unwritten(std::size_t keep) {
  std::deque<Outgoing> dropped;
  while (queue_.size() > keep) {
    dropped.push_front(std::move(queue_.back()));
    queue_.pop_back();
    options_.hashes->release(dropped.front().payload());
  }
}

// Receiving.

void Session::read_more() {
  if (closed() || reading_ || taking_frames_) return;
  if (!take_frames()) return;
  const auto areas = reader_.areas();
  if (areas.empty()) return;  // no free buffer: a lease's end goes on
  reading_ = true;
  heard_ = scheduler_.now();
  socket_->read(areas);
}

/// A lease has ended, and with it perhaps the wait for a buffer. Whoever ended it may be in the middle of changing what
/// deliver() changes, so reading goes on from the scheduler's loop.
void Session::buffer_returned() {
  if (closed() || reading_ || taking_frames_ || resume_) return;
  resume_ = scheduler_.after(gossip::Time(0), [this] {
    resume_.reset();
    read_more();
  });
}

void Session::read_done(const Transfer& transfer) {
  reading_ = false;
  if (transfer.end || transfer.error) return ended(transfer);
  heard_ = scheduler_.now();
  traffic_.bytes_received += transfer.bytes;
  reader_.filled(transfer.bytes);
  read_more();
}

/// Handles the frames that are whole. False if that closed the session.
bool Session::take_frames() {
  taking_frames_ = true;
  while (!closed()) {
    auto frame = reader_.next();
    if (!frame.ok()) {
      taking_frames_ = false;
      if (state_ == State::aborting)
        close();
      else
        misuse(fmt::format("{} broke the protocol: it sent {}", name(), frame.error().message));
      return false;
    }
    if (!frame->has_value()) break;
    handle(std::move(**frame));
  }
  taking_frames_ = false;
  return !closed();
}

void Session::handle(Frame frame) {
  if (heard_goodbye_ && state_ != State::aborting && frame.head.kind != FrameKind::abort)
    return misuse(fmt::format("{} broke the protocol: it spoke after its goodbye", name()));
  if (!greeted_ && frame.head.kind != FrameKind::goodbye && frame.head.kind != FrameKind::abort) {
    greeted_ = true;
    owner_.greeted(*this);
    if (closed()) return;
  }
  switch (frame.head.kind) {
    case FrameKind::heartbeat:
      return;
    case FrameKind::running:
      if (state_ == State::open) owner_.network_runs();
      return;
    case FrameKind::goodbye:
      heard_goodbye_ = true;
      return;
    case FrameKind::abort:
      if (state_ != State::aborting) owner_.aborted(*this, {error_kind(frame.head.round), printable(std::move(frame.text))});
      return;
    case FrameKind::statement:
      if (state_ == State::open)
        if (const Status status = owner_.told(*this, std::move(frame.text)); !status.ok()) misuse(status.error().message);
      return;
    case FrameKind::data:
    case FrameKind::note:
      break;
  }
  const FrameHead& head = frame.head;
  traffic_.data_bytes_received += kFrameHeadBytes + head.payload_bytes;
  round_ = std::max(round_.value_or(0), head.round);
  if (state_ != State::open) return;
  const bool note = head.kind == FrameKind::note;
  const gossip::ChunkHead chunk_head{head.from,  head.to,  head.round, head.channel, note ? 0 : head.offset, head.total,
                                     note ? static_cast<gossip::Note>(head.offset) : gossip::Note::none};
  const Status status = owner_.deliver(gossip::Chunk(chunk_head, frame.values, std::move(frame.lease)));
  if (!status.ok()) misuse(status.error().message);
}

void Session::release_data() {
  reader_.hold_data(false);
  read_more();
}

// Ending.

void Session::say_goodbye() {
  if (closed() || state_ != State::open) return;
  state_ = State::leaving;
  reader_.drop_data();
  Outgoing outgoing;
  outgoing.head = control(FrameKind::goodbye);
  queue(std::move(outgoing));
  read_more();
}

void Session::abort(const Error* reason) {
  if (closed() || state_ == State::aborting) return;
  state_ = State::aborting;
  reader_.drop_data();
  // The frame that the kernel has a part of must go out whole, or what follows cannot be read. Those that a write under way
  // may touch stay too.
  const std::size_t keep = std::max<std::size_t>(in_flight_, front_written_ > 0 ? 1 : 0);
  drop_unwritten(keep);
  if (reason != nullptr) {
    Outgoing outgoing;
    outgoing.head = control(FrameKind::abort);
    outgoing.head.round = static_cast<std::uint64_t>(reason->kind);
    outgoing.text = reason->message.substr(0, kMaxAbortBytes);
    outgoing.head.payload_bytes = static_cast<std::uint32_t>(outgoing.text.size());
    queue(std::move(outgoing));
  } else if (in_flight_ == 0) {
    socket_->finish_sending();
  }
  read_more();
}

void Session::close() {
  if (closed()) return;
  if (resume_) scheduler_.cancel(*resume_);
  resume_.reset();
  socket_.reset();
  in_flight_ = 0;
  front_written_ = 0;
  drop_unwritten(0);
}

/// The connection is at its end: as agreed, or not.
void Session::ended(const Transfer& transfer) {
  if (state_ == State::aborting || heard_goodbye_) return close();
  if (transfer.end && reader_.inside_frame()) return lost("the connection was closed in the middle of a frame");
  lost(broken_.empty() ? reason(transfer) : broken_);
}

void Session::lost(const std::string& why) {
  const std::string when = round_ ? fmt::format("in round {}", *round_) : std::string("before its first round");
  fail(fmt::format("{} was lost {}: {}", name(), when, why));
}

/// What came makes no sense, in the protocol's terms or in those of the receiver.
void Session::misuse(std::string sentence) {
  misused_ = true;
  fail(std::move(sentence));
}

void Session::fail(std::string sentence) {
  if (closed()) return;
  close();
  owner_.failed(*this, {ErrorKind::lost_peer, std::move(sentence)});
}

void Session::tick(gossip::Time now, bool grace) {
  if (closed()) return;
  if (grace) heard_ = now;
  if (reading_ && !heard_goodbye_ && now - heard_ > options_.silence) {
    if (state_ == State::aborting) return close();
    return lost(fmt::format("nothing came from it for {:.3g} s", std::chrono::duration<double>(now - heard_).count()));
  }
  if (in_flight_ == 0 && state_ == State::open && now - spoke_ >= options_.heartbeat) {
    Outgoing outgoing;
    outgoing.head = control(FrameKind::heartbeat);
    queue(std::move(outgoing));
  }
}

}  // namespace gossamer::net
