#include "net/startup/acceptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "net/tls/error.hpp"

namespace gossamer::net {

namespace {

/// Settings explain a rejection, and nothing else.
Hello answer_to(const Hello& hello, HandshakeResult result, const AcceptorOptions& options) {
  Hello answer{result,           hello.to,          hello.from,   options.failure_timeout,
               options.identity, options.running(), hello.session};
  if (is_accepted(result) || is_retried(result)) answer.identity.settings.clear();
  return answer;
}

// Until connections that wait for their turn are looked at again.
constexpr gossip::Time kTurn = std::chrono::milliseconds(10);
// After each connection that was closed because too many wait. To accept one and to close it takes
// up to 50 microseconds, and as many as the system has would come.
constexpr gossip::Time kPauseInCrowd = std::chrono::milliseconds(1);

/// The address of the other end without its port.
std::string host_of(const std::string& remote) { return remote.substr(0, remote.rfind(':')); }

}  // namespace

Acceptor::~Acceptor() {
  listener_.reset();
  for (auto& waiting : waiting_) waiting.socket->close();
  for (auto& pending : pending_) pending.stream->close();
}

Status Acceptor::open(const OpenPort& port) {
  auto listener = listen(scheduler_, port, [this](std::unique_ptr<Socket> socket) {
    on_connection(std::move(socket));
  });
  if (!listener.ok()) return listener.error();
  listener_ = std::move(listener).value();
  return {};
}

/// Takes those whose turn it is, of each address in the order in which they came.
void Acceptor::take_waiting() {
  std::list<Waiting> admitted;
  std::set<std::string> full;
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const auto next = std::next(each);
    if (!full.contains(each->host)) {
      if (pace_.admit(each->host, scheduler_.now()))
        admitted.splice(admitted.end(), waiting_, each);
      else full.insert(each->host);
    }
    each = next;
  }
  if (!waiting_.empty()) take_later_.call_after(kTurn);
  for (Waiting& each : admitted) take({std::move(each.socket)});
}

/// The one of `connections` to close before another one of `host` joins them; the end if none is:
/// the oldest one of this address if the address has too many, else the oldest one of the address
/// that has most.
template <class Connections>
typename Connections::iterator Acceptor::superfluous(Connections& connections,
                                                     const std::string& host) const {
  std::map<std::string, std::size_t> counts;
  for (const auto& each : connections) ++counts[each.host];
  std::string crowded;
  if (counts[host] >= max_pending_of_host()) {
    crowded = host;
  } else if (connections.size() >= max_pending()) {
    crowded =
        std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  } else {
    return connections.end();
  }
  return std::ranges::find(connections, crowded,
                           [](const auto& each) -> const std::string& { return each.host; });
}

void Acceptor::on_connection(std::unique_ptr<Socket> socket) {
  const std::string host = host_of(socket->remote());
  const bool is_behind_others = std::ranges::find(waiting_, host, &Waiting::host) != waiting_.end();
  if (!is_behind_others && pace_.admit(host, scheduler_.now())) return take({std::move(socket)});
  if (const auto oldest = superfluous(waiting_, host); oldest != waiting_.end()) {
    ++refused_.handshakes;
    report(fmt::format("closed a connection from {}: too many come from this address",
                       oldest->socket->remote()));
    oldest->socket->close();
    waiting_.erase(oldest);
    listener_->pause(kPauseInCrowd);
  }
  waiting_.push_back({host, std::move(socket)});
  take_later_.call_after(kTurn);
}

void Acceptor::make_room(const std::string& host) {
  const auto oldest = superfluous(pending_, host);
  if (oldest == pending_.end()) return;
  reject(oldest,
         fmt::format("{} connections from this address have not finished their handshake, of {}",
                     std::ranges::count(pending_, oldest->host, &PendingConnection::host),
                     pending_.size()));
}

