#include "net/run/connection_manager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "net/io/random_number.hpp"
#include "net/run/network_book.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

// How often the files in the rendezvous folder are checked once all processes have joined.
constexpr gossip::Time kRendezvousCheck = 1s;
// A heartbeat is sent this many times within the shorter of both failure timeouts.
constexpr int kHeartbeatsPerTimeout = 4;
// For how long an end that cannot be called may take to make another connection itself.
constexpr gossip::Time kOwnAttempt = 500ms;
// The shortest failure timeout of the other end that heartbeats are adapted to.
constexpr gossip::Time kShortestTimeout = 50ms;

std::chrono::milliseconds milliseconds(gossip::Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

}  // namespace

Status ConnectionManager::start() {
  listening_ = state_.setup.listening;
  if (!listening_) {
    GOSSAMER_TRY(Listening opened, open_listening(state_.setup.options, state_.setup.hosted));
    listening_ = std::make_shared<const Listening>(std::move(opened));
  }
  if (!listening_->port.is_loopback() && !state_.authenticator)
    state_.setup.message(
        fmt::format("warning: links are not encrypted, and {} can be reached from other machines",
                    to_string(address())));
  if (!state_.setup.options.seeds.empty()) begin_discovery();
  acceptor_ = std::make_unique<Acceptor>(state_.scheduler, acceptor_options());
  GOSSAMER_TRY_STATUS(acceptor_->open(listening_->port));
  GOSSAMER_TRY_STATUS(announce());
  for (auto& [pair, edge] : state_.edges) {
    if (edge.connects()) connect(edge);
    detours_.begin(edge, state_.setup.detour_patience);
  }
  return {};
}

/// In the rendezvous folder.
Status ConnectionManager::announce() {
  const std::string& folder = state_.setup.options.rendezvous;
  if (folder.empty()) return {};
  // Without keys a hello shows the settings too.
  const std::string& settings = state_.setup.identity.settings;
  rendezvous_.emplace(folder, state_.setup.identity.run_id,
                      state_.authenticator ? std::string() : settings);
  state_.other_run = [this](int peer) { return rendezvous_->other_run(peer); };
  if (listening_->address.is_none()) return {};
  Address own = state_.setup.options.reach.advertise.empty() ? address() : listening_->address;
  if (is_any_host(own)) own.host = host_name();
  return rendezvous_->announce(state_.setup.hosted, own);
}

void ConnectionManager::begin_discovery() {
  const Identity& identity = state_.setup.identity;
  const NetOptions& options = state_.setup.options;
  book_.emplace(book_options(identity.run_id, identity.peers, options, *listening_,
                             state_.authenticator.get()));
  book_->host(state_.setup.hosted);
  DiscoveryOptions discovery = discovery_options(options, *listening_);
  discovery.identity = identity;
  discovery.authenticator = state_.authenticator.get();
  discovery.message = state_.setup.message;
  discovery.on_rejected = [this](Error error) {
    if (!state_.run.joined) shutdown_.end_run(std::move(error));
  };
  // Of two processes that have claimed one id, one must end: no two may train as one peer.
  if (state_.setup.listening)
    discovery.on_prior_rival = [this](const std::string& rival) {
      shutdown_.end_run(
          {ErrorKind::rejected,
           fmt::format("the process at {} has claimed peer {} too: start this one again", rival,
                       state_.setup.hosted.front())});
    };
  discovery_ = std::make_unique<Discovery>(state_.scheduler, *book_, std::move(discovery));
  book_->merge(listening_->book, state_.scheduler.now());
  discovery_->start();
}

void ConnectionManager::tick(gossip::Time now) {
  if (discovery_ && state_.run.joined) discovery_->slow_down();
  if (!rendezvous_ || (state_.run.joined && now - rendezvous_checked_ < kRendezvousCheck)) return;
  rendezvous_->restore(join_.running());
  rendezvous_checked_ = now;
}

Result<Address> ConnectionManager::find_address(int peer) const {
  const std::string configured = state_.configured_address(peer);
  if (rendezvous_ || discovery_) {
    Result<Address> found = rendezvous_ ? rendezvous_->find(peer) : discovery_->find(peer);
    if (!found.ok() && rendezvous_ && discovery_) found = discovery_->find(peer);
    if (found.ok()) GOSSAMER_TRY_STATUS(check_reach(state_.setup.options, *found, "its address"));
    if (found.ok() || configured.empty()) return found;
  }
  return parse_address(configured);
}

