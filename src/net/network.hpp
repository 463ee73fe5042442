// The network as one process sees it: one TCP connection for each pair of a hosted peer and a peer
// of another process, from the handshake to the goodbye. docs/WIRE.md describes the protocol.
//
// The run of all processes ends with one error: the first one floods the graph, and every process
// stops with it. Where the run tolerates the loss of a link, the lost link is connected again for
// as long as the run goes on, and a process that is restarted joins the network that runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gossip/link.hpp"
#include "net/io/real_scheduler.hpp"
#include "net/listening.hpp"
#include "net/options.hpp"
#include "net/session/session_options.hpp"
#include "net/startup/refused_connections.hpp"
#include "net/startup/route.hpp"
#include "net/tls/members.hpp"
#include "net/wire/buffer_pool.hpp"
#include "net/wire/frame.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

/// A frame of figures, with at most kMaxFiguresBytes of entries.
struct Figures {
  FiguresFrame frame;
  std::string entries;
};

/// What a process knows of a link.
struct LinkReport {
  int here = 0, there = 0;  ///< peer of this process, and of another one
  bool carries = false;     ///< Network::connected()
  bool lends = false;       ///< the other end reads the rows of the peer here in the memory of this
                            ///< process, to which they are not sent
  bool suspected = false;   ///< the other end has been silent for half of the failure timeout
  Route route = {};         ///< of the latest connection
};

/// The peers of an open run that join the network while it runs.
struct LaterPeers {
  std::set<int> elsewhere = {};  ///< of other processes: they are not waited for
  bool here = false;             ///< this process waits until a network runs
};

/// "peer 3"
std::string peer_name(int peer);

/// The name of a peer in messages, whether they say in which round it was lost, and from which
/// setting NetOptions::join_timeout of the network is.
struct PeerWords {
  std::function<std::string(int)> name_of = peer_name;
  bool counts_rounds = true;
  std::string join_limit = "net.join_timeout";
};

/// Memory that a network shares with what uses it, which outlives it.
struct NetworkMemory {
  /// That chunks are read into.
  BufferMemory chunks = BufferMemory::ordinary();
  /// Of rows that processes of this machine may read in place; or null (Lending).
  const SharedMemory* rows = nullptr;
};

struct NetworkSetup {
  NetOptions options;
  /// The key of this process and those of the members: every connection is encrypted and proves
  /// both. Without, none is.
  std::optional<Credentials> credentials = {};
  Identity identity;
  std::vector<int> hosted;  ///< ids of the peers of this process, ascending
  /// Where this process listens already, with ids that it has claimed there (claim_id()); null: its
  /// ids were given to it, and it listens as open_listening() says.
  std::shared_ptr<const Listening> listening = {};
  /// (peer here, peer of another process), each pair once: the pairs to connect. Both processes
  /// name a pair, each from its side.
  std::vector<std::pair<int, int>> pairs;
  LaterPeers later = {};
  /// After so long without a connection to a partner, other ways to it are looked for.
  gossip::Time detour_patience = std::chrono::seconds(3);
  NetworkMemory memory = {};
  PeerWords words = {};
  /// Lines for people: missing peers, rejected connections.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// A link is lost, after join() and all_gather(). Returns whether the run goes on without it.
  /// What is sent over the link is dropped from then on, until `on_link_restored`.
  std::function<bool(int here, int there, const Error&)> on_link_lost = [](int, int, const Error&) {
    return false;
  };
  /// A link that was lost, or that a latecomer did not have when join() returned, carries again.
  /// The chunks sent over link(here, there) from now on go out, and the chunks that come were sent
  /// over the new connection. In each direction the first chunk of a channel begins a message; the
  /// rest of a message that was begun before is dropped. Called from the scheduler's loop before
  /// any chunk of the new connection is delivered, never from within send() or `on_link_lost`. It
  /// may do what `fault` may.
  std::function<void(int here, int there)> on_link_restored = [](int, int) {};
  /// The peer at the other end of a link that is not lost has finished its run and left: all that
  /// it sent has been delivered, and nothing follows. Called as `on_link_restored` is.
  std::function<void(int here, int there)> on_peer_left = [](int, int) {};
  /// The connection of a pair goes another way than the one before; the first one is compared with
  /// a direct one. From start() on.
  std::function<void(int here, int there, const Route& route)> on_route = [](int, int,
                                                                             const Route&) {};
  /// Figures have come over the link, from join() on. An error (lost_peer) says, as a clause after
  /// the partner's name, how they break the protocol; the link is then lost.
  std::function<Status(int here, int there, const Figures& figures)> on_figures =
      [](int, int, const Figures&) { return Status(); };
  /// Called several times in each failure timeout, from join() on: `counted` is the time since the
  /// last call that may count against others (TickClock).
  std::function<void(gossip::Time counted)> on_tick = [](gossip::Time) {};
  /// The run has ended, called once: a lost peer, a protocol violation, an abort of another
  /// process. Not called for an error that join() returns, nor after leave() began. It may call
  /// stop() and the like, not destroy the network.
  std::function<void(const Error&)> fault = [](const Error&) {};
};

/// An all-gather over the edges of the graph: in each of `steps` steps the two ends of every pair
/// exchange a contribution. After as many steps as the graph's diameter, what one process knew at
/// the start has spread to all.
struct AllGather {
  int steps = 0;
  /// The contribution of this process to the next step, of at most kMaxContributionBytes.
  std::function<std::string()> contribution;
  /// Takes in the contribution of the process of peer `there`, over its edge to the hosted peer
  /// `here`, to the same step. An error (lost_peer) says, as a clause after the partner's name, why
  /// the contribution makes no sense.
  std::function<Status(int here, int there, const std::string& contribution)> merge;
};

