#include "net/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// Control messages that wait for the other end, which answers some of them and may not read. Each
// takes a frame of SendQueue: 21 MiB in all.
constexpr std::size_t kMaxControlFrames = 1 << 16;

// Frames that carry nothing new: a fixed number, one more in each interval, and one for each frame
// with content. An honest end sends a heartbeat at most each quarter of a failure timeout, which is
// 12.5 ms at least, and a few `running`.
constexpr std::uint64_t kFreeEmptyFrames = 1024;
constexpr gossip::Time kEmptyFrameInterval = 5ms;

// Frames of figures: an honest end sends one a second at most (peer/watch/figure_exchange.hpp).
constexpr std::uint64_t kFreeFiguresFrames = 16;
constexpr gossip::Time kFiguresInterval = 250ms;

// The longest text of another process that is printed.
constexpr std::size_t kMaxPrintedBytes = 512;

/// Text of another process, safe to print: one line of printable ASCII of bounded length.
std::string printable(std::string text) {
  if (text.size() > kMaxPrintedBytes) text.replace(kMaxPrintedBytes - 4, std::string::npos, " ...");
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = ' ';
  return text;
}

/// "peer 5 (10.0.0.7:7000) was lost in round 3: the connection was closed".
std::string loss(const SessionOptions& options, const RemoteState& remote, const std::string& why) {
  std::string when;
  if (options.counts_rounds)
    when = remote.latest_round ? fmt::format(" in round {}", *remote.latest_round)
                               : std::string(" before its first round");
  return fmt::format("{} was lost{}: {}", options.name, when, why);
}

/// A violation of the protocol, whose name is a clause, as a sentence.
Status named(const SessionOptions& options, const Status& status) {
  if (status.ok()) return status;
  return Error{status.error().kind,
               fmt::format("{} broke the protocol: {}", options.name, status.error().message)};
}

/// The options with an object for what is lent: without one, nothing is.
SessionOptions completed(SessionOptions options, gossip::Scheduler& scheduler) {
  if (!options.lending) options.lending = std::make_shared<Lending>(scheduler, nullptr);
  return options;
}

ControlFrame control_frame(const gossip::ChunkHeader& header) {
  const bool catches_up = header.control == gossip::ControlMessage::catch_up;
  return {header.control,
          header.round,
          header.channel,
          header.link_state,
          catches_up ? header.resumes_at : header.donor_steps,
          header.chain};
}

gossip::ChunkHeader chunk_header(const FrameHeader& frame) {
  gossip::ChunkHeader header{frame.from, frame.to};
  const LentFrame* lent = frame.lent();
  if (const DataFrame* data = lent != nullptr ? &lent->chunk : frame.data()) {
    header.round = data->round;
    header.channel = data->channel;
    header.offset = data->offset;
    header.total = data->total;
  } else if (const ControlFrame* control = frame.control()) {
    header.round = control->round;
    header.channel = control->channel;
    header.control = control->message;
    header.link_state = control->link_state;
    if (control->message == gossip::ControlMessage::catch_up) header.resumes_at = control->argument;
    else header.donor_steps = control->argument;
    header.chain = control->chain;
  }
  return header;
}

}  // namespace

Session::Session(gossip::Scheduler& scheduler, SessionOptions options, SocketTraffic& traffic,
                 SessionOwner& owner)
    : scheduler_(scheduler),
      options_(completed(std::move(options), scheduler)),
      traffic_(traffic),
      owner_(owner),
      detector_(options_.failure_timeout),
      transport_(scheduler, options_, traffic, detector_, *this),
      began_(scheduler.now()) {}

bool Session::finished() const {
  return closed() || (state_ == State::leaving && remote_.said_goodbye &&
                      transport_.queue().fully_acked() && transport_.acks().up_to_date());
}

// Sending.

bool Session::may_send() const {
  return state_ == State::open && !remote_.said_goodbye && !transport_.abandoned();
}

void Session::send(gossip::Chunk chunk) {
  if (!may_send()) return;
  GOSSAMER_CHECK(chunk.values.size_bytes() <= kMaxChunkBytes, "a chunk larger than frames can be");
  const gossip::ChunkHeader& header = chunk.header;
  GOSSAMER_CHECK(header.from == options_.local() && header.to == options_.remote(),
                 "a chunk on the link of another pair");
  remote_.any_chunk = true;
  traffic_.data_bytes_sent += gossip::frame_bytes(chunk);
  if (header.control != gossip::ControlMessage::none)
    return transport_.send(control_frame(header), std::move(chunk));
  remote_.latest_round = std::max(remote_.latest_round.value_or(0), header.round);
  const DataFrame data{header.round, header.channel, header.offset, header.total};
  const std::optional<LentPlace> place = options_.lending->place_of(chunk);
  if (!place) return transport_.send(data, std::move(chunk));
  traffic_.lent_bytes_sent += chunk.values.size_bytes();
  transport_.send(LentFrame{data}, std::move(chunk), encode_place(*place));
}