void ConnectionManager::set_members(MemberList members) {
  Authenticator& authenticator = *state_.authenticator;
  authenticator.set_members(std::move(members));
  if (book_) book_->drop_invalid();
  const std::string objection = authenticator.describe_objection(state_.setup.hosted);
  if (!objection.empty()) state_.setup.message("warning: " + objection);
  for (auto& [pair, edge] : state_.edges)
    if (edge.connected() && edge.key && !authenticator.members().has(edge.remote, *edge.key))
      edge.session->on_protocol_violation(fmt::format(
          "{} was cut off: its key {} {}", edge.session->options().name, to_string(*edge.key),
          authenticator.members().objection(*edge.key, "is no longer that of a member")));
}

// Outgoing connections.

ConnectorOptions ConnectionManager::connector_options(const Edge& edge, gossip::Time pause) const {
  ConnectorOptions options;
  options.hello = {HandshakeResult::accepted, edge.local, edge.remote,
                   milliseconds(state_.failure_timeout), state_.setup.identity};
  options.name = state_.setup.words.name_of(edge.remote);
  options.authenticator = state_.authenticator.get();
  options.running = [this] { return join_.running(); };
  options.deadline = exchange_deadline(state_.setup.options);
  options.pause = pause;
  options.find = [this, peer = edge.remote] { return find_address(peer); };
  options.address_may_be_stale = rendezvous_ || discovery_;
  return options;
}

DetourHooks ConnectionManager::detour_hooks() {
  DetourHooks hooks;
  hooks.find = [this](int peer) { return find_address(peer); };
  hooks.may_run = [this](int peer) {
    if (book_ && book_->find(peer) != nullptr) return book_->find(peer)->standing != Standing::lost;
    return find_address(peer).ok();
  };
  hooks.reconnect = [this](Edge& edge) { reconnect(edge, 0ns); };
  hooks.accept = [this](Connection connection) { acceptor_->take(std::move(connection)); };
  return hooks;
}

void ConnectionManager::connect_again(Edge& edge, gossip::Time pause) {
  edge.detour.reset();
  if (state_.run.ending()) return;
  if (edge.connects()) connect(edge, pause);
  detours_.begin(edge, pause + (edge.route.is_direct() ? state_.setup.detour_patience : 0ns));
}

/// For a new session. The local peer of the edge is the one to connect.
void ConnectionManager::connect(Edge& edge, gossip::Time pause) {
  ConnectorOptions options = connector_options(edge, pause);
  options.hello.session = edge.requested_session = random_number();
  options.on_connected = [this, &edge](Connection connection, const Hello& answer) {
    edge.connector.reset();
    Hello hello = answer;
    hello.session = edge.requested_session;
    begin_session(edge, std::move(connection), hello);
  };
  options.on_rejected = [this, &edge](Error error) {
    // What answers at an address need not be a peer of this run. It ends this process only where
    // no other peer has ever accepted it: a process with a wrong configuration is accepted by none.
    const auto accepted = [](const auto& entry) { return entry.second.sessions > 0; };
    if (edge.lost || std::ranges::any_of(state_.edges, accepted)) {
      if (error.message != std::exchange(edge.last_rejection, error.message))
        state_.setup.message(error.message);
      return true;
    }
    edge.connector.reset();
    shutdown_.end_run(std::move(error));
    return false;
  };
  edge.connector = std::make_unique<Connector>(state_.scheduler, std::move(options));
}

void ConnectionManager::reconnect(Edge& edge, gossip::Time pause) {
  if (edge.connector || state_.run.error) return;
  ConnectorOptions options = connector_options(edge, pause);
  options.hello.session = edge.session->options().id;
  options.hello.resumes = true;
  options.on_connected = [this, &edge](Connection connection, const Hello&) {
    attach(edge, std::move(connection), true);
  };
  const auto give_up = [this, &edge] {
    const auto connector = std::move(edge.connector);  // alive until this returns
    edge.detour.reset();
    edge.session->give_up();
    // The other end had said goodbye, so the supervisor is not notified.
    if (edge.parted && !edge.connected() && !edge.connector) connect_again(edge, BackOff::kLongest);
  };
  const gossip::Time own_attempt = std::min(kOwnAttempt, state_.failure_timeout / 4);
  // Of an address that this process has not reached before, a refusal may mean that the other one
  // cannot be called: if that is alive, it makes a connection itself.
  if (const bool known = edge.called(); known || edge.route.is_direct())
    options.on_unreachable = [=, this, &edge,
                              until = state_.scheduler.now() + pause + own_attempt] {
      const AddressRecord* record = book_ ? book_->find(edge.remote) : nullptr;
      const bool hidden = record != nullptr && record->address.is_none();
      const bool gone = known || (!hidden && state_.scheduler.now() >= until);
      if (gone) give_up();
      return !gone;
    };
  options.on_rejected = [give_up](const Error&) {
    give_up();
    return false;
  };
  edge.connector = std::make_unique<Connector>(state_.scheduler, std::move(options));
  const gossip::Time patience = std::min(state_.setup.detour_patience, state_.failure_timeout / 4);
  detours_.begin(edge, edge.route.is_direct() ? pause + patience : pause);
}