void Acceptor::take(Connection connection) {
  std::unique_ptr<Socket> socket = std::move(connection.socket);
  const std::string host = host_of(socket->remote());
  make_room(host);
  const auto pending = pending_.emplace(pending_.end());
  pending->host = host;
  pending->shown = std::make_shared<ShownKey>(ShownKey{connection.key});
  pending->route = connection.route;
  if (options_.authenticator != nullptr && !connection.key)
    socket = options_.authenticator->accept(std::move(socket), pending->shown);
  pending->stream = std::make_shared<HandshakeStream>(
      scheduler_, std::move(socket), options_.deadline,
      [this, pending](const std::string& why) { on_end(pending, why); });
  pending->stream->read_hello(
      [this, pending](const HelloPrefix& prefix) {
        if (prefix.version == kProtocolVersion && prefix.opening == Opening::book) {
          read_book(pending);
          return false;
        }
        if (prefix.version == kProtocolVersion && prefix.opening == Opening::relay) {
          read_relay_request(pending);
          return false;
        }
        if (prefix.version == kProtocolVersion) return true;
        Hello other;
        other.from = other.to = -1;
        other.identity.protocol = prefix.version;
        answer(pending, other, HandshakeResult::wrong_version);
        return false;
      },
      [this, pending](const std::optional<Hello>& hello) {
        if (!hello) return reject(pending, "it does not speak this protocol");
        answer(pending, *hello, decide(*pending, *hello));
      });
}

void Acceptor::read_book(PendingConnections::iterator pending) {
  if (!options_.exchange_books)
    return reject(pending, "it sent an address book, without net.seeds");
  pending->stream->read_book(
      options_.identity.peers, options_.book_network,
      [this, pending](const std::optional<ReceivedBook>& book) {
        if (!book) return reject(pending, "its address book is none");
        if (options_.authenticator != nullptr &&  // it may have been revoked since
            !options_.authenticator->members().has(pending->shown->key.value()))
          return reject(pending, "its key is no longer that of a member",
                        &RefusedConnections::keys);
        HandshakeStream& stream = *pending->stream;
        if (!book->same_network) {
          report(
              fmt::format("rejected a process at {}: its run, or its number of peers, is not ours",
                          stream.remote()));
          ++refused_.hellos;
          pending->answered = true;
          Hello caller;
          caller.from = caller.to = -1;
          return write_rejection(*pending, caller, HandshakeResult::wrong_run);
        }
        pace_.on_member(pending->host);
        const auto answer = options_.exchange_books(book->records, stream.local_host());
        pending->answered = true;
        stream.write(encode_book(options_.book_network, answer),
                     [&stream] { stream.close_gracefully(); });
      });
}

void Acceptor::read_relay_request(PendingConnections::iterator pending) {
  pending->stream->read_relay_request([this, pending](const std::optional<RelayRequest>& request) {
    if (!request) return reject(pending, "its request to a relay is none");
    // A connection that has come through a relay, or that this process has made, leads no further.
    if (!pending->route.is_direct())
      return reject(pending, "it asked for a relay, and is relayed itself");
    admit_relay(pending, *request);
  });
}

/// With keys, a peer waits and calls in its own name alone.
void Acceptor::admit_relay(PendingConnections::iterator pending, const RelayRequest& request) {
  HandshakeStream& stream = *pending->stream;
  RelayAdmission admission;
  if (options_.authenticator != nullptr &&
      !options_.authenticator->members().has(request.from, pending->shown->key.value()))
    admission.result = HandshakeResult::wrong_key;
  else if (options_.admit_relay) admission = options_.admit_relay(request);
  const bool accepted = admission.result == HandshakeResult::accepted;
  if (accepted) pace_.on_member(pending->host);
  const auto hand_over = [this, pending, request] {
    Connection connection{pending->stream->release(), pending->shown->key};
    pending_.erase(pending);
    options_.on_relay(std::move(connection), request);
  };
  if (accepted && admission.waits) return hand_over();
  if (accepted) return stream.write(encode_rejection(admission.result), hand_over);
  if (admission.result == HandshakeResult::wrong_key) {
    ++refused_.keys;
    report(fmt::format("rejected a request to a relay from {}: its key {} is not that of peer {}",
                       stream.remote(), pending->shown->text(), request.from));
  }
  pending->answered = true;
  stream.write(encode_rejection(admission.result), [&stream] { stream.close_gracefully(); });
}

/// The connection ended, or its deadline passed.
void Acceptor::on_end(PendingConnections::iterator pending, const std::string& why) {
  const std::error_code& error = pending->stream->error();
  if (error == TlsError::refused_key) {
    const PublicKey key = pending->shown->key.value_or(PublicKey());
    return reject(
        pending,
        fmt::format("its key {} {}", pending->shown->text(),
                    options_.authenticator->members().objection(key, "is that of no member")),
        &RefusedConnections::keys);
  }
  if (error.category() == tls_category()) return reject(pending, why);
  if (why == "no answer") return reject(pending, "it sent no hello");
  // A check whether the port is open, or a peer that this process connected to meanwhile.
  if (pending->stream->silent()) return close(pending);
  reject(pending, why + " before its hello");
}

