// How the edges of a network come to be connected, the words about those that are not, and what is
// told before the first round.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/check.hpp"
#include "net/tcp_network.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kReportEvery = 5s;
constexpr gossip::Time kLongestTry = 5s;  // a machine that is not there answers nothing at all
// What a latecomer gives its other partners: those that run and know that it was lost call at least
// so often.
constexpr gossip::Time kGrace = Connector::kLongestPause + 200ms;

}  // namespace

Status TcpNetwork::start() {
  started_ = true;
  const NetOptions& options = setup_.options;
  GOSSAMER_TRY(const Address listen, listen_address(options, setup_.hosted));
  if (!is_loopback(listen))
    setup_.message(
        fmt::format("warning: links are not encrypted, and {} can be reached from other machines",
                    to_string(listen)));
  Acceptor::Plan plan;
  plan.identity = setup_.identity;
  plan.deadline = std::min(failure_timeout_, kLongestTry);
  plan.failure_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(failure_timeout_);
  plan.running = [this] { return running(); };
  plan.admit = [this](const Hello& hello) { return admit(hello); };
  plan.admitted = [this](std::unique_ptr<Socket> socket, const Hello& hello,
                         HandshakeResult verdict) { admitted(std::move(socket), hello, verdict); };
  plan.refused = [this](const Hello& hello, HandshakeResult verdict, const std::string& clause) {
    refused(hello, verdict, clause);
  };
  plan.message = setup_.message;
  acceptor_ = std::make_unique<Acceptor>(scheduler_, std::move(plan));
  GOSSAMER_TRY_STATUS(acceptor_->open(listen));

  if (!options.rendezvous.empty()) {
    rendezvous_.emplace(options.rendezvous, setup_.identity.run_id);
    Address own = acceptor_->address();
    if (own.host == "0.0.0.0" || own.host == "::") own.host = host_name();
    GOSSAMER_TRY_STATUS(rendezvous_->announce(setup_.hosted, own));
  }
  for (auto& [pair, edge] : edges_)
    if (edge.calls()) call(edge);
  tick();
  check_joined();
  return {};
}

Status TcpNetwork::join() {
  if (!started_) GOSSAMER_TRY_STATUS(start());
  joining_ = true;
  bool timed_out = false;
  const auto deadline =
      scheduler_.after(seconds(setup_.options.join_timeout), [&timed_out] { timed_out = true; });
  report_timer_ = scheduler_.after(kReportEvery, [this] { report_missing(); });
  scheduler_.run_until([&] { return joined_ || error_ || timed_out; });
  scheduler_.cancel(deadline);
  scheduler_.cancel(report_timer_);
  const Status status = outcome(timed_out);
  joining_ = false;
  if (joined_) release_data();
  return status;
}

Status TcpNetwork::outcome(bool timed_out) {
  if (error_) return *error_;
  if (joined_) return {};
  if (!timed_out) return Error{ErrorKind::interrupted, "interrupted while waiting for other peers"};
  // The others that wait for the same peers need not wait longer: they stop with this sentence too.
  end_run(
      {ErrorKind::join_timeout,
       fmt::format("after {:.3g} s (net.join_timeout) peer {} misses {}",
                   setup_.options.join_timeout, setup_.hosted.front(), fmt::join(missing(), "; "))},
      nullptr);
  return *error_;
}

Connector::Plan TcpNetwork::plan_call(const Edge& edge, gossip::Time pause) {
  Connector::Plan plan;
  plan.hello = {HandshakeResult::accepted, edge.local, edge.remote,
                std::chrono::duration_cast<std::chrono::milliseconds>(failure_timeout_),
                setup_.identity};
  plan.running = [this] { return running(); };
  plan.deadline = std::min(failure_timeout_, kLongestTry);
  plan.pause = pause;
  plan.find = [this, peer = edge.remote] { return find(peer); };
  plan.moving = rendezvous_.has_value();
  return plan;
}

