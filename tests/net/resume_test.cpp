// Connections that break between processes that are alive: sessions resume, and the layers above do
// not notice.
#include <algorithm>
#include <random>

#include "net/session/send_queue.hpp"
#include "tests/net/proxy.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

struct Carried {
  std::vector<std::string> headers;
  std::vector<float> values;
  bool operator==(const Carried&) const = default;
};

Carried carried(const Process& process) {
  Carried all;
  for (const auto& header : process.memory.headers)
    all.headers.push_back(fmt::format("{}.{}.{} of {}, note {}", header.round, header.channel,
                                      header.offset, header.total,
                                      static_cast<int>(header.control)));
  all.values = process.memory.received;
  return all;
}

/// Sends rows of many sizes and control messages both ways, each round after the one before has
/// arrived. Returns what peers 0 and 1 received.
std::pair<Carried, Carried> exchange(Cuttable& pair, int rounds,
                                     const std::vector<std::size_t>& sizes) {
  std::vector<std::unique_ptr<Row>> rows;
  for (int t = 0; t < rounds; ++t) {
    const auto round = static_cast<gossip::Round>(t);
    std::size_t due = 0;
    for (auto [from, to, process] : {std::tuple{0, 1, pair.zero}, std::tuple{1, 0, pair.one}}) {
      gossip::Link& link = process->network->link(from, to);
      due = 0;
      for (const std::size_t size : sizes) {
        Row& row =
            *rows.emplace_back(std::make_unique<Row>(size, static_cast<float>(100 * t + from)));
        const std::size_t step = std::max<std::size_t>(size / 3, 1);
        for (std::size_t offset = 0; offset < size; offset += step, ++due)
          link.send(row.chunk(from, to, round, offset, step));
        gossip::ChunkHeader note{from, to, round, 0, 0, 0};
        note.control = gossip::ControlMessage::commit;
        link.send(gossip::Chunk(note, {}, {}));
        ++due;
      }
    }
    const std::size_t all = due * static_cast<std::size_t>(t + 1);
    pair.world.run_until([&] {
      return pair.zero->memory.headers.size() >= all && pair.one->memory.headers.size() >= all;
    });
  }
  pair.world.leave();
  CHECK(std::ranges::all_of(rows, [](const auto& row) { return row->leases == 0; }));
  return {carried(*pair.zero), carried(*pair.one)};
}

/// The layers above noticed nothing.
void check_quiet(Cuttable& pair) {
  for (Process* process : {pair.zero, pair.one}) {
    CHECK(std::ranges::none_of(process->journal,
                               [](const auto& entry) { return !entry.starts_with("chunk"); }));
    CHECK(process->faults.empty());
  }
}

const std::vector<std::size_t> kSizes = {1, 700, 30'000};

/// What an undisturbed pair carries.
std::pair<Carried, Carried> undisturbed(int rounds, const std::vector<std::size_t>& sizes) {
  Cuttable pair;
  auto result = exchange(pair, rounds, sizes);
  CHECK(pair.proxy->connections == 1);
  CHECK(pair.world.all([](Process& p) { return p.lines.empty(); }));
  return result;
}

}  // namespace

TEST_CASE(
    "a connection cut anywhere, also in the hello, is resumed: every frame is delivered once and "
    "in order") {
  const auto expected = undisturbed(2, kSizes);
  std::mt19937 dice(7);
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 2 * kHelloBytes + 400; at += 23) places.push_back(at);
  for (int i = 0; i < 120; ++i) places.push_back(dice() % 500'000);
  for (const std::size_t at : places) {
    CAPTURE(at);
    Cuttable pair(
        20, [at](Proxy& proxy) { proxy.life = [at](int k) { return k == 0 ? at : SIZE_MAX; }; });
    CHECK(exchange(pair, 2, kSizes) == expected);
    check_quiet(pair);
  }
}

TEST_CASE("connections that are cut again and again are resumed") {
  const auto expected = undisturbed(12, kSizes);
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    Cuttable pair(20, [&dice](Proxy& proxy) {
      proxy.life = [&dice](int) { return 1500 + dice() % 120'000; };
    });
    CHECK(exchange(pair, 12, kSizes) == expected);
    CHECK(pair.proxy->connections > 20);
    check_quiet(pair);
  }
}

