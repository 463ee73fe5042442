// The network as one process sees it: a TCP connection per pair of peers that must talk, from the
// first call to the goodbye, and one way to end for all when something goes wrong: the first reason
// floods the graph, and every process stops with the same sentence. Where the run bears the loss of
// a link, the link is called again for as long as the run goes on, and a process that is started
// again joins a network that runs already.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossip/links/link.hpp"
#include "net/options.hpp"
#include "net/real_scheduler.hpp"
#include "net/session/session.hpp"
#include "net/wire/buffer_pool.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

struct NetworkSetup {
  NetOptions options;
  Identity identity;
  std::vector<int> hosted;  ///< ids of this process's peers, ascending
  /// (peer here, peer elsewhere), each pair once: who must be connected. Both processes name it,
  /// each from its side.
  std::vector<std::pair<int, int>> pairs;
  /// What chunks are read into. Outlives all of them.
  BufferMemory chunk_memory = BufferMemory::ordinary();
  /// Lines for people: who is missing, strangers at the door.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// The link between a hosted peer and one elsewhere is lost, after join() and confer(): true
  /// where the run goes on without it. What it sends is dropped from then on, until `back`.
  std::function<bool(int here, int there, const Error&)> lost = [](int, int, const Error&) {
    return false;
  };
  /// A link that was lost, or not there yet when a latecomer's join() returned, carries again: what
  /// is sent over link(here, there) from now on goes out, and what comes is of the new connection.
  /// In each direction the first chunk of a channel begins a message: of one that was begun before,
  /// the rest is dropped. Called from the scheduler's loop before anything of the new connection is
  /// delivered, never from within send() or `lost`. It may do what `fault` may.
  std::function<void(int here, int there)> back = [](int, int) {};
  /// The peer elsewhere, whose link is not lost, has done its part and takes its leave: all it sent
  /// has come, and nothing will any more. Called as `back` is.
  std::function<void(int here, int there)> left = [](int, int) {};
  /// What ended the run, once: a peer lost, the protocol broken, an abort of another process. Not
  /// called for what join() returns or after leave() began. It may call stop() and the like, not
  /// destroy the network.
  std::function<void(const Error&)> fault = [](const Error&) {};
};

/// What the processes of a network tell each other before they begin: see Network::confer.
struct AllGather {
  int exchanges = 0;
  std::function<std::string()> say;  ///< at most kMaxStatementBytes
  /// What a partner said in the same exchange; an error (lost_peer) says, behind its name, how it
  /// makes no sense.
  std::function<Status(const std::string& statement)> hear;
};

/// Thread: the scheduler's, all of it.
class Network {
 public:
  /// Checks the setup. `receiver` is called from the end of join() on, by the scheduler's loop,
  /// never from within send() or a lease's end. Both outlive the network; chunks may outlive it.
  static Result<std::unique_ptr<Network>> make(RealScheduler& scheduler, NetworkSetup setup,
                                               gossip::Receiver& receiver);
  virtual ~Network() = default;

  /// Listens and begins to call; returns at once. The error is this machine's: a port in use, a
  /// folder not writable.
  virtual Status start() = 0;
  /// Whether all pairs are connected; of a latecomer, whether one is, and those that are not had a
  /// second to come.
  virtual bool joined() const = 0;
  /// start() unless done, then runs the scheduler until joined(), and says every few seconds who is
  /// missing and why. Errors: join_timeout with that list; rejected, when a peer refuses us; that
  /// of an abort(); interrupted, when the scheduler was stopped.
  virtual Status join() = 0;

  /// Whether the network had begun before this process joined it, as a partner said. It then takes
  /// no part in confer(), and has those links that connected() names; the others come with
  /// NetworkSetup::back. Known when join() returns; only where all partners are latecomers
  /// themselves may it turn out later, within confer().
  virtual bool late() const = 0;
  /// Whether the link between a hosted peer and one elsewhere carries, which has not taken its
  /// leave: a pair of the setup, any other is a bug.
  virtual bool connected(int here, int there) const = 0;

  /// Between join() and the first chunk, every process alike: so many times, the ends of each pair
  /// tell each other what `say` gives, and hear what the other said before they say more. With as
  /// many exchanges as the network is wide, what one process knows comes to all. Returns when it is
  /// done, or when it turns out that this process is late(), or with what ended the run. Calls come
  /// from the scheduler's loop or from here. From its beginning on the receiver is not called,
  /// until proceed().
  virtual Status all_gather(AllGather conference) = 0;
  /// The two halves of confer(), for those who run the scheduler themselves.
  virtual void begin_all_gather(AllGather conference) = 0;
  virtual bool all_gathered() const = 0;
  /// After confer(), when those above are where they begin: the receiver is called again, in the
  /// scheduler's next turns.
  virtual void proceed() = 0;

  /// From a hosted peer to one elsewhere, for a pair of the setup; any other is a bug. Lives as
  /// long as the network; may be used before join(), but sends only after it. Where the link is
  /// lost it drops what is sent.
  virtual gossip::Link& link(int from, int to) = 0;
  /// Something that has come over the pair's connection breaks the protocol, as turns out after the
  /// receiver took it: as if deliver() had said so. `why` is a whole sentence. Returns at once; the
  /// link is lost in the scheduler's next turns, unless by then it is another session's.
  virtual void refuse(int here, int there, const Error& why) = 0;
  /// Of a hosted peer.
  virtual Traffic traffic(int peer) const = 0;
  /// Where this process listens, from start() on.
  virtual Address address() const = 0;

  /// Ends the run everywhere with this reason; nothing is sent or delivered any more. A second call
  /// does nothing.
  virtual void abort(Error error) = 0;
  /// Orderly end: runs sockets and timers (no coroutines) until all that was sent is out, however
  /// slow its readers are as long as they live, and then until all partners whose links are not
  /// lost have said goodbye too or `patience` is over. After an abort or a fault, until they have
  /// heard why, within `patience` in all. Always call it, before the rows that were sent go: a
  /// process that just ends may cut off its last words. abort() ends it at once.
  virtual void leave(gossip::Time patience = std::chrono::seconds(5)) = 0;
  /// The two halves of leave(), for those who run the scheduler themselves.
  virtual void begin_leave() = 0;
  virtual bool left() const = 0;
};

}  // namespace gossamer::net