void Session::send(const FrameBody& body, std::string text) {
  static_assert(kMaxFiguresBytes == kMaxContributionBytes);
  GOSSAMER_CHECK(text.size() <= kMaxContributionBytes, "a text larger than frames can be");
  if (may_send()) transport_.send(body, {}, std::move(text));
}

void Session::hold_data(bool hold) {
  if (state_ != State::open) return;  // incoming values are discarded
  transport_.set_data_mode(hold ? DataMode::hold : DataMode::deliver);
}

// Receiving.

void Session::on_frame(Frame frame) {
  const FrameKind kind = frame.header.kind();
  if (remote_.said_goodbye && state_ != State::aborting && kind != FrameKind::abort &&
      kind != FrameKind::ack)
    return on_protocol_violation(
        fmt::format("{} broke the protocol: it sent a frame after its goodbye", options_.name));
  if (!remote_.alive && kind != FrameKind::goodbye && kind != FrameKind::abort) {
    remote_.alive = true;
    owner_.on_alive(*this);
    if (closed()) return;
  }
  if (frame.header.counted()) transport_.count(frame.header);
  if (frame.dropped) return;
  switch (kind) {
    case FrameKind::heartbeat: return on_empty_frame();
    case FrameKind::ack:
      if (!transport_.on_ack(std::get<AckFrame>(frame.header.body))) on_empty_frame();
      return;
    case FrameKind::running:
      if (state_ == State::open) owner_.on_running();
      return on_empty_frame();
    case FrameKind::goodbye:
      remote_.said_goodbye = true;
      options_.lending->lent().release_all();  // its rounds are done
      return owner_.on_goodbye(*this);
    case FrameKind::abort:
      if (state_ == State::aborting) return;
      return owner_.on_abort(
          *this, {std::get<AbortFrame>(frame.header.body).error, printable(std::move(frame.text))});
    case FrameKind::contribution:
    case FrameKind::offer:
    case FrameKind::mapped:
    case FrameKind::figures:
    case FrameKind::data:
    case FrameKind::lent:
    case FrameKind::control: {
      const Status status = on_content(std::move(frame));
      if (!status.ok()) on_protocol_violation(status.error().message);
    }
  }
}

/// A frame for the owner, or about memory. The error is a whole sentence.
Status Session::on_content(Frame frame) {
  Lending& lending = *options_.lending;
  if (frame.header.kind() == FrameKind::contribution)
    return state_ == State::open ? owner_.on_contribution(*this, std::move(frame.text)) : Status();
  if (const auto* figures = std::get_if<FiguresFrame>(&frame.header.body)) {
    const auto interval = (scheduler_.now() - began_) / kFiguresInterval;
    if (++figures_frames_ > kFreeFiguresFrames + static_cast<std::uint64_t>(interval))
      return named(options_,
                   Error{ErrorKind::lost_peer,
                         fmt::format("it sent {} frames of figures in {:.3g} s", figures_frames_,
                                     gossip::seconds(scheduler_.now() - began_))});
    if (state_ != State::open) return {};
    return named(options_, owner_.on_figures(*this, *figures, std::move(frame.text)));
  }
  if (frame.header.kind() == FrameKind::mapped) return named(options_, lending.on_mapped());
  if (const auto* offer = std::get_if<OfferFrame>(&frame.header.body)) {
    if (!may_send()) return {};
    const auto mapped = lending.on_offer(*offer);
    if (mapped.ok() && *mapped) send(MappedFrame{});
    return named(options_, mapped.ok() ? Status() : Status(mapped.error()));
  }
  const gossip::ChunkHeader header = chunk_header(frame.header);
  gossip::Chunk chunk(header, frame.values, std::move(frame.lease));
  if (frame.header.lent() != nullptr) {
    auto borrowed = lending.borrow(transport_.acks().received() - 1, header, frame.text);
    if (!borrowed.ok()) return named(options_, borrowed.error());
    chunk = std::move(borrowed).value();
    traffic_.lent_bytes_received += chunk.values.size_bytes();
  }
  traffic_.data_bytes_received += gossip::frame_bytes(chunk);
  remote_.any_chunk = true;
  // A control message may name a round that is far from coming.
  if (header.control == gossip::ControlMessage::none)
    remote_.latest_round = std::max(remote_.latest_round.value_or(0), header.round);
  return state_ == State::open ? owner_.on_chunk(std::move(chunk)) : Status();
}

/// A frame has come that carries nothing new. An end that sends them without a pause costs this
/// process its time: that is a protocol violation.
void Session::on_empty_frame() {
  const auto interval = (scheduler_.now() - began_) / kEmptyFrameInterval;
  const std::uint64_t allowed = kFreeEmptyFrames + static_cast<std::uint64_t>(interval);
  if (++empty_frames_ <= allowed + transport_.acks().received()) return;
  on_protocol_violation(fmt::format(
      "{} broke the protocol: it sent {} heartbeats and other frames without content in {:.3g} s",
      options_.name, empty_frames_, gossip::seconds(scheduler_.now() - began_)));
}