// Incoming connections.

AcceptorOptions ConnectionManager::acceptor_options() {
  AcceptorOptions options;
  options.identity = state_.setup.identity;
  options.authenticator = state_.authenticator.get();
  options.pairs = state_.setup.pairs.size();
  options.deadline = exchange_deadline(state_.setup.options);
  options.failure_timeout = milliseconds(state_.failure_timeout);
  options.running = [this] { return join_.running(); };
  options.admit = [this](const Hello& hello) { return admit(hello); };
  options.on_admitted = [this](Connection connection, const Hello& hello, HandshakeResult result) {
    on_admitted(std::move(connection), hello, result);
  };
  options.on_rejected = [this](const Hello& hello, HandshakeResult result,
                               const std::string& clause) { on_rejected(hello, result, clause); };
  options.message = state_.setup.message;
  options.admit_relay = [this](const RelayRequest& request) { return detours_.admit(request); };
  options.on_relay = [this](Connection connection, const RelayRequest& request) {
    detours_.on_request(std::move(connection), request);
  };
  if (!discovery_) return options;
  options.exchange_books = [this](const auto& records, const std::string& local_host) {
    return discovery_->answer(records, local_host);
  };
  options.book_network = book_->options().network;
  return options;
}

HandshakeResult ConnectionManager::admit(const Hello& hello) const {
  const auto& hosted = state_.setup.hosted;
  if (hello.from < 0 || hello.from >= state_.setup.identity.peers)
    return HandshakeResult::unknown_id;
  if (std::ranges::find(hosted, hello.to) == hosted.end()) return HandshakeResult::not_hosted;
  if (std::ranges::find(hosted, hello.from) != hosted.end()) return HandshakeResult::duplicate_id;
  const Edge* edge = state_.edges.find(hello.to, hello.from);
  if (edge == nullptr) return HandshakeResult::not_a_partner;
  const bool known = edge->has_session(hello.session) && !state_.run.error;
  if (edge->connects()) {
    if (!hello.resumes) return HandshakeResult::not_a_partner;
    const bool requested = edge->connector && edge->requested_session == hello.session;
    return known || requested ? HandshakeResult::callee_dials_back
                              : HandshakeResult::unknown_session;
  }
  if (known) return HandshakeResult::resumed;
  if (hello.resumes) return HandshakeResult::unknown_session;
  // Before the network runs, no process that begins it is connected to one that joins it later.
  const bool early = state_.setup.later.here ? edge->awaited && !hello.running : !edge->awaited;
  return early && !join_.running() ? HandshakeResult::retry_later : admit_new_session(*edge);
}

HandshakeResult ConnectionManager::admit_new_session(const Edge& edge) const {
  if (edge.attached())
    return join_.running() ? HandshakeResult::still_connected : HandshakeResult::duplicate_id;
  if (edge.connected() || state_.run.ending() || edge.admission.is_barred(state_.scheduler.now()))
    return HandshakeResult::retry_later;
  // After its goodbye a peer has nothing more to send.
  const bool has_left =
      edge.session != nullptr && edge.session->remote().said_goodbye && !edge.parted;
  return has_left ? HandshakeResult::retry_later : HandshakeResult::accepted;
}

void ConnectionManager::on_admitted(Connection connection, const Hello& hello,
                                    HandshakeResult result) {
  Edge& edge = state_.edges.at(hello.to, hello.from);
  if (result == HandshakeResult::resumed) return attach(edge, std::move(connection), true);
  begin_session(edge, std::move(connection), hello);
}

void ConnectionManager::on_rejected(const Hello& hello, HandshakeResult result,
                                    const std::string& clause) {
  Edge* edge = state_.edges.find(hello.to, hello.from);
  if (edge == nullptr) return;
  if (result == HandshakeResult::callee_dials_back) return reconnect(*edge, 0ns);
  if (edge->connects() || result == HandshakeResult::unknown_session) return;
  edge->remote_attempt = "it connected and was rejected, " + clause;
  if (!edge->connected()) return;
  // A process that had the session would resume it: this is another process, or one that has given
  // the session up.
  if (!edge->attached()) return edge->session->give_up();
  if (join_.running()) report_duplicate(*edge);
}