/// Thread: the scheduler's, for every function.
class Network {
 public:
  /// Checks the setup. `receiver` is called from the end of join() on, by the scheduler's loop,
  /// never from within send() or the end of a lease. Scheduler and receiver outlive the network;
  /// chunks may outlive it. Errors (invalid): see net::validate.
  static Result<std::unique_ptr<Network>> make(RealScheduler& scheduler, NetworkSetup setup,
                                               gossip::Receiver& receiver);
  virtual ~Network() = default;

  /// Listens and begins to connect; returns at once. Errors are those of this machine: the port is
  /// in use, the rendezvous folder is not writable.
  virtual Status start() = 0;
  /// All pairs are connected. Of a latecomer: one pair is, and the grace period of the others is
  /// over.
  virtual bool joined() const = 0;
  /// Calls start() unless that was done, runs the scheduler until joined(), and reports missing
  /// peers with the reason every few seconds. Errors: join_timeout with the missing peers;
  /// rejected, if a peer rejects this process; the error of an abort(); interrupted, if the
  /// scheduler was stopped.
  virtual Status join() = 0;

  /// This process is a latecomer: a partner said that its network had begun before this process
  /// joined. A latecomer takes no part in all_gather(), and has the links for which connected()
  /// holds when it calls release_chunks(); the others come with NetworkSetup::on_link_restored.
  /// Known when join() returns. Only if all partners are latecomers themselves may it turn out
  /// later, within all_gather().
  virtual bool late() const = 0;
  /// The link of a pair of the setup (any other pair is a bug) carries, and its other end has not
  /// left.
  virtual bool connected(int here, int there) const = 0;

  /// Runs an all-gather, between join() and the first chunk, alike in every process. Returns when
  /// it is complete, when it turns out that this process is late(), or with the error that ended
  /// the run. The callbacks are called from the scheduler's loop or from here. Undoes an earlier
  /// release_chunks().
  virtual Status all_gather(AllGather gather) = 0;
  /// The two halves of all_gather(), for callers that run the scheduler themselves.
  virtual void begin_all_gather(AllGather gather) = 0;
  virtual bool all_gathered() const = 0;
  /// The layers above are ready. The receiver is not called before, and is called in the
  /// scheduler's next turns, once joined(). A latecomer learns of lost and restored links by
  /// callbacks from here on, and before by connected().
  virtual void release_chunks() = 0;

  /// The link from a hosted peer to a peer of another process, of a pair of the setup (any other
  /// pair is a bug). It lives as long as the network, and may be used for sending only after
  /// join(). A lost link drops what is sent.
  virtual gossip::Link& link(int from, int to) = 0;
  /// Asks for figures and sends them, if the link of a pair of the setup carries, and its other end
  /// has received the figures before them.
  virtual void send_figures(int here, int there,
                            const std::function<std::optional<Figures>()>& figures) = 0;
  /// Ends the session of this pair, and with it the link, in the scheduler's next turns, unless
  /// another session has it by then; returns at once. `why` is a whole sentence. The other end may
  /// connect again at once, or as `blame` says.
  enum class Blame {
    none,       ///< no end is at fault
    violation,  ///< a chunk that the receiver accepted turns out to violate the protocol; the
                ///< effect is that of an error of deliver()
    overdue,  ///< its rows are overdue: it is admitted again after net.row_timeout only, and after
              ///< twice as long each further time
    left,     ///< the other end has left, and nothing is due to it: this end says goodbye too, and
              ///< the other may come back once it has received that, or is gone
  };
  virtual void end_link(int here, int there, Blame blame, const Error& why) = 0;
  /// Of a hosted peer.
  virtual SocketTraffic traffic(int peer) const = 0;
  /// The links of the setup's pairs that have been connected, also those that are lost.
  virtual std::vector<LinkReport> links() const = 0;
  /// Replaces the list of members, of a setup with credentials (else a bug). A link whose other end
  /// has a key that is no longer that of its peer is lost at once; the keys that were added may
  /// connect. Only from the scheduler's loop.
  virtual void set_members(MemberList members) = 0;
  /// Incoming connections that were refused.
  virtual RefusedConnections refused() const = 0;
  /// Where this process listens, from start() on.
  virtual Address address() const = 0;

  /// Ends the run of all processes with this error; nothing is sent or delivered any more. A second
  /// call does nothing.
  virtual void abort(Error error) = 0;
  /// The orderly end. Runs sockets and timers (no coroutines) until all that was sent is
  /// acknowledged, however slow its readers are as long as they are alive, and then until all
  /// partners with a link that is not lost have said goodbye too, or `patience` is over. After an
  /// abort or a fault, until the partners have received the error, within `patience` in all. Always
  /// call it, and before the rows that were sent are destroyed: the system may discard the last
  /// frames of a process that just ends. abort() ends it at once.
  virtual void leave(gossip::Time patience = std::chrono::seconds(5)) = 0;
  /// After leave(): where this process passes on connections of pairs of other processes' peers,
  /// calls `on_start` with their number, and runs sockets and timers until there are none, or
  /// `patience` is over. abort() ends it at once.
  virtual void relay_on(gossip::Time patience,
                        const std::function<void(std::size_t pairs)>& on_start) = 0;
  /// The two halves of leave(), for callers that run the scheduler themselves.
  virtual void begin_leave() = 0;
  virtual bool left() const = 0;
};

}  // namespace gossamer::net
