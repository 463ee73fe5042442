// Carries the frames of one session over whichever connection it has: writes the send queue, reads
// frames, counts and acknowledges them, and resumes where the previous connection broke.
//
// Outgoing values go from the row to the socket without a copy, and their lease ends when the other
// end has them (net/session/send_queue.hpp). Incoming values go from the socket into a pooled
// buffer. While all buffers are leased the transport does not read, TCP slows the sender down, and
// the failure detector counts no idle time. Between processes of one machine, values may stay where
// they are, and be read there (net/session/lending.hpp).
#pragma once

#include <memory>
#include <string>

#include "net/io/deferred_call.hpp"
#include "net/io/socket.hpp"
#include "net/session/ack_state.hpp"
#include "net/session/failure_detector.hpp"
#include "net/session/send_queue.hpp"
#include "net/session/session_options.hpp"
#include "net/wire/frame_reader.hpp"

namespace gossamer::net {

/// Receives the events of a transport. Calls come from the scheduler's loop, or from within
/// attach() and set_data_mode(). The transport stays alive in them.
class TransportUser {
 public:
  virtual ~TransportUser() = default;
  /// A frame has come. The user passes counted frames to count() and acknowledgements to on_ack().
  virtual void on_frame(Frame frame) = 0;
  /// Bytes have come that are no intact frame; `what` says what they are. Nothing more is read from
  /// this connection.
  virtual void on_damaged_frame(const std::string& what) = 0;
  /// The connection is at its end; `why` is a clause.
  virtual void on_connection_end(const std::string& why) = 0;
  /// The other end violated the protocol; `sentence` says how.
  virtual void on_protocol_violation(std::string sentence) = 0;
};

/// What becomes of incoming data and control frames.
enum class DataMode {
  deliver,
  hold,  ///< they are not read, nor frames behind them
  drop,  ///< for good: their values are read and discarded
};

/// Thread: the scheduler's.
class FrameTransport final : public SocketUser {
 public:
  /// All references outlive the transport.
  FrameTransport(gossip::Scheduler& scheduler, const SessionOptions& options,
                 SocketTraffic& traffic, FailureDetector& detector, TransportUser& user);
  ~FrameTransport() override;

  /// Takes a connection in place of the current one, if there is one. `resumes`: the other end
  /// knows the session; both ends acknowledge before they send counted frames. Not from within
  /// on_frame().
  void attach(std::unique_ptr<Socket> socket, bool resumes);
  /// Gives up the current connection; unacknowledged frames stay in the queue.
  void disconnect();
  /// Closes the connection and drops every frame and lease. Final.
  void close();
  bool attached() const { return socket_ != nullptr; }
  /// Frames can be written: there is a connection on which no write has failed.
  bool writable() const { return attached() && write_error_.empty(); }

  /// Appends a frame and writes what can be written. A chunk is the payload of a data frame, text
  /// that of an abort or a contribution, or the place of a lent chunk.
  void send(const FrameBody& body, gossip::Chunk chunk = {}, std::string text = {});
  /// No connection will take what is sent: drops the send queue, now and in future.
  void abandon();
  bool abandoned() const { return mode_ == Mode::abandoned; }
  /// Drops every frame that is not begun, sends an abort frame with `reason` unless it is null, and
  /// then closes the sending side of the connection. Incoming values are discarded. Only while
  /// writable().
  void close_with(const Error* reason);

  void set_data_mode(DataMode mode);
  /// Looks after acknowledgements, and after heartbeats if `heartbeats`.
  void tick(gossip::Time now, bool heartbeats);

  /// A counted frame was accepted.
  void count(const FrameHeader& header);
  /// Handles an acknowledgement. False if it says nothing new.
  bool on_ack(const AckFrame& ack);

  const SendQueue& queue() const { return queue_; }
  const AckState& acks() const { return acks_; }
  /// A byte that came would be read.
  bool reads() const { return reading_ || (abandoned() && !reader_.holds_data()); }

  void read_done(const Transfer& transfer) override;
  void write_done(const Transfer& transfer) override;

 private:
  enum class Mode { open, abandoned, closing, closed };

  void detach();
  void write();
  void read();
  bool handle_frames();
  void watch_leases();

  gossip::Scheduler& scheduler_;
  const SessionOptions& options_;
  SocketTraffic& traffic_;
  FailureDetector& detector_;
  TransportUser& user_;
  Mode mode_ = Mode::open;
  std::unique_ptr<Socket> socket_;

  Lending& lending_;
  BufferPool pool_;
  FrameReader reader_;
  bool reading_ = false;          ///< a read is under way
  bool handling_frames_ = false;  ///< the user may be in on_frame()
  DeferredCall read_later_;

  SendQueue queue_;
  AckState acks_;
  std::string write_error_;  ///< why no more can be written to this connection; empty: it can
  gossip::Time last_write_{0};
  DeferredCall lease_check_;
};

}  // namespace gossamer::net
