// How sessions and connections begin and end: see session.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.hpp"
#include "net/session/session.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kFirstPause = 50ms,
                       kLongestPause =
                           1s;  // before another connection, if the last one brought nothing
// Trouble is forgiven in so many times its length: a link that is down for more than a fifth of the
// time is lost.
constexpr int kForgives = 4;
// Notes that wait for the other end, which answers some of them and may not read: a few megabytes.
constexpr std::size_t kMostNotes = 1 << 16;

}  // namespace

// Connections.

void Session::attach(std::unique_ptr<Socket> socket, bool resumes) {
  GOSSAMER_CHECK(!closed() && !taking_frames_,
                 "a connection for a session that is closed, or in the middle of its call");
  if (attached()) detach();
  socket_ = std::move(socket);
  socket_->set_user(this);
  attached_at_ = spoke_ = scheduler_.now();
  quiet_ = 0ns;
  misused_ = false;
  if (resumes) {
    if (!send_queue_.is_interrupted())
      send_queue_.interrupted();  // their hello came before we knew that the old connection is gone
    counts_due_ = tell_now_ = true;
  }
  read_more();
  write_more();
}

/// The connection is gone; the session is not.
void Session::detach() {
  socket_.reset();
  reading_ = false;
  reader_.restart();
  send_queue_.interrupted();
  write_error_.clear();
  counts_due_ = false;
  count_to_hear_.reset();
  told_ = 0;  // what was told may not have come
}

/// `sentence`: what to say if that is the end.
void Session::broke(std::string sentence) {
  detach();
  broken_ = std::move(sentence);
  if (state_ == State::aborting) return close();
  if (abandoned_) return finish(broken_);
  look_after_leases();
  fruitless_ = troubled_ ? fruitless_ + 1 : 0;
  troubled_ = true;
  ++breaks_;
  if (breaks_ > 1 && std::has_single_bit(static_cast<unsigned>(breaks_)))
    options_.message(fmt::format("the connection to {} has broken {} times, and goes on each time",
                                 name(), breaks_));
  options_.call_again(
      fruitless_ == 0 ? 0ns
                      : std::min(kFirstPause * (1 << std::min(fruitless_ - 1, 8)), kLongestPause));
}

/// Of a connection that is silent the silence decides.
void Session::give_up() {
  if (closed()) return;
  if (!attached()) return finish(broken_);
  if (write_error_.empty()) return;
  // What they said last (a goodbye, or why the run ends) may lie unread: reading finds out. Nobody
  // hears us any more.
  abandoned_ = true;
  send_queue_.drop();
}

/// No connection will come. After a goodbye nothing is missing that they had to give.
void Session::finish(std::string sentence) {
  if (heard_goodbye_ || state_ == State::aborting) return close();
  fail(std::move(sentence));
}

// Ending.

void Session::say_goodbye() {
  if (closed() || state_ != State::open) return;
  state_ = State::leaving;
  reader_.drop_data();
  say(control(FrameKind::goodbye));
  read_more();
}

void Session::abort(const Error* reason) {
  if (closed() || state_ == State::aborting) return;
  state_ = State::aborting;
  if (!attached() || !write_error_.empty()) return close();
  reader_.drop_data();
  // The frame that the kernel has a part of must go out whole, or what follows cannot be read.
  // Those that a write under way may touch stay too.
  send_queue_.drop(true);
  if (reason != nullptr) {
    FrameHeader head = control(FrameKind::abort);
    head.round = static_cast<std::uint64_t>(reason->kind);
    std::string text = reason->message.substr(0, kMaxAbortBytes);
    head.payload_bytes = static_cast<std::uint32_t>(text.size());
    say(head, {}, std::move(text));
  } else if (!send_queue_.writing()) {
    socket_->finish_sending();
  }
  read_more();
}

void Session::close() {
  if (closed()) return;
  closed_ = true;
  for (auto* timer : {&resume_, &lease_timer_}) {
    if (*timer) scheduler_.cancel(**timer);
    timer->reset();
  }
  socket_.reset();
  send_queue_.drop();
}

/// The connection is at its end: as agreed, or not.
void Session::ended(const Transfer& transfer) {
  if (state_ == State::aborting || finished()) return close();
  const bool torn = transfer.end && reader_.inside_frame();
  const std::string why = write_error_.empty() ? reason(transfer) : write_error_;
  broke(lost(torn ? "the connection was closed in the middle of a frame" : why));
}

std::string Session::lost(const std::string& why) const {
  const std::string when =
      round_ ? fmt::format("in round {}", *round_) : std::string("before its first round");
  return fmt::format("{} was lost {}: {}", name(), when, why);
}

void Session::misuse(std::string sentence) {
  misused_ = true;
  fail(std::move(sentence));
}

void Session::fail(std::string sentence) {
  if (closed()) return;
  close();
  owner_.failed(*this, {ErrorKind::lost_peer, std::move(sentence)});
}

void Session::tick(gossip::Time now, gossip::Time counted) {
  if (closed()) return;
  if (send_queue_.notes() > kMostNotes)
    return misuse(fmt::format("{} was lost: it does not take {} notes that wait for it", name(),
                              send_queue_.notes()));
  if (attached() && !counts_due_ && now - attached_at_ > options_.failure_timeout / 2)
    troubled_ = false;
  trouble_ =
      troubled_ ? trouble_ + counted : std::max<gossip::Time>(trouble_ - counted / kForgives, 0ns);
  if (trouble_ > options_.failure_timeout)
    return finish(fmt::format("{}, and no connection since has carried anything for {:.3g} s",
                              broken_, gossip::seconds(trouble_)));
  if (!attached()) return;
  if ((reading_ || (abandoned_ && !reader_.holds_data())) && !heard_goodbye_) quiet_ += counted;
  if (quiet_ > options_.failure_timeout)
    return finish(lost(fmt::format("nothing came from it for {:.3g} s", gossip::seconds(quiet_))));
  if (quiet_ > options_.failure_timeout / 2 && state_ != State::aborting &&
      !std::exchange(suspected_, true)) {
    options_.message(
        fmt::format("{} has said nothing for {:.3g} s, and is suspected; it is lost after {:.3g} s",
                    name(), gossip::seconds(quiet_), gossip::seconds(options_.failure_timeout)));
    options_.call_again(0ns);
    if (closed()) return;
  }
  if (send_queue_.writing()) return;
  if (received_ != told_) tell_now_ = true;
  else if (state_ == State::open && now - spoke_ >= options_.heartbeat)
    send_queue_.push_first(control(FrameKind::heartbeat));
  write_more();
}

}  // namespace gossamer::net
