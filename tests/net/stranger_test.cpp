// What a stranger can do to a process that waits or runs: connections without a hello or with a
// wrong one, floods, and texts.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <numeric>
#include <thread>

#include "gossip/task.hpp"
#include "net/io/real_scheduler.hpp"
#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

/// Both ends of one connection, each as a handshake stream with an hour as its deadline.
struct HandshakePair {
  explicit HandshakePair(World& world) {
    auto listener = listen(world.scheduler, {"127.0.0.1", 0}, [&](std::unique_ptr<Socket> socket) {
      near = std::make_shared<HandshakeStream>(world.scheduler, std::move(socket), 1h,
                                               [this](const std::string& why) { near_end = why; });
    });
    far = std::make_unique<RawClient>(world, listener.value()->address());
    world.run_until([&] { return near != nullptr; });
  }
  std::shared_ptr<HandshakeStream> near;
  std::string near_end;
  std::unique_ptr<RawClient> far;
};

/// A thread that connects, sends `opening` and then zeros, again and again, until stop() or a
/// quarter of a gigabyte: more than a process reads that is not held by it.
class Flooder {
 public:
  Flooder(std::uint16_t port, std::vector<std::byte> opening)
      : thread_([this, port, opening = std::move(opening)] { run(port, opening); }) {}
  ~Flooder() {
    stopped_ = true;
    thread_.join();
  }
  bool exhausted() const { return sent_ >= kEnough; }

 private:
  static constexpr std::size_t kEnough = std::size_t{1} << 28;

  void run(std::uint16_t port, const std::vector<std::byte>& opening) {
    const std::vector<std::byte> zeros(1 << 16);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (!stopped_ && !exhausted()) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      const timeval patience{0, 10'000};  // of a connect or a send that nobody takes
      ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        auto count = ::send(socket, opening.data(), opening.size(), MSG_NOSIGNAL);
        while ((count > 0 || errno == EAGAIN) && !stopped_ && !exhausted()) {
          count = ::send(socket, zeros.data(), zeros.size(), MSG_NOSIGNAL);
          if (count > 0) sent_ += static_cast<std::size_t>(count);
        }
      }
      ::close(socket);
    }
  }

  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> sent_{0};
  std::thread thread_;
};

/// A connection from another loopback address that sends nothing.
class SilentConnection {
 public:
  SilentConnection(const char* from, std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &address.sin_addr);
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~SilentConnection() { ::close(socket_); }
  SilentConnection(const SilentConnection&) = delete;
  SilentConnection& operator=(const SilentConnection&) = delete;

  bool is_closed() const {
    char byte;
    return ::recv(socket_, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
  }

 private:
  int socket_;
};

std::vector<std::byte> wrong_version() {
  Identity other = identity(3);
  other.protocol = 1;
  const auto hello = encode_hello({HandshakeResult::accepted, 0, 1, 5000ms, other});
  return {hello.begin(), hello.begin() + kHelloPrefixBytes};
}

std::vector<std::byte> repeated(const FrameBody& body, int times) {
  const auto frame = frame_bytes(frame_header(0, 1, body), {});
  std::vector<std::byte> all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), frame.begin(), frame.end());
  return all;
}

/// Why peer 1 loses its link to peer 0, which sends these bytes again and again. Peers 1 and 2 go
/// on.
std::string why_lost(const std::vector<std::byte>& bytes) {
  World world(3);
  world.tolerates_loss = true;
  const World::Pairs path = {{0, 1}, {1, 2}};
  Process& one = world.add({1}, path);
  Process& two = world.add({2}, path);
  REQUIRE(one.network->start().ok());
  RawClient zero(world, one.network->address());
  zero.hello(0, 1, identity(3));
  REQUIRE(two.network->start().ok());
  world.run_until([&] { return one.network->joined() && two.network->joined(); });
  std::string why;
  one.on_lost = [&](int, const Error& error) { why = error.message; };
  for (int i = 0; i < 10 && zero.ended.empty(); ++i) zero.send(bytes);
  world.run_until([&] { return one.count("lost 1-0") == 1; });
  check_carries(world, one, 1, two, 2);
  CHECK(one.faults.empty());
  return why;
}

}  // namespace