/// For a session that is to begin.
void TcpNetwork::call(Edge& edge, gossip::Time pause) {
  Connector::Plan plan = plan_call(edge, pause);
  std::random_device dice;
  plan.hello.session = edge.called = std::uint64_t{dice()} << 32 | dice();
  plan.connected = [this, &edge](std::unique_ptr<Socket> socket, const Hello& answer) {
    const std::string address = edge.caller->address();
    edge.caller.reset();
    Hello theirs = answer;
    theirs.session = edge.called;
    connect(edge, std::move(socket), theirs, address);
  };
  plan.refused = [this, &edge](Error error) {
    if (edge.lost) {  // a partner that was started again, wrongly, is no reason for a network that
                      // runs to end
      if (error.message != std::exchange(edge.refusal, error.message))
        setup_.message(error.message);
      return true;
    }
    edge.caller.reset();
    end_run(std::move(error), nullptr);
    return false;
  };
  edge.caller = std::make_unique<Connector>(scheduler_, std::move(plan));
}

/// For a session whose connection broke, or brings nothing. Where the other end is the one to call,
/// this asks it to, and finds out whether there still is one.
void TcpNetwork::call_again(Edge& edge, gossip::Time pause) {
  if (edge.caller || error_) return;
  Connector::Plan plan = plan_call(edge, pause);
  plan.hello.session = edge.session->id();
  plan.hello.resumes = true;
  plan.connected = [this, &edge](std::unique_ptr<Socket> socket, const Hello&) {
    attach(edge, std::move(socket), true);
  };
  plan.absent = [&edge] {
    const auto over = std::move(edge.caller);  // alive until we return
    edge.session->give_up();
  };
  plan.refused = [absent = plan.absent](const Error&) {
    absent();
    return false;
  };
  edge.caller = std::make_unique<Connector>(scheduler_, std::move(plan));
}

Result<Address> TcpNetwork::find(int peer) const {
  if (rendezvous_) {
    auto found = rendezvous_->find(peer);
    if (found.ok() || setup_.options.peers.empty()) return found;
  }
  return parse_address(setup_.options.peers[static_cast<std::size_t>(peer)]);
}

HandshakeResult TcpNetwork::admit(const Hello& hello) const {
  if (hello.from < 0 || hello.from >= setup_.identity.peers) return HandshakeResult::unknown_id;
  if (std::ranges::find(setup_.hosted, hello.to) == setup_.hosted.end())
    return HandshakeResult::not_hosted;
  if (std::ranges::find(setup_.hosted, hello.from) != setup_.hosted.end())
    return HandshakeResult::duplicate_id;
  const Edge* edge = find_edge(hello.to, hello.from);
  if (edge == nullptr) return HandshakeResult::not_a_partner;
  const bool known = edge->knows(hello.session) && !error_;
  if (edge->calls()) {
    if (!hello.resumes) return HandshakeResult::not_a_partner;
    return known || (edge->caller && edge->called == hello.session) ? HandshakeResult::calls
                                                                    : HandshakeResult::gone;
  }
  if (known) return HandshakeResult::resumed;
  if (hello.resumes) return HandshakeResult::gone;
  if (edge->attached()) return running() ? HandshakeResult::present : HandshakeResult::duplicate_id;
  if (edge->connected() || leaving_ || error_ || scheduler_.now() < edge->barred_until)
    return HandshakeResult::later;
  // After a goodbye nothing is missing that its sender had to give.
  return edge->session && edge->session->heard_goodbye() ? HandshakeResult::later
                                                         : HandshakeResult::accepted;
}

void TcpNetwork::admitted(std::unique_ptr<Socket> socket, const Hello& hello,
                          HandshakeResult verdict) {
  Edge& edge = *find_edge(hello.to, hello.from);
  if (verdict == HandshakeResult::resumed) return attach(edge, std::move(socket), true);
  const auto known = setup_.options.peers.empty() ? socket->remote() : known_address(hello.from);
  connect(edge, std::move(socket), hello, known);
}

