// Connections that break between processes that live: what is carried does not suffer, and nobody
// above hears of it.
#include <algorithm>
#include <random>

#include "tests/net/relay.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

struct Carried {
  std::vector<std::string> heads;
  std::vector<float> values;
  bool operator==(const Carried&) const = default;
};

Carried carried(const Process& process) {
  Carried all;
  for (const auto& head : process.memory.heads)
    all.heads.push_back(fmt::format("{}.{}.{} of {}, note {}", head.round, head.channel,
                                    head.offset, head.total, static_cast<int>(head.control)));
  all.values = process.memory.received;
  return all;
}

/// Rows of many sizes and notes, both ways, the answer to a round after the round; what came to
/// peers 0 and 1.
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
      return pair.zero->memory.heads.size() >= all && pair.one->memory.heads.size() >= all;
    });
  }
  pair.world.leave();
  CHECK(std::ranges::all_of(rows, [](const auto& row) { return row->leases == 0; }));
  return {carried(*pair.zero), carried(*pair.one)};
}

/// Nobody heard of anything.
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
  CHECK(pair.relay->connections == 1);
  CHECK(pair.world.all([](Process& p) { return p.lines.empty(); }));
  return result;
}

}  // namespace

TEST_CASE(
    "a connection cut anywhere, in the hello too, is gone on with: everything comes once, in "
    "order") {
  const auto expected = undisturbed(2, kSizes);
  std::mt19937 dice(7);
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < 2 * kHelloBytes + 400; at += 23) places.push_back(at);
  for (int i = 0; i < 120; ++i) places.push_back(dice() % 500'000);
  for (const std::size_t at : places) {
    CAPTURE(at);
    Cuttable pair(
        20, [at](Relay& relay) { relay.life = [at](int k) { return k == 0 ? at : SIZE_MAX; }; });
    CHECK(exchange(pair, 2, kSizes) == expected);
    check_quiet(pair);
  }
}

TEST_CASE("connections cut again and again") {
  const auto expected = undisturbed(12, kSizes);
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    Cuttable pair(20, [&dice](Relay& relay) {
      relay.life = [&dice](int) { return 1500 + dice() % 120'000; };
    });
    CHECK(exchange(pair, 12, kSizes) == expected);
    CHECK(pair.relay->connections > 20);
    check_quiet(pair);
  }
}