/// Another process claims the id of a connected peer.
void ConnectionManager::report_duplicate(Edge& edge) {
  if (!edge.admission.on_duplicate(state_.scheduler.now(), state_.failure_timeout)) return;
  state_.setup.message(
      fmt::format("another process connects as {}, although the connected one is alive, and "
                  "must wait; was it started twice?",
                  state_.setup.words.name_of(edge.remote)));
}

// Sessions.

/// The first connection of a session. If the answer to an earlier attempt was lost on the way, the
/// other end may know the session already.
void ConnectionManager::begin_session(Edge& edge, Connection connection, const Hello& hello) {
  if (state_.run.ending()) return;
  GOSSAMER_CHECK(!edge.connected(), "a second connection of a pair");
  if (hello.running) join_.on_running();
  if (state_.run.joined) edge.started_channels.emplace();
  edge.admission.on_session();
  edge.last_rejection.clear();
  // A session that was there before is closed and handles no frame: the scheduler's loop makes
  // those calls, and this one.
  ++edge.sessions;
  edge.parted = false;
  SessionOptions options = session_options(edge, hello);
  options.name = name_of(edge, connection);
  // What a distant process says of memory is none of this machine's business.
  options.lending = std::make_shared<Lending>(
      state_.scheduler, connection.socket->is_local() && connection.route.way != Route::Way::relayed
                            ? state_.setup.memory.rows
                            : nullptr);
  edge.figures_sent = 0;
  edge.session = std::make_unique<Session>(state_.scheduler, std::move(options),
                                           state_.traffic[edge.local], owner_);
  const bool running = join_.running();  // before this connection completes the network
  attach(edge, std::move(connection), hello.result == HandshakeResult::resumed);
  if (running)
    edge.session->send(RunningFrame{});  // the first frame, for which the other end may wait
  if (const auto offer = edge.session->options().lending->offer()) edge.session->send(*offer);
}

/// For messages. The address of a connection through a relay is that of the relay.
std::string ConnectionManager::name_of(const Edge& edge, const Connection& connection) const {
  std::string address = state_.configured_address(edge.remote);
  if (address.empty() && (edge.connects() || !connection.route.is_direct())) {
    if (const auto found = find_address(edge.remote); found.ok()) address = to_string(*found);
  } else if (address.empty()) {
    address = connection.socket->remote();
  }
  const std::string name = state_.setup.words.name_of(edge.remote);
  return address.empty() ? name : fmt::format("{} ({})", name, address);
}

SessionOptions ConnectionManager::session_options(Edge& edge, const Hello& hello) {
  SessionOptions options;
  options.incoming = {short_run(state_.setup.identity.run_id), edge.remote, edge.local};
  options.id = hello.session;
  options.window = state_.setup.options.window;
  options.failure_timeout = state_.failure_timeout;
  const gossip::Time theirs = std::max<gossip::Time>(hello.failure_timeout, kShortestTimeout);
  options.heartbeat = std::min(state_.failure_timeout, theirs) / kHeartbeatsPerTimeout;
  options.hold_data = !join_.chunks_released();
  options.counts_rounds = state_.setup.words.counts_rounds;
  options.hashes = &state_.hashes;
  options.chunk_memory = state_.setup.memory.chunks;
  options.reconnect = [this, &edge](gossip::Time pause) { reconnect(edge, pause); };
  options.message = state_.setup.message;
  return options;
}

/// Gives the session of an edge a connection.
void ConnectionManager::attach(Edge& edge, Connection connection, bool resumes) {
  edge.connector.reset();
  edge.detour.reset();
  if (!edge.connected()) return;  // it ended meanwhile
  if (std::exchange(edge.route, connection.route) != connection.route) detours_.report_route(edge);
  SocketTraffic& traffic = state_.traffic[edge.local];
  traffic.bytes_sent += kHelloBytes;
  traffic.bytes_received += kHelloBytes;
  // The partner has the same settings, or it would not be connected.
  const std::size_t settings = state_.setup.identity.settings.size();
  if (!resumes && settings <= kMaxSettingsBytes)
    (edge.local < edge.remote ? traffic.bytes_sent : traffic.bytes_received) += settings;
  edge.key = connection.key;
  edge.session->attach(std::move(connection.socket), resumes);
  join_.check();
}

}  // namespace gossamer::net
