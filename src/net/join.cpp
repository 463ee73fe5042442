// How the edges of a network come to be connected, the words about those that are not, and what is told before the first round.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "net/tcp_network.hpp"

namespace gossamer::net {

using namespace std::chrono_literals;

namespace {

constexpr gossip::Time kReportEvery = 5s;
constexpr gossip::Time kLongestTry = 5s;  // a machine that is not there answers nothing at all

}  // namespace

Status TcpNetwork::start() {
  started_ = true;
  const NetOptions& options = setup_.options;
  GOSSAMER_TRY(const Address listen, listen_address(options, setup_.hosted));
  if (!is_loopback(listen))
    setup_.message(fmt::format("warning: links are not encrypted, and {} can be reached from other machines",
                               to_string(listen)));
  Door::Plan plan;
  plan.identity = setup_.identity;
  plan.deadline = std::min(silence_, kLongestTry);
  plan.silence = std::chrono::duration_cast<std::chrono::milliseconds>(silence_);
  plan.admit = [this](int from, int to) { return admit(from, to); };
  plan.admitted = [this](std::unique_ptr<Socket> socket, const Hello& hello) { admitted(std::move(socket), hello); };
  plan.refused = [this](const Hello& hello, const std::string& clause) { refused(hello, clause); };
  plan.message = setup_.message;
  door_ = std::make_unique<Door>(scheduler_, std::move(plan));
  GOSSAMER_TRY_STATUS(door_->open(listen));

  if (!options.rendezvous.empty()) {
    rendezvous_.emplace(options.rendezvous, setup_.identity.run_id);
    Address own = door_->address();
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
  bool late = false;
  const auto deadline = scheduler_.after(seconds(setup_.options.join_timeout), [&late] { late = true; });
  report_timer_ = scheduler_.after(kReportEvery, [this] { report_missing(); });
  scheduler_.run_until([&] { return joined_ || error_ || late; });
  scheduler_.cancel(deadline);
  scheduler_.cancel(report_timer_);
  const Status status = outcome(late);
  joining_ = false;
  return status;
}

Status TcpNetwork::outcome(bool late) {
  if (error_) return *error_;
  if (joined_) return {};
  if (!late) return Error{ErrorKind::interrupted, "interrupted while waiting for other peers"};
  // The others that wait for the same peers need not wait longer: they stop with this sentence too.
  end_run({ErrorKind::join_timeout, fmt::format("after {:.3g} s (net.join_timeout) peer {} misses {}",
                                                setup_.options.join_timeout, setup_.hosted.front(),
                                                fmt::join(missing(), "; "))},
          nullptr);
  return *error_;
}

void TcpNetwork::call(Edge& edge) {
  Caller::Plan plan;
  plan.hello = {Verdict::accepted, edge.local, edge.remote,
                std::chrono::duration_cast<std::chrono::milliseconds>(silence_), setup_.identity};
  plan.deadline = std::min(silence_, kLongestTry);
  plan.find = [this, peer = edge.remote] { return find(peer); };
  plan.connected = [this, &edge](std::unique_ptr<Socket> socket, const Hello& answer) {
    const std::string address = edge.caller->address();
    edge.caller.reset();
    connect(edge, std::move(socket), answer, address);
  };
  plan.refused = [this, &edge](Error error) {
    edge.caller.reset();
    end_run(std::move(error), nullptr);
  };
  edge.caller = std::make_unique<Caller>(scheduler_, std::move(plan));
}

Result<Address> TcpNetwork::find(int peer) const {
  if (rendezvous_) {
    auto found = rendezvous_->find(peer);
    if (found.ok() || setup_.options.peers.empty()) return found;
  }
  return parse_address(setup_.options.peers[static_cast<std::size_t>(peer)]);
}

Verdict TcpNetwork::admit(int from, int to) {
  if (from < 0 || from >= setup_.identity.peers) return Verdict::unknown_id;
  if (std::ranges::find(setup_.hosted, to) == setup_.hosted.end()) return Verdict::not_hosted;
  if (std::ranges::find(setup_.hosted, from) != setup_.hosted.end()) return Verdict::duplicate_id;
  const Edge* edge = find_edge(to, from);
  if (edge == nullptr || edge->calls()) return Verdict::not_a_partner;
  return edge->connected() ? Verdict::duplicate_id : Verdict::accepted;
}

void TcpNetwork::admitted(std::unique_ptr<Socket> socket, const Hello& hello) {
  const auto known = setup_.options.peers.empty() ? socket->remote() : known_address(hello.from);
  connect(*find_edge(hello.to, hello.from), std::move(socket), hello, known);
}

void TcpNetwork::refused(const Hello& hello, const std::string& clause) {
  if (Edge* edge = find_edge(hello.to, hello.from); edge != nullptr && !edge->calls())
    edge->called_back = "it called and was refused, " + clause;
}

void TcpNetwork::connect(Edge& edge, std::unique_ptr<Socket> socket, const Hello& theirs, const std::string& address) {
  if (error_ || leaving_) return;
  if (edge.session) old_sessions_.push_back(std::move(edge.session));
  SessionOptions options;
  options.incoming = {short_run(setup_.identity.run_id), edge.remote, edge.local};
  options.name = fmt::format("peer {} ({})", edge.remote, address);
  options.window = setup_.options.window;
  options.silence = silence_;
  // Four beats fit into the shorter of the two silences.
  const gossip::Time shorter = std::min<gossip::Time>(silence_, std::max<gossip::Time>(theirs.silence, 50ms));
  options.heartbeat = shorter / 4;
  options.hold_data = !joined_;
  options.hashes = &hashes_;
  options.chunk_memory = setup_.chunk_memory;
  Traffic& traffic = traffic_[edge.local];
  traffic.bytes_sent += kHelloBytes;
  traffic.bytes_received += kHelloBytes;
  edge.session = std::make_unique<Session>(scheduler_, std::move(options), std::move(socket), traffic, *this);
  edge.session->start();
  check_joined();
}

void TcpNetwork::check_joined() {
  if (joined_ || !std::ranges::all_of(edges_, [](const auto& entry) { return entry.second.connected(); })) return;
  joined_ = true;
  release_timer_ = scheduler_.after(0ns, [this] {  // when join() has returned
    for (auto& [pair, edge] : edges_) edge.session->release_data();
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

Status TcpNetwork::confer(Conference conference) {
  joining_ = true;
  begin_confer(std::move(conference));
  scheduler_.run_until([&] { return conferred() || error_; });
  joining_ = false;
  if (error_) return *error_;
  return conferred() ? Status() : Status(Error{ErrorKind::interrupted, "interrupted while waiting for other peers"});
}

void TcpNetwork::begin_confer(Conference conference) {
  conference_ = std::move(conference);
  if (!conferred()) say();
  hear();
}

void TcpNetwork::say() {
  const std::string statement = conference_->say();
  for (auto& [pair, edge] : edges_)
    if (edge.session) edge.session->tell(statement);
}

/// As long as every partner's next statement is here.
void TcpNetwork::hear() {
  while (!error_ && !conferred() && std::ranges::none_of(edges_, [](const auto& entry) { return entry.second.statements.empty(); })) {
    for (auto& [pair, edge] : edges_) {
      const Status heard = conference_->hear(edge.statements.front());
      edge.statements.pop_front();
      if (heard.ok()) continue;
      return end_run({ErrorKind::lost_peer, fmt::format("{} broke the protocol: {}", edge.session->name(), heard.error().message)},
                     nullptr);
    }
    ++exchanges_done_;
    if (!conferred()) say();
  }
}

Status TcpNetwork::told(Session& session, std::string statement) {
  Edge& edge = *find_edge(session.local(), session.remote());
  // A partner waits for our statement before it sends its next, so it is one ahead at most.
  if (conferred() || edge.statements.size() == 2)
    return Error{ErrorKind::lost_peer, fmt::format("{} broke the protocol: it sent a statement that nobody waits for", session.name())};
  edge.statements.push_back(std::move(statement));
  if (conference_ && joined_) hear();
  return {};
}

}  // namespace gossamer::net
