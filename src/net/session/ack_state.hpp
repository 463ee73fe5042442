// Acknowledgement state of a session: how many counted frames have been received and acknowledged,
// when the next acknowledgement is due, and whether a new connection still awaits the first one.
// Pure: no socket and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/wire/frame.hpp"

namespace gossamer::net {

class AckState {
 public:
  /// An acknowledgement is sent at once when this many bytes of counted frames are unacknowledged.
  static constexpr std::size_t kDueBytes = std::size_t{2} << 20;
  /// An acknowledgement is sent together with other frames from this many bytes on. Messages up to
  /// this size are copied by their sender (SendQueue::kSmallBytes), so none of its memory waits for
  /// the acknowledgement.
  static constexpr std::size_t kWorthBytes = std::size_t{64} << 10;

  /// A counted frame has been received. An acknowledgement is due after kDueBytes, after a
  /// goodbye, and after the last frame of a message that the sender keeps leased until then. What
  /// is lent stays leased until it is released.
  void on_received(const FrameHeader& header);
  /// Counted frames that have been received since the session began.
  std::uint64_t received() const { return received_; }

  /// An acknowledgement must be sent now.
  bool due() const { return due_; }
  /// An acknowledgement should be sent if other frames are sent anyway.
  bool worth_sending() const { return released_unacked_ || unacked_bytes_ >= kWorthBytes; }
  /// Makes an acknowledgement due if any received or released frame is unacknowledged; returns
  /// whether one is.
  bool make_due();
  /// Frames that were read in the memory of the other end are read no more.
  void on_released() { released_unacked_ = true; }
  /// The acknowledgement to send; afterwards none is due. `sent`: SendQueue::pushed(); `released`:
  /// Lending::released().
  AckFrame take(std::uint64_t sent, std::uint64_t released);
  /// Every received frame has been acknowledged on the current connection, and every release.
  bool up_to_date() const { return acked_ == received_ && !released_unacked_; }

  /// The connection is gone. The acknowledgements that were sent over it may not have arrived.
  void on_detach();
  /// A connection replaces an earlier one: both ends acknowledge before they send counted frames.
  void on_resume() { resuming_ = due_ = true; }
  /// The first acknowledgement of the other end is still awaited on this connection.
  bool resuming() const { return resuming_; }
  /// That acknowledgement is here. Returns whether it was awaited.
  bool finish_resuming();

  /// Keeps an acknowledgement that cannot be handled while a frame is written in part.
  void defer(const AckFrame& ack) { deferred_ = ack; }
  std::optional<AckFrame> take_deferred();

 private:
  std::uint64_t received_ = 0;
  std::uint64_t acked_ = 0;  ///< of these, acknowledged on the current connection
  std::size_t unacked_bytes_ = 0;
  bool released_unacked_ = false;  ///< frames were released since the last acknowledgement
  bool due_ = false;
  bool resuming_ = false;
  std::optional<AckFrame> deferred_;
};

}  // namespace gossamer::net