TEST_CASE("large rows whose connections end in the middle, at one end before the other") {
  const std::vector<std::size_t> sizes = {900'000};
  const auto expected = undisturbed(4, sizes);
  for (const bool one_end : {false, true}) {
    Cuttable pair;
    for (int i = 1; i <= 40; ++i)
      pair.world.scheduler.after(
          i * 3ms, [&pair, one_end] { one_end ? pair.relay->cut_there() : pair.relay->cut(); });
    CHECK(exchange(pair, 4, sizes) == expected);
    CHECK(pair.relay->connections > 1);
    check_quiet(pair);
  }
}

TEST_CASE("where one end alone sees the break, it has the other call") {
  Cuttable pair;
  pair.relay->cut_there();
  pair.world.run_until([&] { return pair.relay->connections == 2; });
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
  check_quiet(pair);
}

TEST_CASE("a process that died is missed at once, and another one in its place is another") {
  Cuttable pair;
  const gossip::Time begin = pair.world.scheduler.now();
  SUBCASE("nobody there") {
    REQUIRE(pair.front.announce({1}, pair.one->network->address())
                .ok());  // a relay would take the call
    pair.world.kill(*pair.one);
    pair.world.run_until([&] { return pair.zero->count("lost 0-1") == 1; });
  }
  SUBCASE("nobody there, seen by the one that is called") {
    pair.world.kill(*pair.zero);
    pair.world.run_until([&] { return pair.one->count("lost 1-0") == 1; });
  }
  SUBCASE("another one answers") {
    pair.relay->shut();
    Process& other = pair.world.add({1}, {{0, 1}});
    pair.world.kill(*pair.one);
    REQUIRE(other.network->start().ok());
    REQUIRE(pair.front.announce({1}, other.network->address()).ok());
    pair.world.run_until(
        [&] { return pair.zero->count("back 0-1") == 1 && other.network->joined(); });
    CHECK(pair.zero->count("lost 0-1") == 1);
    check_carries(pair.world, *pair.zero, 0, other, 1);
  }
  SUBCASE("another one calls") {
    pair.world.kill(*pair.zero);
    Process& other = pair.world.again(0, {{0, 1}});
    pair.world.run_until([&] { return pair.one->count("back 1-0") == 1; });
    CHECK(pair.one->count("lost 1-0") == 1);
    check_carries(pair.world, other, 0, *pair.one, 1);
  }
  CHECK(pair.world.scheduler.now() - begin < 10s);  // of a silence of 20 s
}

TEST_CASE("connections that break before they carry anything hold nobody up for ever") {
  Cuttable pair(
      0.5, [](Relay& relay) { relay.life = [](int k) { return k == 0 ? SIZE_MAX : 100'000; }; });
  Row row(100'000), back(10);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.relay->cut();
  pair.world.run_until(
      [&] { return pair.zero->count("lost 0-1") == 1 && pair.one->count("lost 1-0") == 1; });
  CHECK(row.leases == 0);
  CHECK(pair.one->memory.heads.empty());
  CHECK(pair.relay->connections < 40);
  pair.relay->life = [](int) { return SIZE_MAX; };
  pair.world.run_until([&] { return pair.both_back(1); });
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
}

TEST_CASE("a frame that was damaged on the way is asked for again, once") {
  for (const std::size_t place : {kHelloBytes + 30, kHelloBytes + kFrameHeaderBytes + 1000}) {
    Cuttable pair(20, [place](Relay& relay) {
      relay.damage = [place](int k) { return k == 0 ? place : SIZE_MAX; };
    });
    check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
    CHECK(pair.relay->connections == 2);
    CHECK(pair.one->said("it is asked for it again"));
    check_quiet(pair);
  }
  // A count of what came is before it on every connection but the first.
  const std::size_t place = kHelloBytes + kFrameHeaderBytes + 30;
  Cuttable pair(20, [place](Relay& relay) {
    relay.damage = [place](int k) { return k == 0 ? place - kFrameHeaderBytes : place; };
  });
  Row row(1000);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.world.run_until([&] { return pair.one->count("lost 1-0") == 1; });
  CHECK(pair.one->memory.heads.empty());
  CHECK(pair.one->lines.size() == 1);
}

TEST_CASE("a connection that falls silent is suspected, and another one carries on") {
  Cuttable pair(1);
  pair.relay->hold();
  Row row(100'000);
  pair.zero->network->link(0, 1).send(row.chunk(0, 1));
  pair.world.run_until([&] { return pair.one->memory.bytes == 400'000; });
  CHECK(pair.relay->connections >= 2);
  pair.world.run_until(
      [&] { return pair.zero->said("is heard again") || pair.one->said("is heard again"); });
  for (Process* process : {pair.zero, pair.one})
    CHECK(std::ranges::count_if(process->lines, [](const auto& line) {
            return line.find("is suspected") != std::string::npos;
          }) <= 1);
  check_quiet(pair);
  check_carries(pair.world, *pair.one, 1, *pair.zero, 0);
}

TEST_CASE(
    "strangers who wish to go on with a session that they do not know are sent away, and a flood "
    "of them changes nothing") {
  Cuttable pair;
  for (int i = 0; i < 200; ++i) {
    Hello hello{HandshakeResult::accepted, 0, 1, 60'000ms, identity(2)};
    hello.session = static_cast<std::uint64_t>(i);
    hello.resumes = true;
    PendingConnection stranger(pair.world, pair.one->network->address());
    stranger.say(encode_hello(hello));
    const auto answer = stranger.hear(kHelloBytes);
    CHECK(decode_hello(std::span(answer).first<kHelloBytes>())->verdict == HandshakeResult::gone);
  }
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  CHECK(pair.relay->connections == 1);
  check_quiet(pair);
}

TEST_CASE("goodbyes, and what was sent before them, come through connections that break") {
  for (const bool first_leaves : {false, true}) {
    Cuttable pair;
    pair.one->memory.hold = true;  // so that all of it is under way when the connection breaks
    Row row(4 << 20);
    for (std::size_t begin = 0; begin < row.values.size(); begin += 1 << 18)
      pair.zero->network->link(0, 1).send(row.chunk(0, 1, 0, begin, 1 << 18));
    pair.world.run_until([&] { return pair.one->memory.held.size() == 2; });
    if (first_leaves) pair.zero->network->begin_leave();
    pair.relay->cut();
    pair.one->memory.hold = false;
    pair.one->memory.held.clear();
    if (!first_leaves) pair.zero->network->begin_leave();
    pair.world.run_until(
        [&] { return pair.one->memory.bytes == row.values.size() * sizeof(float); });
    pair.one->network->begin_leave();
    pair.relay->cut();
    pair.world.run_until([&] { return pair.zero->network->left() && pair.one->network->left(); });
    CHECK(row.leases == 0);
    CHECK(pair.one->memory.received == row.values);
    check_quiet(pair);
  }
}

TEST_CASE(
    "whose last word is lost, and who is gone then, is waited for a moment and not for the "
    "silence") {
  Cuttable pair;
  const auto came = [&] { return pair.zero->network->traffic(0).bytes_received; };
  const auto before = came();
  pair.one->network->begin_leave();
  pair.world.run_until([&] { return came() >= before + kFrameHeaderBytes; });
  pair.zero->network->begin_leave();
  pair.world.run_until([&] { return pair.one->network->left(); });
  pair.relay->cut();  // with the word that peer 0's goodbye has come
  pair.world.kill(*pair.one);
  CHECK_FALSE(pair.zero->network->left());
  const gossip::Time begin = pair.world.scheduler.now();
  pair.zero->network->leave(50ms);  // behind a relay that takes calls for a process that is gone
  CHECK(pair.world.scheduler.now() - begin < 10s);  // of a silence of 20 s
  CHECK(pair.zero->lines.empty());
}

namespace {

/// Memory that somebody waits for.
struct Wanted final : gossip::BufferOwner {
  void give_back() override { --leases; }
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
    "what is kept to be acknowledged is lent until it is wanted, then copied, within a bound") {
  Wanted row;
  HashMemo hashes;
  SendQueue outbox(hashes);
  FrameHeader head = data_head(0, 1, row.values.size());
  head.payload_bytes = static_cast<std::uint32_t>(row.values.size() * sizeof(float));
  const auto write_all = [&outbox] {
    while (!outbox.gather().empty()) outbox.written(kFrameHeaderBytes + (4 << 20));
  };
  for (int i = 0; i < 3; ++i) outbox.push(head, row.chunk());
  CHECK_FALSE(outbox.lends());  // nothing is written yet
  write_all();
  CHECK(outbox.copy_awaited());
  CHECK(row.leases == 3);
  row.waited_for = true;
  CHECK(outbox.copy_awaited());
  CHECK(row.leases == 1);
  CHECK(outbox.copied_bytes() == SendQueue::kMaxCopiedBytes);
  CHECK_FALSE(outbox.acknowledged(4));
  CHECK(outbox.acknowledged(1));
  CHECK_FALSE(outbox.copy_awaited());
  CHECK(row.leases == 0);
  CHECK_FALSE(outbox.acknowledged(0));

  // Written again, what is copied has the same bytes.
  outbox.interrupted();
  std::ranges::fill(row.values, 5.0F);
  CHECK(outbox.gather().empty());
  CHECK_FALSE(outbox.resume(4));
  CHECK(outbox.resume(2));
  const auto areas = outbox.gather();
  REQUIRE(areas.size() == 2);
  CHECK(*static_cast<const float*>(areas[1].data) == 3.0F);
  write_all();
  CHECK(outbox.acknowledged(3));
  CHECK(outbox.settled());
  CHECK(outbox.copied_bytes() == 0);
}

TEST_CASE("who says at once how much has come, before our own word of it is out, is heard") {
  World world(2);
  world.bears = true;
  Process& one = world.add({1}, {{0, 1}});
  REQUIRE(one.network->start().ok());
  Hello hello{HandshakeResult::accepted, 0, 1, 60'000ms, identity(2)};
  hello.session = 77;
  FrameHeader count = data_head(0, 1, 0);
  count.kind = FrameKind::ack;
  Row row(10);
  std::vector<std::unique_ptr<PendingConnection>> lives;
  for (int life = 0; life < 5; ++life) {
    // The hello and what follows it in one piece.
    hello.resumes = life > 0;
    const auto words = encode_hello(hello);
    std::vector<std::byte> bytes(words.begin(), words.end());
    const auto told = frame_bytes(count, {});
    if (hello.resumes) bytes.insert(bytes.end(), told.begin(), told.end());
    PendingConnection& stranger =
        *lives.emplace_back(std::make_unique<PendingConnection>(world, one.network->address()));
    stranger.say(bytes);
    REQUIRE(stranger.hear(kHelloBytes).size() == kHelloBytes);
    if (life == 0) {
      world.run_until([&] { return one.network->joined(); });
      one.network->link(1, 0).send(row.chunk(1, 0, 3));
    } else {
      CHECK(stranger.hear(kFrameHeaderBytes).size() == kFrameHeaderBytes);  // how much has come
    }
    CHECK(stranger.hear(kFrameHeaderBytes + 40).size() ==
          kFrameHeaderBytes + 40);  // the row, once more each time
  }
  CHECK(one.faults.empty());
  CHECK(one.journal.empty());
}