TEST_CASE("a handler that is always ready does not keep timers and coroutines from their turn") {
  RealScheduler scheduler;
  const int enough = 1'000'000;
  int handlers = 0, handlers_before_timer = 0;
  std::function<void()> again = [&] {
    if (++handlers < enough) scheduler.post_external(again);
  };
  again();
  bool fired = false, late = false;
  scheduler.after(0ns, [&] {
    // Set from within a turn: it fires between the handlers of a later turn.
    scheduler.after(0ns, [&] {
      fired = true;
      handlers_before_timer = handlers;
    });
  });
  scheduler.after(20s, [&] { late = true; });
  scheduler.run_until([&] { return fired || late; });
  CHECK(fired);
  CHECK(handlers_before_timer <= 2 * RealScheduler::kHandlersPerTurn + 1);
  CHECK(handlers < enough);
}

TEST_CASE("timers are counted by the time from when they were due until they fired") {
  RealScheduler scheduler;
  int fired = 0;
  for (const auto late : {30ms, 2000ms, 3000ms})
    scheduler.at(scheduler.now() - late, [&] { ++fired; });
  scheduler.run_until([&] { return fired == 3; });
  const TimerDelays& delays = scheduler.timer_delays();
  CHECK(delays.counts[0] + delays.counts[1] == 0);  // at least 30 ms late
  CHECK(delays.counts.back() == 2);                 // more than a second
  CHECK(std::accumulate(delays.counts.begin(), delays.counts.end(), 0) == 3);
  CHECK(delays.seconds >= 5.03);

  TimerDelays exact;
  for (const auto late : {0ms, 1ms, 10ms, 50ms, 250ms, 1000ms}) exact.add(late);
  exact.add(1001ms);
  CHECK(exact.counts == std::array<std::uint64_t, 6>{2, 1, 1, 1, 1, 1});
}

TEST_CASE("coroutines that are always ready keep neither timers nor handlers waiting") {
  RealScheduler scheduler;
  struct Again {
    RealScheduler& scheduler;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) { scheduler.post(coroutine); }
    void await_resume() const {}
  };
  bool fired = false, handled = false;
  std::uint64_t turns = 0;
  const auto run = [&]() -> gossip::task<void> {
    while (!(fired && handled) && turns < 100'000'000) {
      ++turns;
      Again again{scheduler};
      co_await again;
    }
  };
  gossip::task<void> running = run();
  running.start(scheduler);
  scheduler.after(0ns, [&] { fired = true; });
  scheduler.post_external([&] { handled = true; });
  scheduler.run_until([&] { return running.done(); });
  CHECK(fired);
  CHECK(handled);
}

TEST_CASE("of a connection that was refused a few kilobytes are read, and then it is closed") {
  World world(2);
  HandshakePair pair(world);
  pair.near->close_gracefully();
  CHECK(pair.near_end.empty());
  pair.far->send(std::vector<std::byte>(HandshakeStream::kMaxDrainedBytes));
  world.run_until([&] { return !pair.near_end.empty(); });
  CHECK(pair.near_end == "it sent more after it was refused");
}

TEST_CASE("connections of a wrong version that send zeros for ever do not hold a network up") {
  World world(3);
  for (int each : {0, 1, 2}) world.add({each}, kTriangle);
  world.join();
  std::vector<std::unique_ptr<Flooder>> flooders;
  for (int i = 0; i < 3; ++i)
    flooders.push_back(std::make_unique<Flooder>(
        world.processes[static_cast<std::size_t>(i)]->network->address().port, wrong_version()));
  for (int round = 0; round < 20; ++round)
    check_carries(world, *world.processes[0], 0, *world.processes[1], 1);
  CHECK(std::ranges::none_of(flooders, [](const auto& each) { return each->exhausted(); }));
  flooders.clear();
  CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.size() <= 22; }));
  world.leave();
}