/// The peer that a hello names must be one of those of the key.
HandshakeResult Acceptor::decide(const PendingConnection& pending, const Hello& hello) const {
  if (options_.authenticator != nullptr &&
      !options_.authenticator->members().has(hello.from, pending.shown->key.value()))
    return HandshakeResult::wrong_key;
  const HandshakeResult difference = compare(options_.identity, hello.identity);
  // It shows its settings, after its address book was refused (BookExchange).
  if (hello.from < 0 && difference != HandshakeResult::accepted) return difference;
  if (!options_.admit) return HandshakeResult::retry_later;
  return difference == HandshakeResult::accepted ? options_.admit(hello) : difference;
}

void Acceptor::answer(PendingConnections::iterator pending, const Hello& hello,
                      HandshakeResult result) {
  if (pending->shown->key || is_accepted(result) || is_retried(result) ||
      result == HandshakeResult::unknown_session)
    pace_.on_member(pending->host);
  if (is_accepted(result)) return accept(pending, hello, result);
  HandshakeStream& stream = *pending->stream;
  const bool wrong_key = result == HandshakeResult::wrong_key;
  const std::string clause =
      wrong_key ? fmt::format("its key {} is not that of the peer", pending->shown->text())
                : describe(result, hello.identity, options_.identity, hello.from);
  // A peer that retries may do so often, and a peer that resumes is known.
  if (!is_retried(result) && result != HandshakeResult::unknown_session) {
    const std::string name = hello.from >= 0
                                 ? fmt::format("peer {} ({})", hello.from, stream.remote())
                                 : "a peer at " + stream.remote();
    report(fmt::format("rejected {}: {}", name, clause));
  }
  pending->answered = true;
  write_rejection(*pending, hello, result);
  if (wrong_key) ++refused_.keys;
  else if (!is_retried(result)) ++refused_.hellos;
  if (!wrong_key) options_.on_rejected(hello, result, clause);
}

/// Only a process that has proved a key learns more than the reason.
void Acceptor::write_rejection(const PendingConnection& pending, const Hello& hello,
                               HandshakeResult result) {
  HandshakeStream& stream = *pending.stream;
  const auto close = [&stream] { stream.close_gracefully(); };
  if (pending.shown->key && result != HandshakeResult::wrong_version)
    stream.write(encode_hello(answer_to(hello, result, options_)), close);
  else stream.write(encode_rejection(result), close);
}

void Acceptor::accept(PendingConnections::iterator pending, const Hello& hello,
                      HandshakeResult result) {
  pending->stream->write(
      encode_hello(answer_to(hello, result, options_)), [this, pending, hello, result] {
        // Two connections of one peer may have been admitted before either was
        // answered.
        if (decide(*pending, hello) != result)
          return reject(pending, "it connected twice, or too late", &RefusedConnections::hellos);
        Connection connection{pending->stream->release(), pending->shown->key, pending->route};
        pending_.erase(pending);
        options_.on_admitted(std::move(connection), hello, result);
      });
}

void Acceptor::reject(PendingConnections::iterator pending, const std::string& why,
                      Counter counter) {
  if (!pending->answered)
    report(fmt::format("closed a connection from {}: {}", pending->stream->remote(), why));
  close(pending, counter);
}

void Acceptor::close(PendingConnections::iterator pending, Counter counter) {
  if (!pending->answered) ++(refused_.*counter);
  const auto stream = pending->stream;  // alive until this returns
  pending_.erase(pending);
  stream->close();
}

void Acceptor::report(const std::string& line) {
  const gossip::Time now = scheduler_.now();
  if (now - interval_began_ >= kReportInterval) {
    if (unreported_ > 0)
      options_.message(fmt::format("{} rejected connections were not reported", unreported_));
    interval_began_ = now;
    reports_ = unreported_ = 0;
  }
  if (reports_ < kMaxReports) {
    ++reports_;
    return options_.message(line);
  }
  if (unreported_++ == 0)
    options_.message("further rejected connections are not reported for a minute");
}

}  // namespace gossamer::net
