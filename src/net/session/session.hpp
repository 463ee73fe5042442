// What a peer here and a peer elsewhere have to say to each other, after the hello: chunks out,
// chunks in, heartbeats, and the ways it can end (goodbye, abort, loss).
//
// A session outlives its connection. Both ends count the frames that came; when a connection breaks
// they ask for another one, tell each other the counts over it, and go on where it was, so that
// each frame comes once. They give up when the other process is gone or has forgotten the session,
// or when the silence is over.
//
// Out: a chunk's values go from the row to the socket without a copy, and its lease ends when the
// other side has them (net/session/send_queue.hpp). In: values go from the socket to a pooled
// buffer. When all buffers are lent the session stops reading, TCP holds the sender back, and the
// silence that follows counts against nobody.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/session/send_queue.hpp"
#include "net/socket.hpp"
#include "net/wire/frame_reader.hpp"
#include "net/wire/hash_memo.hpp"

namespace gossamer::net {

/// What a peer here has sent and received.
struct Traffic {
  std::uint64_t bytes_sent = 0, bytes_received = 0;  ///< at the sockets, everything included
  std::uint64_t data_bytes_sent = 0,
                data_bytes_received = 0;  ///< frames that carry values, with their headers
};

class Session;

/// Who is told what happens. Calls come from the scheduler's loop, never from within send() or a
/// lease's end; the session stays alive in them.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual Status deliver(gossip::Chunk chunk) = 0;
  /// They told something before the first chunk. An error says what is wrong with that, and ends
  /// the session.
  virtual Status told(Session& session, std::string statement) = 0;
  /// The first frame of theirs is here, and is about to be handled: somebody lives at the other
  /// end. Not for a goodbye or an abort.
  virtual void greeted(Session& session) = 0;
  /// They said goodbye: nothing comes of them any more.
  virtual void left(Session& session) = 0;
  /// They say that the network has begun.
  virtual void network_runs() = 0;
  /// The other side is gone, fell silent, or sent what it must not: a whole sentence. The session
  /// is closed.
  virtual void failed(Session& session, Error error) = 0;
  /// The other side ended the run, for this reason.
  virtual void aborted(Session& session, Error error) = 0;
};

struct SessionOptions {
  FrameParties incoming;  ///< what their headers say; `to` is the peer here
  std::string name;       ///< "peer 5 (127.0.0.1:40113)"
  std::uint64_t id = 0;   ///< by which both ends know it
  int window = 2;
  gossip::Time failure_timeout{0};  ///< longest time without a byte from them, or without a
                                    ///< connection that carries something
  gossip::Time heartbeat{0};        ///< longest time without one from us
  bool hold_data = false;
  HashMemo* hashes = nullptr;  ///< shared by a process's sessions
  BufferMemory chunk_memory = BufferMemory::ordinary();
  /// The connection broke, or nothing comes over it: attach() another one, `pause` from now, or
  /// give_up(). Called from the scheduler's loop.
  std::function<void(gossip::Time pause)> call_again = [](gossip::Time) {};
  std::function<void(const std::string&)> message = [](const std::string&) {
  };  ///< lines for people
};

/// Thread: the scheduler's.
class Session final : public SocketUser {
 public:
  Session(gossip::Scheduler& scheduler, SessionOptions options, Traffic& traffic,
          SessionOwner& owner);
  ~Session() override;

  /// Takes a connection, in place of the one before if there is one. `resumes`: the other end knows
  /// the session already; both tell first how much has come.
  void attach(std::unique_ptr<Socket> socket, bool resumes);
  /// There will be no other connection: the session ends, unless the one that there is still brings
  /// something.
  void give_up();
  /// Queues a chunk of at most kMaxChunkBytes. A session that is closed or ending drops it.
  void send(gossip::Chunk chunk);
  /// Queues a statement of at most kMaxStatementBytes.
  void tell(std::string statement);
  /// Queues the word that the network has begun.
  void tell_running();
  /// While true, data wait, with whatever comes behind them; that is no silence.
  void hold_data(bool hold);

  /// Says goodbye after all that is queued; what still comes in is dropped.
  void say_goodbye();
  /// Drops what is queued, says why the run ends unless `reason` is null (the other side told us),
  /// and closes when the other side has closed.
  void abort(const Error* reason);
  /// Closes at once.
  void close();

