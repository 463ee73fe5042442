// A session: the exchange between one peer here and one peer of another process, after the
// handshake. It carries chunks, heartbeats and a few other frames (net/wire/frame.hpp), and ends by
// a goodbye, an abort or a failure.
//
// A session outlives its connections. Both ends count the frames that they receive; when a
// connection breaks, they make another one, acknowledge over it what they have received, and send
// the rest, so that each counted frame is delivered exactly once and in order. A session fails when
// the other process is gone, no longer knows the session, or is silent for too long. docs/WIRE.md
// states the rules.
//
// The parts: FrameTransport (frames over the current connection), AckState (counts),
// FailureDetector (silence and downtime). This class decides what a frame or an event means for the
// session.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "net/session/failure_detector.hpp"
#include "net/session/frame_transport.hpp"
#include "net/session/session_options.hpp"

namespace gossamer::net {

class Session;

/// Receives the events of a session. Calls come from the scheduler's loop, never from within
/// Session::send() or the end of a lease; the session stays alive in them.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  /// A chunk or a control message. An error says how it breaks the protocol, and fails the session.
  virtual Status on_chunk(gossip::Chunk chunk) = 0;
  /// A contribution to the all-gather. An error fails the session with its message.
  virtual Status on_contribution(Session& session, std::string contribution) = 0;
  /// The first frame has come that is neither a goodbye nor an abort: the other end is alive. The
  /// frame itself is handled afterwards.
  virtual void on_alive(Session& session) = 0;
  /// The other end has said goodbye: it sends nothing more.
  virtual void on_goodbye(Session& session) = 0;
  /// The network of the other end has begun its rounds.
  virtual void on_running() = 0;
  /// Figures for pages of the run. An error fails the session with its message.
  virtual Status on_figures(Session& session, const FiguresFrame& figures, std::string entries) = 0;
  /// The session has failed and is closed. The error is a whole sentence.
  virtual void on_failure(Session& session, Error error) = 0;
  /// The other end has ended the run for this reason.
  virtual void on_abort(Session& session, Error error) = 0;
};

/// What a session knows of its other end.
struct RemoteState {
  bool alive = false;  ///< on_alive() was called
  bool said_goodbye = false;
  bool suspected = false;  ///< it has been silent for half of the failure timeout
  bool violated = false;   ///< its latest connection ended because of what it sent
  bool any_chunk = false;  ///< sent or received
  std::optional<gossip::Round> latest_round;  ///< of all rows, sent or received
};

/// Thread: the scheduler's.
class Session final : private TransportUser {
 public:
  /// All references outlive the session.
  Session(gossip::Scheduler& scheduler, SessionOptions options, SocketTraffic& traffic,
          SessionOwner& owner);

  /// Takes a connection in place of the current one, if there is one. `resumes`: the other end
  /// knows the session already.
  void attach(std::unique_ptr<Socket> socket, bool resumes);
  /// No further connection will come: the session ends, unless the current one still brings
  /// something.
  void give_up();
  /// Sends or lends a chunk of at most kMaxChunkBytes. A session that is closed or ending drops it.
  void send(gossip::Chunk chunk);
  /// Sends a frame that carries no chunk: a contribution, of at most kMaxContributionBytes,
  /// figures, of at most kMaxFiguresBytes, that this network has begun its rounds, or what is to be
  /// said of memory (Lending).
  void send(const FrameBody& body, std::string text = {});
  /// While true, data and control frames wait unread, and so do the frames behind them. That is no
  /// silence of the other end.
  void hold_data(bool hold);

  /// Sends a goodbye after all that is queued; incoming values are discarded from now on.
  void say_goodbye();
  /// Drops what is queued, sends the reason why the run ends (unless `reason` is null: the other
  /// end sent it), and closes when the other end has closed.
  void abort(const Error* reason);
  /// Closes at once.
  void close();
  /// Closes, and fails with the sentence unless the other end owes nothing.
  void end(std::string sentence);

  /// Sends acknowledgements and heartbeats that are due, and runs the failure detector. `counted`:
  /// TickClock::advance.
  void tick(gossip::Time now, gossip::Time counted);
  /// Fails the session: a frame makes no sense, to the session or to the receiver of its chunks.
  void on_protocol_violation(std::string sentence) override;

  bool closed() const { return state_ == State::closed; }
  /// There is a connection.
  bool attached() const { return transport_.attached(); }
  /// Nothing is left to do: both ends have said goodbye and acknowledged it, or the session is
  /// closed.
  bool finished() const;
  const SendQueue& queue() const { return transport_.queue(); }
  const SessionOptions& options() const { return options_; }
  const RemoteState& remote() const { return remote_; }

 private:
  enum class State { open, leaving, aborting, closed };

  void on_frame(Frame frame) override;
  void on_damaged_frame(const std::string& what) override;
  void on_connection_end(const std::string& why) override;

  bool may_send() const;
  Status on_content(Frame frame);
  void on_empty_frame();
  void reconnect_or_end(std::string sentence);

  gossip::Scheduler& scheduler_;
  SessionOptions options_;
  SocketTraffic& traffic_;
  SessionOwner& owner_;
  FailureDetector detector_;
  FrameTransport transport_;
  RemoteState remote_;
  State state_ = State::open;
  gossip::Time began_;
  std::uint64_t empty_frames_ = 0;    ///< received frames that carried nothing new
  std::uint64_t figures_frames_ = 0;  ///< received frames of figures
};

}  // namespace gossamer::net
