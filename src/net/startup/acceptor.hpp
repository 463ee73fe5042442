// The accepting side of the handshake: reads the hello of each incoming connection and accepts or
// rejects it. A connection that sends nothing or nonsense costs bounded memory for a bounded time,
// and one line of output at most. With keys, nothing of a hello is read before both ends have
// proved theirs. What a rejected peer learns is the reason as a number, and only if it has proved a
// key the values that differ, which are reported here.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>

#include "net/io/deferred_call.hpp"
#include "net/startup/accept_pace.hpp"
#include "net/startup/connection.hpp"
#include "net/startup/handshake_stream.hpp"
#include "net/startup/refused_connections.hpp"
#include "net/tls/authenticator.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

/// What becomes of a request to a relay.
struct RelayAdmission {
  HandshakeResult result = HandshakeResult::relays_nothing;
  bool waits = false;  ///< if it is accepted
};

struct AcceptorOptions {
  Identity identity;
  Authenticator* authenticator = nullptr;        ///< null: connections are not encrypted
  std::size_t pairs = 0;                         ///< of this process, to bound what is pending
  gossip::Time deadline{0};                      ///< of a pending connection
  std::chrono::milliseconds failure_timeout{0};  ///< Hello::failure_timeout
  std::function<bool()> running;                 ///< Hello::running, asked for each answer
  /// Whether the peer that connects may have the pair that it asks for: accepted, resumed, or a
  /// reason against it. Empty in a process without an id: every peer is to try again later.
  std::function<HandshakeResult(const Hello& hello)> admit;
  /// The connection is accepted and answered.
  std::function<void(Connection, const Hello& hello, HandshakeResult result)> on_admitted;
  /// The connection was rejected, though not for its key; its ids may be unknown. `clause` is the
  /// reason in words.
  std::function<void(const Hello& hello, HandshakeResult result, const std::string& clause)>
      on_rejected;
  std::function<void(const std::string&)> message;  ///< lines for people
  /// Of a network in which processes exchange address books; without, books are refused. Takes the
  /// records of another process, of which a connection came to the address `local_host` of this
  /// machine, and returns the records to answer with.
  std::function<std::vector<AddressRecord>(const std::vector<AddressRecord>& records,
                                           const std::string& local_host)>
      exchange_books = {};
  std::string book_network = {};
  /// Where requests to a relay are admitted: whether this one is, and whether it is answered only
  /// when the other peer calls. Without, this process relays nothing.
  std::function<RelayAdmission(const RelayRequest& request)> admit_relay = {};
  /// The request was admitted, and answered unless it waits. The connection is the caller's as it
  /// came, with the key that it has proved.
  std::function<void(Connection, const RelayRequest& request)> on_relay = {};
};

/// Thread: the scheduler's. Listens from open() until it is destroyed.
class Acceptor {
 public:
  Acceptor(RealScheduler& scheduler, AcceptorOptions options)
      : scheduler_(scheduler),
        options_(std::move(options)),
        pace_(options_.pairs, options_.authenticator != nullptr) {}
  ~Acceptor();

  /// Accepts the connections to the port. Error (network): it cannot.
  Status open(const OpenPort& port);
  /// Takes a connection that came another way: a hello is awaited on it, and where the other end
  /// has not proved its key yet, after the two have.
  void take(Connection connection);
  Address address() const { return listener_->address(); }
  const RefusedConnections& refused() const { return refused_; }

 private:
  /// Lines about rejected connections in each interval.
  static constexpr int kMaxReports = 20;
  static constexpr gossip::Time kReportInterval = std::chrono::seconds(60);

  struct PendingConnection {
    std::shared_ptr<HandshakeStream> stream;
    std::shared_ptr<ShownKey> shown;
    std::string host;  ///< the address of the other end, without its port
    Route route;
    bool answered = false;  ///< rejected: only the end of the connection is awaited
  };
  struct Waiting {
    std::string host;
    std::unique_ptr<Socket> socket;
  };
  using Counter = std::uint64_t RefusedConnections::*;
  using PendingConnections = std::list<PendingConnection>;
  /// Pending connections in all, and of one address. All pairs may be of processes on one machine,
  /// and each may have a new connection and one that was rejected.
  std::size_t max_pending() const { return 64 + 2 * options_.pairs; }
  std::size_t max_pending_of_host() const { return 16 + 2 * options_.pairs; }

  void on_connection(std::unique_ptr<Socket> socket);
  void take_waiting();
  template <class Connections>
  typename Connections::iterator superfluous(Connections& connections,
                                             const std::string& host) const;
  void make_room(const std::string& host);
  void on_end(PendingConnections::iterator pending, const std::string& why);
  void read_book(PendingConnections::iterator pending);
  void read_relay_request(PendingConnections::iterator pending);
  void admit_relay(PendingConnections::iterator pending, const RelayRequest& request);
  HandshakeResult decide(const PendingConnection& pending, const Hello& hello) const;
  void answer(PendingConnections::iterator pending, const Hello& hello, HandshakeResult result);
  void write_rejection(const PendingConnection& pending, const Hello& hello,
                       HandshakeResult result);
  void accept(PendingConnections::iterator pending, const Hello& hello, HandshakeResult result);
  void reject(PendingConnections::iterator pending, const std::string& why,
              Counter counter = &RefusedConnections::handshakes);
  void close(PendingConnections::iterator pending,
             Counter counter = &RefusedConnections::handshakes);
  void report(const std::string& line);

  RealScheduler& scheduler_;
  AcceptorOptions options_;
  AcceptPace pace_;
  /// Connections of which nothing is read before the pace of their address admits them.
  std::list<Waiting> waiting_;
  DeferredCall take_later_{scheduler_, [this] { take_waiting(); }};
  PendingConnections pending_;
  RefusedConnections refused_;
  int reports_ = 0;  ///< lines in this interval
  int unreported_ = 0;
  gossip::Time interval_began_{0};
  std::unique_ptr<Listener> listener_;
};

}  // namespace gossamer::net