TEST_CASE("a peer that sends heartbeats without a pause violates the protocol") {
  const std::string why = why_lost(repeated(HeartbeatFrame{}, 10'000));
  CHECK(why.find("broke the protocol: it sent ") != std::string::npos);
  CHECK(why.find(" heartbeats and other frames without content in ") != std::string::npos);
}

TEST_CASE("a peer that sends figures without a pause violates the protocol") {
  const std::string why = why_lost(repeated(FiguresFrame{0, 1}, 1000));
  CHECK(why.find("broke the protocol: it sent 17 frames of figures in ") != std::string::npos);
}

TEST_CASE("a rejection is a number: it tells a stranger nothing of the run") {
  World world(2);
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  Identity other = identity(2);
  other.model = "cnn 1111";
  const auto hello = encode_hello({HandshakeResult::accepted, 0, 1, 5000ms, other});
  for (const auto& bytes : {std::vector<std::byte>(hello.begin(), hello.end()), wrong_version()}) {
    RawClient client(world, one.network->address());
    client.send(bytes);
    CHECK(client.receive(kHelloPrefixBytes).size() == kHelloPrefixBytes);
    CHECK(client.receive(1).empty());  // the connection is at its end
    CHECK(client.ended == "the connection was closed");
  }
  CHECK(one.said("its model is cnn 1111, ours is mlp 0102"));  // here, for its operator
}

TEST_CASE("a crowd from one address does not take the places of other addresses") {
  World world(3);
  world.options.listen = "0.0.0.0:0";
  world.options.insecure = true;
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  const std::uint16_t port = one.network->address().port;
  RawClient quiet(world, {"127.0.0.1", port});
  std::vector<std::unique_ptr<SilentConnection>> crowd;
  const std::size_t rest = 16 + 2 * 2;  // Acceptor::max_pending_of_host()
  for (int i = 0; i < 100; ++i) {
    crowd.push_back(std::make_unique<SilentConnection>("127.0.0.2", port));
    if (crowd.size() <= rest) continue;
    const SilentConnection& oldest = *crowd[crowd.size() - rest - 1];
    world.run_until([&] { return oldest.is_closed(); });
  }
  CHECK(quiet.ended.empty());
  CHECK(one.said("closed a connection from 127.0.0.2:"));
  CHECK(one.said("connections from this address have not finished their handshake"));
  CHECK(one.said("further rejected connections are not reported"));
  CHECK(one.lines.size() <= 23);
  quiet.hello(0, 1, identity(3));
}

TEST_CASE("of the connections that are too many one in a millisecond is closed") {
  World world(2);
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  // 66 are read, of which 48 make room for others, 18 wait, and one more is closed for each further
  // one.
  std::vector<std::unique_ptr<SilentConnection>> crowd;
  for (int i = 0; i < 200; ++i)
    crowd.push_back(std::make_unique<SilentConnection>("127.0.0.1", one.network->address().port));
  const auto began = std::chrono::steady_clock::now();
  world.run_until([&] { return one.network->refused().handshakes >= 48 + 50; });
  CHECK(std::chrono::steady_clock::now() - began >= 49ms);
}

TEST_CASE("a hello with a wrong run, id or hash ends no process that waits") {
  World world(3);
  const World::Pairs path = {{0, 1}, {1, 2}};
  Process& one = world.add({1}, path);
  Process& two = world.add({2}, path);
  REQUIRE(one.network->start().ok());
  REQUIRE(two.network->start().ok());
  const Address address = one.network->address();
  for (const bool running : {false, true}) {
    Identity other = identity(3);
    other.configuration = "conf 66bb";
    Hello hello{HandshakeResult::accepted, 0, 1, 5000ms, other, running};
    CHECK(RawClient(world, address).ask(hello).result == HandshakeResult::wrong_configuration);
    hello.identity.run_id = "run-2";
    CHECK(RawClient(world, address).ask(hello).result == HandshakeResult::wrong_run);
    hello.identity = identity(3);
    hello.from = 7;
    CHECK(RawClient(world, address).ask(hello).result == HandshakeResult::unknown_id);
  }
  CHECK(one.faults.empty());
  world.add({0}, path);
  REQUIRE(world.processes.back()->network->start().ok());
  world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
  world.leave();
}

TEST_CASE("a stranger at a partner's address does not end a process that others have accepted") {
  World world(3);
  Process& zero = world.add({0}, {{0, 1}, {0, 2}});
  world.add({1}, {{0, 1}});
  std::vector<std::shared_ptr<HandshakeStream>> answered;
  auto squatter = listen(world.scheduler, {"127.0.0.1", 0}, [&](std::unique_ptr<Socket> socket) {
    answered.push_back(std::make_shared<HandshakeStream>(world.scheduler, std::move(socket), 1h,
                                                         [](const std::string&) {}));
    answered.back()->write(encode_rejection(HandshakeResult::wrong_run), [] {});
  });
  Rendezvous stranger(world.folder.path(), "run-1");
  REQUIRE(world.processes.back()->network->start().ok());
  REQUIRE(zero.network->start().ok());
  world.run_until([&] { return zero.network->connected(0, 1); });
  bool ends = false;
  SUBCASE("and that are connected") {}
  SUBCASE("and that have ended since") { ends = true; }
  if (ends) world.processes.pop_back();
  if (ends) world.run_until([&] { return !zero.network->connected(0, 1); });
  REQUIRE(stranger.announce({2}, squatter.value()->address()).ok());
  world.run_until([&] { return answered.size() >= 3; });
  CHECK(zero.faults.empty());
  CHECK(zero.said("rejected this peer: its run is not ours, run-1"));
  if (ends) REQUIRE(world.add({1}, {{0, 1}}).network->start().ok());
  Process& two = world.add({2}, {{0, 2}});
  REQUIRE(two.network->start().ok());
  world.run_until([&] { return zero.network->joined() && two.network->joined(); });
  world.leave();
}

TEST_CASE("the text of an abort is printable, bounded, and its sender is named") {
  World world(3);
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  RawClient zero(world, one.network->address());
  zero.hello(0, 1, identity(3));
  const std::string text = "\x1b[2J\r\n\xc2\x9b" + std::string(2000, 'x');
  zero.send(frame_bytes(frame_header(0, 1, AbortFrame{ErrorKind::join_timeout}),
                        std::as_bytes(std::span(text))));
  world.run_until([&] { return !one.faults.empty(); });
  const std::string& message = one.faults[0].message;
  CHECK(message.size() <= 512);
  CHECK(std::ranges::all_of(message, [](char c) { return c >= ' ' && c <= '~'; }));
  CHECK(one.said("peer 0 (127.0.0.1:"));
  CHECK(one.said(") ends the run: "));
}

TEST_CASE("an all-gather ends at its deadline with the partners whose data is missing") {
  World world(3);
  world.options.join_timeout = 0.2;
  Process& one = world.add({1}, {{0, 1}, {1, 2}});
  REQUIRE(one.network->start().ok());
  Process& two = world.add({2}, {{1, 2}});
  REQUIRE(two.network->start().ok());
  RawClient zero(world, one.network->address());
  zero.hello(0, 1, identity(3));
  world.run_until([&] { return one.network->joined() && two.network->joined(); });
  two.network->begin_all_gather(all_gather_of());
  const Status gathered = one.network->all_gather(all_gather_of());
  REQUIRE_FALSE(gathered.ok());
  CHECK(gathered.error().kind == ErrorKind::join_timeout);
  const std::string start = "after 0.2 s (net.join_timeout) peer 1 misses the start-up data of ";
  CHECK(gathered.error().message.starts_with(start + "peer 0 (127.0.0.1:"));
  CHECK(gathered.error().message.find("peer 2") == std::string::npos);
}