void TcpNetwork::refused(const Hello& hello, HandshakeResult verdict, const std::string& clause) {
  Edge* edge = find_edge(hello.to, hello.from);
  if (edge == nullptr) return;
  if (verdict == HandshakeResult::calls) return call_again(*edge, 0ns);
  if (edge->calls() || verdict == HandshakeResult::gone) return;
  if (hello.running && !joined_ && verdict >= HandshakeResult::wrong_peers &&
      verdict <= HandshakeResult::wrong_configuration)
    return end_run(
        {ErrorKind::rejected,
         fmt::format("peer {} of a network that runs already calls: {}", hello.from, clause)},
        nullptr);
  edge->called_back = "it called and was refused, " + clause;
  if (!edge->connected()) return;
  // Whoever had the session that broke would go on with it: this is another process, or one that
  // has given it up.
  if (!edge->attached()) return edge->session->give_up();
  if (!running()) return;
  if (!edge->called_again) edge->called_again = scheduler_.now();
  // The one before may have died, and not be missed yet.
  if (edge->said_twice || scheduler_.now() - *edge->called_again < failure_timeout_) return;
  edge->said_twice = true;
  setup_.message(
      fmt::format("a peer {} calls, although the one that is connected lives: it must wait; was it "
                  "started twice?",
                  hello.from));
}

/// Another connection of the edge's session.
void TcpNetwork::attach(Edge& edge, std::unique_ptr<Socket> socket, bool resumes) {
  edge.caller.reset();
  if (!edge.connected()) return;  // it ended meanwhile
  Traffic& traffic = traffic_[edge.local];
  traffic.bytes_sent += kHelloBytes;
  traffic.bytes_received += kHelloBytes;
  edge.session->attach(std::move(socket), resumes);
  check_joined();
}

/// The first connection of a session. Of a call whose answer was lost on the way, the other end may
/// know the session already.
void TcpNetwork::connect(Edge& edge, std::unique_ptr<Socket> socket, const Hello& theirs,
                         const std::string& address) {
  if (error_ || leaving_) return;
  GOSSAMER_CHECK(!edge.connected(), "a second connection of a pair");
  SessionOptions options;
  options.incoming = {short_run(setup_.identity.run_id), edge.remote, edge.local};
  options.name = fmt::format("peer {} ({})", edge.remote, address);
  options.id = theirs.session;
  options.window = setup_.options.window;
  options.failure_timeout = failure_timeout_;
  // Four beats fit into the shorter of the two silences.
  const gossip::Time shorter = std::min<gossip::Time>(
      failure_timeout_, std::max<gossip::Time>(theirs.failure_timeout, 50ms));
  options.heartbeat = shorter / 4;
  options.hold_data = !released_;
  options.hashes = &hashes_;
  options.chunk_memory = setup_.chunk_memory;
  options.call_again = [this, &edge](gossip::Time pause) { call_again(edge, pause); };
  options.message = setup_.message;
  if (theirs.running) network_runs();
  if (joined_) edge.begun.emplace();
  edge.called_again.reset();
  edge.said_twice = false;
  edge.refusal.clear();
  edge.statements.clear();  // of a process that is no more
  // One that was there before is closed, and in no call: calls are what the scheduler's loop makes,
  // and so is this one.
  edge.session =
      std::make_unique<Session>(scheduler_, std::move(options), traffic_[edge.local], *this);
  const bool runs = running();  // before this connection completes the network
  attach(edge, std::move(socket), theirs.verdict == HandshakeResult::resumed);
  if (runs) edge.session->tell_running();  // the first word, for which the other end may wait
}

void TcpNetwork::check_joined() {
  if (joined_ || error_ || leaving_) return;
  const auto connected = [](const auto& entry) { return entry.second.attached(); };
  const bool enough = late_ && grace_over_ && std::ranges::any_of(edges_, connected);
  if (!enough && !std::ranges::all_of(edges_, connected)) return;
  for (const std::string& line : missing())
    setup_.message("the network runs already; joined it without " + line);
  joined_ = true;
  for (auto& [pair, edge] : edges_) edge.lost = !edge.connected();
  if (!joining_) release_data();
}

void TcpNetwork::proceed() {
  held_ = false;
  release_data();
}