/// Damage by the network is tolerated once for each frame: the frame is sent again. A second
/// corruption of the same frame is a protocol violation by the sender.
void Session::on_damaged_frame(const std::string& what) {
  std::string sentence = fmt::format("{} broke the protocol: it sent {}", options_.name, what);
  if (state_ == State::aborting) return close();
  if (!detector_.on_damaged_frame(transport_.acks().received()))
    return on_protocol_violation(std::move(sentence));
  remote_.violated = true;
  options_.message(
      fmt::format("{} sent {}; the frame is requested once more", options_.name, what));
  reconnect_or_end(std::move(sentence));
}

// Connections.

void Session::attach(std::unique_ptr<Socket> socket, bool resumes) {
  remote_.violated = false;
  const int breaks = detector_.breaks();
  if (resumes && breaks > 1 && std::has_single_bit(static_cast<unsigned>(breaks)))
    options_.message(
        fmt::format("the connection to {} has broken {} times and was resumed each time",
                    options_.name, breaks));
  transport_.attach(std::move(socket), resumes);
}

void Session::on_connection_end(const std::string& why) {
  if (state_ == State::aborting || finished()) return close();
  reconnect_or_end(loss(options_, remote_, why));
}

/// The connection broke. `sentence`: the reason, should the session end by it.
void Session::reconnect_or_end(std::string sentence) {
  transport_.disconnect();
  if (state_ == State::aborting) return close();
  if (transport_.abandoned()) return end(std::move(sentence));
  options_.reconnect(detector_.on_break(std::move(sentence)));
}

/// The failure detector decides about a connection that is silent.
void Session::give_up() {
  if (closed()) return;
  if (!attached()) return end(detector_.last_break());
  // The last frames of the other end (a goodbye, or the reason of an abort) may lie unread; reading
  // goes on. The other end receives nothing any more.
  if (!transport_.writable()) transport_.abandon();
}

/// After its goodbye the other end owes nothing.
void Session::end(std::string sentence) {
  if (closed()) return;
  const bool expected = remote_.said_goodbye || state_ == State::aborting;
  close();
  if (!expected) owner_.on_failure(*this, {ErrorKind::lost_peer, std::move(sentence)});
}

// Ending.

void Session::say_goodbye() {
  if (state_ != State::open) return;
  state_ = State::leaving;
  transport_.send(GoodbyeFrame{});
  transport_.set_data_mode(DataMode::drop);
}

void Session::abort(const Error* reason) {
  if (closed() || state_ == State::aborting) return;
  state_ = State::aborting;
  if (!transport_.writable()) return close();
  transport_.close_with(reason);
}

void Session::close() {
  state_ = State::closed;
  transport_.close();
}

void Session::on_protocol_violation(std::string sentence) {
  if (closed()) return;
  remote_.violated = true;
  close();
  owner_.on_failure(*this, {ErrorKind::lost_peer, std::move(sentence)});
}

void Session::tick(gossip::Time now, gossip::Time counted) {
  if (closed()) return;
  if (const std::size_t waiting = transport_.queue().control_frames(); waiting > kMaxControlFrames)
    return on_protocol_violation(
        fmt::format("{} was lost: it does not accept {} control messages that wait for it",
                    options_.name, waiting));
  using Finding = FailureDetector::Finding;
  const FailureDetector::Conditions conditions{
      .attached = attached(),
      .resuming = transport_.acks().resuming(),
      .waiting = transport_.reads() && !remote_.said_goodbye,
      .closing = state_ == State::aborting};
  const Finding finding = detector_.on_tick(now, counted, conditions);
  const double idle = gossip::seconds(detector_.idle_time());
  switch (finding) {
    case Finding::alive: break;
    case Finding::recovered:
      remote_.suspected = false;
      options_.message(fmt::format("{} is no longer suspected: it sends again", options_.name));
      break;
    case Finding::suspected:
      remote_.suspected = true;
      options_.message(fmt::format(
          "{} is suspected: it has sent nothing for {:.3g} s, and is lost after {:.3g} s",
          options_.name, idle, gossip::seconds(options_.failure_timeout)));
      options_.reconnect(0ns);
      break;
    case Finding::silent:
      return end(loss(options_, remote_, fmt::format("it sent nothing for {:.3g} s", idle)));
    case Finding::down:
      return end(fmt::format("{}, and no connection since has carried anything for {:.3g} s",
                             detector_.last_break(), gossip::seconds(detector_.downtime())));
  }
  if (!closed()) transport_.tick(now, state_ == State::open);
}

}  // namespace gossamer::net