  /// Sends a heartbeat if one is due; suspects and reports a silence that is too long. `counted`:
  /// how much of the time since the last tick this process was running, which is all that counts
  /// against others: what they sent while it was not lies unread.
  void tick(gossip::Time now, gossip::Time counted);
  /// What came makes no sense, in the protocol's terms or in those of the receiver: the session
  /// fails, for this reason.
  void misuse(std::string sentence);

  bool closed() const { return closed_; }
  /// It has a connection.
  bool attached() const { return socket_ != nullptr; }
  /// Nothing is left to do: both said goodbye and know it, or it is closed.
  bool finished() const {
    return closed() || (state_ == State::leaving && heard_goodbye_ && send_queue_.settled() &&
                        told_ == received_);
  }
  /// All that was queued has come to the other side, or it needs nothing any more: after its
  /// goodbye it drops what comes.
  bool flushed() const { return closed() || heard_goodbye_ || send_queue_.settled(); }
  bool untouched() const { return !round_.has_value(); }
  /// A frame of theirs has come, other than a goodbye or an abort.
  bool greeted() const { return greeted_; }
  bool heard_goodbye() const { return heard_goodbye_; }
  /// It failed because of what they sent, not because the connection broke.
  bool misused() const { return misused_; }
  std::uint64_t id() const { return options_.id; }
  int local() const { return options_.incoming.to; }
  int remote() const { return options_.incoming.from; }
  const std::string& name() const { return options_.name; }

  void read_done(const Transfer& transfer) override;
  void write_done(const Transfer& transfer) override;

 private:
  enum class State { open, leaving, aborting };

  FrameHeader control(FrameKind kind) const;
  bool takes_words() const {
    return !closed() && state_ == State::open && !heard_goodbye_ && !abandoned_;
  }
  void say(const FrameHeader& head, gossip::Chunk chunk = {}, std::string text = {});
  void write_more();
  void write_broke(const Transfer& transfer);
  void look_after_leases();
  void read_more();
  void buffer_returned();
  bool take_frames();
  void handle(Frame frame);
  void count(const Frame& frame);
  void hear_count(const FrameHeader& head);
  void progressed();
  void ended(const Transfer& transfer);
  void damaged(const std::string& what);
  void detach();
  void broke(std::string sentence);
  void finish(std::string sentence);
  std::string lost(const std::string& why) const;
  void fail(std::string sentence);

  gossip::Scheduler& scheduler_;
  SessionOptions options_;
  std::unique_ptr<Socket> socket_;
  Traffic& traffic_;
  SessionOwner& owner_;

  BufferPool pool_;
  FrameReader reader_;
  bool reading_ = false;
  bool taking_frames_ = false;
  std::optional<gossip::Scheduler::TimerId> resume_;  ///< reading goes on when it fires
  gossip::Time quiet_{0};  ///< for how long nothing has come, of the time that counts
  bool suspected_ = false;

  SendQueue send_queue_;
  gossip::Time spoke_{0};
  std::string write_error_;  ///< why no more can be written to this connection; empty: it can
  std::optional<gossip::Scheduler::TimerId> lease_timer_;

  std::uint64_t received_ = 0;  ///< frames that count
  std::uint64_t told_ = 0;      ///< of those, how many they know of, or will when all is written
  std::size_t untold_bytes_ = 0;
  bool tell_now_ = false;
  std::optional<FrameHeader>
      count_to_hear_;  ///< came while something that does not count was being written
  bool counts_due_ =
      false;  ///< nothing that counts is said before they have told how much has come

  // Connections.
  std::string broken_;  ///< what the last break is called if it is the end
  gossip::Time attached_at_{0};
  gossip::Time trouble_{0};  ///< time without a connection that carries something; slowly forgotten
  bool troubled_ = false;    ///< since the last break nothing has got through
  int fruitless_ = 0;        ///< connections in a row that brought nothing
  int breaks_ = 0;
  bool abandoned_ = false;                   ///< nobody will take what is said
  std::optional<std::uint64_t> damaged_at_;  ///< received_ when a frame came that could not be read

  State state_ = State::open;
  bool closed_ = false;
  bool greeted_ = false, heard_goodbye_ = false, misused_ = false;
  std::optional<gossip::Round> round_;  ///< the latest that a chunk named
};

}  // namespace gossamer::net