/// Soon: not from within join().
void TcpNetwork::release_data() {
  scheduler_.cancel(release_timer_);
  if (held_) return;
  release_timer_ = scheduler_.after(0ns, [this] {
    released_ = true;
    for (auto& [pair, edge] : edges_)
      if (edge.session) edge.session->hold_data(false);
  });
}

/// A partner says so. Those that we had told that we do not run must know too: they would wait for
/// all of their partners, and then confer with us.
void TcpNetwork::network_runs() {
  if (running()) return;
  late_ = true;
  for (auto& [pair, edge] : edges_)
    if (edge.session) edge.session->tell_running();
  grace_timer_ = scheduler_.after(kGrace, [this] {
    grace_over_ = true;
    check_joined();
  });
}

std::string TcpNetwork::known_address(int peer) const {
  return setup_.options.peers.empty() ? "" : setup_.options.peers[static_cast<std::size_t>(peer)];
}

std::vector<std::string> TcpNetwork::missing() const {
  std::vector<std::string> lines;
  for (const auto& [pair, edge] : edges_) {
    if (edge.connected()) continue;
    std::string address = edge.caller ? edge.caller->address() : std::string();
    if (address.empty()) address = known_address(edge.remote);
    std::string why = edge.called_back.empty() ? "has not called yet" : edge.called_back;
    if (edge.caller) why = edge.caller->trouble();
    std::string line = address.empty() ? fmt::format("peer {}: {}", edge.remote, why)
                                       : fmt::format("peer {} ({}): {}", edge.remote, address, why);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

void TcpNetwork::report_missing() {
  for (const std::string& line : missing()) setup_.message("waiting for " + line);
  report_timer_ = scheduler_.after(kReportEvery, [this] { report_missing(); });
}

Status TcpNetwork::all_gather(AllGather conference) {
  joining_ = true;
  begin_all_gather(std::move(conference));
  scheduler_.run_until([&] { return all_gathered() || error_; });
  joining_ = false;
  if (error_) return *error_;
  return all_gathered()
             ? Status()
             : Status(Error{ErrorKind::interrupted, "interrupted while waiting for other peers"});
}

void TcpNetwork::begin_all_gather(AllGather conference) {
  held_ = true;
  released_ = false;
  scheduler_.cancel(release_timer_);
  for (auto& [pair, edge] : edges_)
    if (edge.session) edge.session->hold_data(true);
  conference_ = std::move(conference);
  if (!all_gathered()) say();
  hear();
}

void TcpNetwork::say() {
  const std::string statement = conference_->say();
  for (auto& [pair, edge] : edges_)
    if (edge.session) edge.session->tell(statement);
}

/// As long as every partner's next statement is here.
void TcpNetwork::hear() {
  while (!error_ && !all_gathered() && std::ranges::none_of(edges_, [](const auto& entry) {
    return entry.second.statements.empty();
  })) {
    for (auto& [pair, edge] : edges_) {
      const Status heard = conference_->hear(edge.statements.front());
      edge.statements.pop_front();
      if (heard.ok()) continue;
      return end_run(
          {ErrorKind::lost_peer,
           fmt::format("{} broke the protocol: {}", edge.session->name(), heard.error().message)},
          nullptr);
    }
    ++exchanges_done_;
    if (!all_gathered()) say();
  }
  if (error_ || all_gathered()) return;
  for (const auto& [pair, edge] : edges_)
    if (edge.statements.empty() && edge.session && edge.session->heard_goodbye())
      return end_run({ErrorKind::lost_peer,
                      fmt::format("{} took its leave before the run began", edge.session->name())},
                     nullptr);
}

Status TcpNetwork::told(Session& session, std::string statement) {
  if (late_) return {};  // it does not know yet, but will in a moment
  Edge& edge = *find_edge(session.local(), session.remote());
  // A partner waits for our statement before it sends its next, so it is one ahead at most.
  if (all_gathered() || edge.statements.size() == 2)
    return Error{ErrorKind::lost_peer,
                 fmt::format("{} broke the protocol: it sent a statement that nobody waits for",
                             session.name())};
  edge.statements.push_back(std::move(statement));
  if (conference_ && joined_) hear();
  return {};
}

}  // namespace gossamer::net