TEST_CASE("connections that end within large rows, at one end before the other, are resumed") {
  const std::vector<std::size_t> sizes = {900'000};
  const auto expected = undisturbed(4, sizes);
  for (const bool one_end : {false, true}) {
    Cuttable pair;
    for (int i = 1; i <= 40; ++i)
      pair.world.scheduler.after(
          i * 3ms, [&pair, one_end] { one_end ? pair.proxy->cut_there() : pair.proxy->cut(); });
    CHECK(exchange(pair, 4, sizes) == expected);
    CHECK(pair.proxy->connections > 1);
    check_quiet(pair);
  }
}

TEST_CASE("the end that sees a break asks the other end to dial back") {
  Cuttable pair;
  pair.proxy->cut_there();
  pair.world.run_until([&] { return pair.proxy->connections == 2; });
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
  check_quiet(pair);
}

TEST_CASE("a link that breaks again and again is reported when it is resumed, not when it breaks") {
  constexpr const char* kReport = "has broken 2 times and was resumed each time";
  Cuttable pair(1);
  const auto cut = [&] {
    const int before = pair.proxy->connections;
    pair.proxy->cut();
    pair.world.run_until([&] { return pair.proxy->connections > before; });
    check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
    check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
  };
  cut();
  SUBCASE("resumed") {
    CHECK_FALSE(pair.zero->said("has broken"));
    cut();
    CHECK(pair.zero->said(kReport));
    CHECK(pair.one->said(kReport));
  }
  SUBCASE("lost") {
    pair.lose_link(1);
    CHECK_FALSE(pair.zero->said("has broken"));
    CHECK_FALSE(pair.one->said("has broken"));
  }
}

TEST_CASE("the death of a process is detected at once, and its successor has another session") {
  Cuttable pair;
  const gossip::Time begin = pair.world.scheduler.now();
  SUBCASE("no process there") {
    REQUIRE(pair.front.announce({1}, pair.one->network->address())
                .ok());  // a proxy would accept the connection
    pair.world.kill(*pair.one);
    pair.world.run_until([&] { return pair.zero->count("lost 0-1") == 1; });
  }
  SUBCASE("no process there, seen by the accepting end") {
    pair.world.kill(*pair.zero);
    pair.world.run_until([&] { return pair.one->count("lost 1-0") == 1; });
  }
  SUBCASE("another one answers") {
    pair.proxy->shut();
    Process& other = pair.world.add({1}, {{0, 1}});
    pair.world.kill(*pair.one);
    REQUIRE(other.network->start().ok());
    REQUIRE(pair.front.announce({1}, other.network->address()).ok());
    pair.world.run_until(
        [&] { return pair.zero->count("restored 0-1") == 1 && other.network->joined(); });
    CHECK(pair.zero->count("lost 0-1") == 1);
    check_carries(pair.world, *pair.zero, 0, other, 1);
  }
  SUBCASE("another one calls") {
    pair.world.kill(*pair.zero);
    Process& other = pair.world.again(0, {{0, 1}});
    pair.world.run_until([&] { return pair.one->count("restored 1-0") == 1; });
    CHECK(pair.one->count("lost 1-0") == 1);
    check_carries(pair.world, other, 0, *pair.one, 1);
  }
  CHECK(pair.world.scheduler.now() - begin < 10s);  // of a failure timeout of 20 s
}

TEST_CASE("a session whose connections carry nothing fails after the failure timeout") {
  Cuttable pair(
      0.5, [](Proxy& proxy) { proxy.life = [](int k) { return k == 0 ? SIZE_MAX : 100'000; }; });
  Row row(100'000), back(10);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.proxy->cut();
  pair.world.run_until(
      [&] { return pair.zero->count("lost 0-1") == 1 && pair.one->count("lost 1-0") == 1; });
  CHECK(row.leases == 0);
  CHECK(pair.one->memory.headers.empty());
  CHECK(pair.proxy->connections < 40);
  pair.proxy->life = [](int) { return SIZE_MAX; };
  pair.world.run_until([&] { return pair.both_restored(1); });
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
}

TEST_CASE("a damaged frame is requested once more; a second corruption is a protocol violation") {
  for (const std::size_t place : {kHelloBytes + 30, kHelloBytes + kFrameHeaderBytes + 1000}) {
    Cuttable pair(20, [place](Proxy& proxy) {
      proxy.damage = [place](int k) { return k == 0 ? place : SIZE_MAX; };
    });
    check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
    CHECK(pair.proxy->connections == 2);
    CHECK(pair.one->said("the frame is requested once more"));
    check_quiet(pair);
  }
  // An acknowledgement precedes it on every connection but the first.
  const std::size_t place = kHelloBytes + kFrameHeaderBytes + 30;
  Cuttable pair(20, [place](Proxy& proxy) {
    proxy.damage = [place](int k) { return k == 0 ? place - kFrameHeaderBytes : place; };
  });
  Row row(1000);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.world.run_until([&] { return pair.one->count("lost 1-0") == 1; });
  CHECK(pair.one->memory.headers.empty());
  CHECK(pair.one->lines.size() == 1);
}

TEST_CASE("a silent connection is suspected and replaced by another one") {
  Cuttable pair(1);
  pair.proxy->hold();
  Row row(100'000);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.world.run_until([&] { return pair.one->memory.bytes == 400'000; });
  CHECK(pair.proxy->connections >= 2);
  pair.world.run_until([&] {
    return pair.zero->said("is no longer suspected") || pair.one->said("is no longer suspected");
  });
  for (Process* process : {pair.zero, pair.one})
    CHECK(std::ranges::count_if(process->lines, [](const auto& line) {
            return line.find("is suspected") != std::string::npos;
          }) <= 1);
  check_quiet(pair);
  check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
}

TEST_CASE("requests to resume an unknown session are rejected, and many of them change nothing") {
  Cuttable pair;
  for (int i = 0; i < 200; ++i) {
    Hello hello{HandshakeResult::accepted, 0, 1, 60'000ms, identity(2)};
    hello.session = static_cast<std::uint64_t>(i);
    hello.resumes = true;
    CHECK(RawClient(pair.world, pair.one->network->address()).ask(hello).result ==
          HandshakeResult::unknown_session);
  }
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  CHECK(pair.proxy->connections == 1);
  check_quiet(pair);
}

TEST_CASE("goodbyes, and the frames before them, survive broken connections") {
  for (const bool first_leaves : {false, true}) {
    Cuttable pair;
    pair.one->memory.hold = true;  // so that all frames are under way when the connection breaks
    Row row(4 << 20);
    for (std::size_t begin = 0; begin < row.values.size(); begin += 1 << 18)
      pair.zero->network->link(0, 1).send(row.chunk(0, 1, 0, begin, 1 << 18));
    pair.world.run_until([&] { return pair.one->memory.held.size() == 2; });
    if (first_leaves) pair.zero->network->begin_leave();
    pair.proxy->cut();
    pair.one->memory.hold = false;
    pair.one->memory.held.clear();
    if (!first_leaves) pair.zero->network->begin_leave();
    pair.world.run_until(
        [&] { return pair.one->memory.bytes == row.values.size() * sizeof(float); });
    pair.one->network->begin_leave();
    pair.proxy->cut();
    pair.world.run_until([&] { return pair.zero->network->left() && pair.one->network->left(); });
    CHECK(row.leases == 0);
    CHECK(pair.one->memory.received == row.values);
    check_quiet(pair);
  }
}

TEST_CASE(
    "a peer that is gone before its last acknowledgement arrives delays leave() only briefly") {
  Cuttable pair;
  const auto came = [&] { return pair.zero->network->traffic(0).bytes_received; };
  const auto before = came();
  pair.one->network->begin_leave();
  pair.world.run_until([&] { return came() >= before + kFrameHeaderBytes; });
  pair.zero->network->begin_leave();
  pair.world.run_until([&] { return pair.one->network->left(); });
  pair.proxy->cut();  // with the acknowledgement of peer 0's goodbye
  pair.world.kill(*pair.one);
  CHECK_FALSE(pair.zero->network->left());
  const gossip::Time begin = pair.world.scheduler.now();
  pair.zero->network->leave(
      50ms);  // behind a proxy that accepts connections for a process that is gone
  CHECK(pair.world.scheduler.now() - begin < 10s);  // of a failure timeout of 20 s
  CHECK(pair.zero->lines.empty());
}

namespace {

/// A row whose owner may wait to write it.
struct Wanted final : gossip::BufferOwner {
  void on_lease_end() override { --leases; }
  bool writer_waiting() const override { return waited_for; }
  gossip::Chunk chunk() {
    ++leases;
    return {{0, 1, 0, 0, 0, values.size()}, values, gossip::Lease(*this)};
  }
  std::vector<float> values = std::vector<float>(1 << 20, 3.0F);
  int leases = 0;
  bool waited_for = false;
};

}  // namespace

TEST_CASE(
    "unacknowledged rows stay leased until their owner waits, and are then copied within a bound") {
  Wanted row;
  HashMemo hashes;
  LentChunks lent;
  SendQueue queue(hashes, lent);
  FrameHeader header = data_header(0, 1, row.values.size());
  header.payload_bytes = static_cast<std::uint32_t>(row.values.size() * sizeof(float));
  const auto write_all = [&queue] {
    while (!queue.gather().empty()) queue.written(kFrameHeaderBytes + (4 << 20));
  };
  for (int i = 0; i < 3; ++i) queue.push(header, row.chunk());
  CHECK_FALSE(queue.has_leases());  // nothing is written yet
  write_all();
  CHECK(queue.copy_for_writers());
  CHECK(row.leases == 3);
  row.waited_for = true;
  CHECK(queue.copy_for_writers());
  CHECK(row.leases == 1);
  CHECK(queue.copied_bytes() == SendQueue::kMaxCopiedBytes);
  CHECK_FALSE(queue.on_ack(4));
  CHECK(queue.on_ack(1));
  CHECK_FALSE(queue.copy_for_writers());
  CHECK(row.leases == 0);
  CHECK_FALSE(queue.on_ack(0));

  // Copied values are sent again unchanged.
  queue.interrupt();
  std::ranges::fill(row.values, 5.0F);
  CHECK(queue.gather().empty());
  CHECK_FALSE(queue.resume(4));
  CHECK(queue.resume(2));
  const auto areas = queue.gather();
  REQUIRE(areas.size() == 2);
  CHECK(*static_cast<const float*>(areas[1].data) == 3.0F);
  write_all();
  CHECK(queue.on_ack(3));
  CHECK(queue.fully_acked());
  CHECK(queue.copied_bytes() == 0);
}

TEST_CASE("an acknowledgement that arrives before ours is written is handled") {
  World world(2);
  world.tolerates_loss = true;
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  Hello hello{HandshakeResult::accepted, 0, 1, 60'000ms, identity(2)};
  hello.session = 77;
  Row row(10);
  std::vector<std::unique_ptr<RawClient>> lives;
  for (int life = 0; life < 5; ++life) {
    // The hello and the acknowledgement in one piece.
    hello.resumes = life > 0;
    const auto words = encode_hello(hello);
    std::vector<std::byte> bytes(words.begin(), words.end());
    const auto ack = frame_bytes(frame_header(0, 1, AckFrame{}), {});
    if (hello.resumes) bytes.insert(bytes.end(), ack.begin(), ack.end());
    RawClient& client =
        *lives.emplace_back(std::make_unique<RawClient>(world, one.network->address()));
    client.send(bytes);
    REQUIRE(client.receive(kHelloBytes).size() == kHelloBytes);
    if (life == 0) {
      world.run_until([&] { return one.network->joined(); });
      one.network->link(1, 0).send(row.chunk(1, 0, 3));
    } else {
      CHECK(client.receive(kFrameHeaderBytes).size() == kFrameHeaderBytes);  // the acknowledgement
    }
    CHECK(client.receive(kFrameHeaderBytes + 40).size() ==
          kFrameHeaderBytes + 40);  // the row, sent again each time
  }
  CHECK(one.faults.empty());
  CHECK(one.journal.empty());
}
