// One connection between a peer here and a peer elsewhere, after the hello: chunks out, chunks in, heartbeats, and the ways
// it can end (goodbye, abort, loss).
//
// Out: a chunk's values go from the row to the socket without a copy, and its lease ends when the socket has taken them.
// In: values go from the socket to a pooled buffer. When all buffers are lent the session stops reading, TCP holds the
// sender back, and the silence that follows counts against nobody.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/frame_reader.hpp"
#include "net/hash_memo.hpp"
#include "net/socket.hpp"

namespace gossamer::net {

/// What a peer here has sent and received.
struct Traffic {
  std::uint64_t bytes_sent = 0, bytes_received = 0;            ///< at the sockets, everything included
  std::uint64_t data_bytes_sent = 0, data_bytes_received = 0;  ///< frames that carry values, with their headers
};

class Session;

/// Who is told what happens. Calls come from the scheduler's loop, never from within send() or a lease's end; the session
/// stays alive in them.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual Status deliver(gossip::Chunk chunk) = 0;
  /// They told something before the first chunk. An error says what is wrong with that, and ends the session.
  virtual Status told(Session& session, std::string statement) = 0;
  /// The first frame of theirs is here, and is about to be handled: somebody lives at the other end. Not for a goodbye or an abort.
  virtual void greeted(Session& session) = 0;
  /// They say that the network has begun.
  virtual void network_runs() = 0;
  /// The connection broke, fell silent, or brought what it must not: a whole sentence. The session is closed.
  virtual void failed(Session& session, Error error) = 0;
  /// The other side ended the run, for this reason.
  virtual void aborted(Session& session, Error error) = 0;
};

struct SessionOptions {
  FrameParties incoming;  ///< what their headers say; `to` is the peer here
  std::string name;       ///< "peer 5 (127.0.0.1:40113)"
  int window = 2;
  gossip::Time silence{0};    ///< longest time without a byte from them
  gossip::Time heartbeat{0};  ///< longest time without one from us
  bool hold_data = false;
  HashMemo* hashes = nullptr;  ///< shared by a process's sessions
  BufferMemory chunk_memory = BufferMemory::ordinary();
};

/// Thread: the scheduler's.
class Session final : public SocketUser {
 public:
  Session(RealScheduler& scheduler, SessionOptions options, std::unique_ptr<Socket> socket, Traffic& traffic,
          SessionOwner& owner);
  ~Session() override;

  /// Begins to read.
  void start();
  /// Queues a chunk of at most kMaxChunkBytes. A session that is closed or ending drops it.
  void send(gossip::Chunk chunk);
  /// Queues a statement of at most kMaxStatementBytes.
  void tell(std::string statement);
  /// Queues the word that the network has begun.
  void tell_running();
  /// Lets data through that was held back.
  void release_data();

  /// Says goodbye after all that is queued; what still comes in is dropped.
  void say_goodbye();
  /// Drops what is queued, says why the run ends unless `reason` is null (the other side told us), and closes when the other
  /// side has closed.
  void abort(const Error* reason);
  /// Closes at once.
  void close();

  /// Sends a heartbeat if one is due; reports a silence that is too long. `grace`: this process itself was held up, so
  /// what they sent may lie unread.
  void tick(gossip::Time now, bool grace);

  bool closed() const { return socket_ == nullptr; }
  /// Nothing is left to do: both said goodbye and all is written, or it is closed.
  bool finished() const { return closed() || (state_ == State::leaving && heard_goodbye_ && queue_.empty()); }
  /// All that was queued is written, or nothing can be any more.
  bool flushed() const { return closed() || queue_.empty(); }
  bool untouched() const { return !round_.has_value(); }
  /// A frame of theirs has come, other than a goodbye or an abort.
  bool greeted() const { return greeted_; }
  bool heard_goodbye() const { return heard_goodbye_; }
  /// It failed because of what they sent, not because the connection broke.
  bool misused() const { return misused_; }
  int local() const { return options_.incoming.to; }
  int remote() const { return options_.incoming.from; }
  const std::string& name() const { return options_.name; }

  void read_done(const Transfer& transfer) override;
  void write_done(const Transfer& transfer) override;

 private:
  enum class State { open, leaving, aborting };

  struct Outgoing {
    FrameHead head;
    gossip::Chunk chunk;
    std::string text;
    std::array<std::byte, kFrameHeadBytes> bytes{};
    bool encoded = false;
    HashMemo::Moment lent = 0;

    std::span<const std::byte> payload() const;
    std::size_t size() const { return kFrameHeadBytes + head.payload_bytes; }
  };

  FrameHead control(FrameKind kind) const;
  void queue(Outgoing outgoing);
  void write_more();
  void written(std::size_t bytes);
  void drop_unwritten(std::size_t keep);
  void stop_writing(const Transfer& transfer);
  void read_more();
  void buffer_returned();
  bool take_frames();
  void handle(Frame frame);
  void ended(const Transfer& transfer);
  void lost(const std::string& why);
  void misuse(std::string sentence);
  void fail(std::string sentence);

  RealScheduler& scheduler_;
  SessionOptions options_;
  std::unique_ptr<Socket> socket_;
  Traffic& traffic_;
  SessionOwner& owner_;

  BufferPool pool_;
  FrameReader reader_;
  bool reading_ = false;
  bool taking_frames_ = false;
  std::optional<gossip::Scheduler::TimerId> resume_;  ///< reading goes on when it fires
  gossip::Time heard_{0};  ///< when the last byte came, or waiting for one began

  std::deque<Outgoing> queue_;
  std::size_t front_written_ = 0;  ///< bytes of the first frame that are out
  std::size_t in_flight_ = 0;      ///< frames that the write under way may touch; 0: none is
  std::array<Area, Socket::kMaxAreas> areas_;
  gossip::Time spoke_{0};
  std::string broken_;  ///< why no more can be written; empty: it can

  State state_ = State::open;
  bool greeted_ = false, heard_goodbye_ = false, misused_ = false;
  std::optional<gossip::Round> round_;  ///< the latest that a chunk named
};

}  // namespace gossamer::net
