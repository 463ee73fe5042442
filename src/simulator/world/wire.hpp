// One direction of a simulated connection.
//
//   sender's queue (leased chunks) → in flight (copies, a bounded number) → receiver's buffers (a
//   window of them) → exchange
//
// Beside chunks, three frames travel on a wire: hello, the first one of a new connection; close,
// the last one of a peer that has done its rounds; and reset, after which nothing follows.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/link.hpp"
#include "gossip/links/capacity.hpp"
#include "simulator/world/world.hpp"

namespace gossamer::simulator {

/// The longest from the end of one side to the other side's knowledge of it, where the network
/// passes the reset on.
inline constexpr Time kResetTime = std::chrono::milliseconds(100);
/// The most losses of a packet in a row, and the number of round trips until the last of them is
/// sent again: one, then twice as many each time.
inline constexpr int kMostLosses = 3, kLongestResend = (1 << kMostLosses) - 1;

/// What lies between two peers in one direction, whatever connection they have.
struct Path {
  Time delay{0};   ///< added to the arrival of chunks that leave from now on
  int blocks = 0;  ///< nothing passes while this is above 0
};

/// The buffers of a connection's receiver, a window of them: each holds a chunk until the exchange
/// has consumed it.
class ReceiveWindow {
 public:
  ReceiveWindow(int buffers, std::function<void()> on_free);
  ~ReceiveWindow();

  bool has_room() const;
  /// A chunk with these values, in a buffer that is free.
  Chunk hold(const ChunkHeader& header, std::vector<float> values);

 private:
  class Buffer;

  std::function<void()> on_free_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

/// When packets arrive that are sent one after the other on a path.
class Transit {
 public:
  Transit(World& world, const Path& path);

  /// Of a packet that is sent now. A packet behind a late one waits for it, as TCP delivers in
  /// order. A packet that travels twice costs bandwidth, and nothing else.
  Time arrival_of(std::uint64_t bytes);
  /// Of a packet that would arrive at `time`, and overtakes none.
  Time not_before_the_last(Time time) { return last_ = std::max(last_, time); }

 private:
  Time resend_delay();

  World& world_;
  const Path& path_;
  Capacity capacity_;
  Time last_{0};
};

class Wire {
 public:
  /// All references outlive the wire.
  Wire(World& world, const Path& path, int from, int to);

  void send(Chunk chunk);
  void send_hello();
  /// Behind all that waits.
  void send_close();
  /// The close frame has been sent, and has arrived.
  bool close_arrived() const { return close_sent_ && in_flight_.empty(); }

  /// Moves chunks from the sender's queue into flight, as far as there is room.
  void transmit();
  /// Delivers what has arrived, as far as the receiver takes it.
  void deliver_arrived();

  /// The next frame that arrives is damaged.
  void corrupt_next_frame() { corrupts_ = true; }
  /// The next row that is sent begins with a NaN, whatever codec it is in.
  void poison_next_row() { poisons_ = true; }

  /// The sender's end is gone, with what waited there. `resets`: a reset follows what is in flight;
  /// `truncates`: a random part of what is in flight is lost.
  void end_sending(bool resets, bool truncates);
  /// The receiver reads no more.
  void stop_reading();

  /// To be called when the sender's silence may have begun or ended: with a silence the receiver's
  /// failure timeout begins.
  void update_silence();
  /// The receiver could not read for a while: the failure timeout begins anew, for what its sender
  /// sent meanwhile may lie unread.
  void restart_failure_timer();

 private:
  struct Frame {
    ChunkHeader header;
    std::vector<float> values;
    Time arrives{0};
    bool reset = false, hello = false, close = false, poisoned = false;
    std::uint64_t bytes() const { return kFrameOverheadBytes + values.size() * sizeof(float); }
  };

  bool is_silent() const;
  void on_buffer_free();
  void deliver_later(Time when);
  void deliver(Frame frame);
  void set_failure_timer();
  void transmit_soon();
  void send_control(bool Frame::* kind);

  World& world_;
  const Path& path_;
  int from_, to_;
  std::deque<Chunk> queue_;          ///< the sender's
  std::uint64_t queued_values_ = 0;  ///< values of these chunks
  std::deque<Frame> in_flight_;
  Transit transit_;
  ReceiveWindow window_;
  bool sending_ended_ = false, reading_stopped_ = false;
  bool corrupts_ = false, poisons_ = false;
  bool transmit_due_ = false, delivery_due_ = false;
  bool close_due_ = false, close_sent_ = false;
  /// While the sender is silent: its last arrival, or the restart of the timer.
  std::optional<Time> silent_since_;
};

}  // namespace gossamer::simulator
