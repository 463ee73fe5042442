// Rows between processes of one machine, which stay in the memory of their sender while the
// receiver reads them.
#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "net/session/send_queue.hpp"
#include "tests/net/proxy.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

namespace {

constexpr std::size_t kValues = 100'000;

/// A row in the memory that a process shares.
struct SharedRow final : gossip::BufferOwner {
  SharedRow(SharedMemory& memory_in, std::size_t length, float seed) : memory(&memory_in) {
    void* block = memory->allocate(length * sizeof(float));
    REQUIRE(block != nullptr);
    values = {static_cast<float*>(block), length};
    fill(seed);
  }
  ~SharedRow() override {
    if (memory != nullptr) memory->release(values.data());
  }
  void on_lease_end() override { --leases; }
  bool writer_waiting() const override { return waited_for; }
  void fill(float seed) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = seed + static_cast<float>(i % 8191);
  }
  std::vector<float> copy() const { return {values.begin(), values.end()}; }
  /// Sends the row in chunks of 30,000 values.
  void send(gossip::Link& link, int from, int to, gossip::Round round = 0) {
    for (std::size_t offset = 0; offset < values.size(); offset += 30'000) {
      ++leases;
      link.send({{from, to, round, 0, offset, values.size()},
                 values.subspan(offset, std::min<std::size_t>(30'000, values.size() - offset)),
                 gossip::Lease(*this)});
    }
  }

  SharedMemory* memory;  ///< null: it is gone
  std::span<float> values;
  int leases = 0;
  bool waited_for = false;
};

/// Of how many processes this process has shared memory mapped, its own included.
std::ptrdiff_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> found;
  for (std::string line; std::getline(maps, line);) {
    std::string range, rights, offset, device, inode;
    std::istringstream(line) >> range >> rights >> offset >> device >> inode;
    if (line.find("memfd:gossamer") != std::string::npos) found.insert(inode);
  }
  return static_cast<std::ptrdiff_t>(found.size());
}

bool lends(const Process& process) {
  return std::ranges::any_of(process.network->links(), &LinkReport::lends);
}

/// Both ends can read each other's memory.
bool both_lend(const Process& zero, const Process& one) { return lends(zero) && lends(one); }

/// Peers 0 and 1, joined, which share memory.
struct Lenders {
  Lenders() : world(2) {
    world.shares_memory = true;
    world.tolerates_loss = true;
    zero = &world.add({0}, {{0, 1}});
    one = &world.add({1}, {{0, 1}});
    world.join();
    world.run_until([&] { return both_lend(*zero, *one); });
  }
  gossip::Link& link() { return zero->network->link(0, 1); }

  World world;
  Process *zero, *one;
};

}  // namespace

TEST_CASE("rows of a process of the same machine are read where they are") {
  Lenders pair;
  SharedRow row(*pair.zero->shared, kValues, 5);
  pair.one->memory.hold = true;
  const SocketTraffic before = pair.zero->network->traffic(0);
  row.send(pair.link(), 0, 1);
  pair.world.run_until([&] { return pair.one->memory.held.size() == 4; });
  CHECK(pair.one->memory.received == row.copy());
  CHECK(row.leases == 4);
  const SocketTraffic sent = pair.zero->network->traffic(0);
  CHECK(sent.lent_bytes_sent == kValues * sizeof(float));
  CHECK(sent.bytes_sent - before.bytes_sent < 2000);
  CHECK(sent.data_bytes_sent - before.data_bytes_sent ==
        kValues * sizeof(float) + 4 * gossip::kFrameOverheadBytes);
  const SocketTraffic received = pair.one->network->traffic(1);
  CHECK(received.data_bytes_received == sent.data_bytes_sent);
  CHECK(received.lent_bytes_received == sent.lent_bytes_sent);

  // No copy was made: the receiver sees what a sender without regard for leases would write.
  row.values[17] = -1;
  CHECK(pair.one->memory.held.front().values[17] == -1);

  // Chunks are released in the order in which they came, whatever the order of their leases' ends.
  pair.one->memory.held.erase(pair.one->memory.held.begin() + 1);
  check_carries(pair.world, *pair.zero, 0, *pair.one, 1);
  CHECK(row.leases == 4);
  pair.one->memory.held.clear();
  pair.world.run_until([&] { return row.leases == 0; });
  pair.world.leave();
}

TEST_CASE("small rows, and rows in other memory, are sent") {
  Lenders pair;
  SharedRow small(*pair.zero->shared, SendQueue::kSmallBytes / sizeof(float), 1);
  small.send(pair.link(), 0, 1);
  pair.world.run_until([&] { return pair.one->memory.received.size() == small.values.size(); });
  Row elsewhere(kValues);
  pair.link().send(elsewhere.chunk(0, 1, 1));
  pair.world.run_until([&] { return pair.one->memory.headers.size() == 2; });
  CHECK(pair.zero->network->traffic(0).lent_bytes_sent == 0);
  pair.world.leave();
}

TEST_CASE("a process that shares no memory reads none") {
  World world(2);
  world.shares_memory = true;
  Process& zero = world.add({0}, {{0, 1}});
  world.shares_memory = false;
  Process& one = world.add({1}, {{0, 1}});
  world.join();
  SharedRow row(*zero.shared, kValues, 5);
  row.send(zero.network->link(0, 1), 0, 1);
  world.run_until([&] { return one.memory.bytes == kValues * sizeof(float) && row.leases == 0; });
  CHECK(one.memory.received == row.copy());
  CHECK_FALSE(lends(zero));
  CHECK(zero.network->traffic(0).lent_bytes_sent == 0);
  world.leave();
}

TEST_CASE("rows that are lent arrive once and in order over connections that are cut") {
  for (const unsigned seed : {1u, 2u, 3u, 4u}) {
    CAPTURE(seed);
    std::mt19937 dice(seed);
    Cuttable pair(
        20,
        [&dice](Proxy& proxy) {
          proxy.life = [&dice](int) { return 2 * kHelloBytes + 100 + dice() % 2000; };
        },
        {}, true);
    pair.world.run_until([&] { return both_lend(*pair.zero, *pair.one); });
    std::vector<std::unique_ptr<SharedRow>> rows;
    for (int t = 0; t < 40; ++t) {
      const auto round = static_cast<gossip::Round>(t);
      for (auto [from, to, process] : {std::tuple{0, 1, pair.zero}, std::tuple{1, 0, pair.one}}) {
        rows.push_back(std::make_unique<SharedRow>(*process->shared, kValues,
                                                   static_cast<float>(100 * t + from)));
        rows.back()->send(process->network->link(from, to), from, to, round);
      }
      const auto due = 4 * static_cast<std::size_t>(t + 1);
      pair.world.run_until([&] {
        return pair.zero->memory.headers.size() >= due && pair.one->memory.headers.size() >= due &&
               std::ranges::all_of(rows, [](const auto& row) { return row->leases == 0; });
      });
      CHECK(pair.one->memory.received == rows[rows.size() - 2]->copy());
      CHECK(pair.zero->memory.received == rows.back()->copy());
      pair.zero->memory.received.clear();
      pair.one->memory.received.clear();
    }
    for (const Process* process : {pair.zero, pair.one}) {
      CHECK(process->memory.headers.size() == 160);
      CHECK(process->faults.empty());
      CHECK(process->count("lost 0-1") + process->count("lost 1-0") == 0);
    }
    CHECK(pair.zero->network->traffic(0).lent_bytes_sent == 40 * kValues * sizeof(float));
    CHECK(pair.proxy->connections > 10);
    pair.world.leave();
  }
}

TEST_CASE("a process leaves when its neighbours read its rows no more") {
  Lenders pair;
  SharedRow row(*pair.zero->shared, kValues, 5);
  pair.one->memory.hold = true;
  row.send(pair.link(), 0, 1);
  pair.world.run_until([&] { return pair.one->memory.held.size() == 4; });
  bool over = false;
  pair.world.scheduler.after(300ms, [&] {
    CHECK_FALSE(over);
    CHECK(row.leases == 4);
    pair.one->memory.held.clear();
    pair.one->network->begin_leave();
  });
  pair.zero->network->leave();  // returns when the other end has read all
  over = true;
  CHECK(row.leases == 0);
}

TEST_CASE("the end of a neighbour ends what was lent to it, and what it lent stays readable") {
  Lenders pair;
  SharedRow lent(*pair.zero->shared, kValues, 5);
  SharedRow borrowed(*pair.one->shared, kValues, 9);
  const std::vector<float> expected = borrowed.copy();
  pair.zero->memory.hold = pair.one->memory.hold = true;
  lent.send(pair.link(), 0, 1);
  borrowed.send(pair.one->network->link(1, 0), 1, 0);
  pair.world.run_until(
      [&] { return pair.one->memory.held.size() == 4 && pair.zero->memory.held.size() == 4; });
  pair.one->memory.held.clear();
  pair.one->network.reset();
  borrowed.memory = nullptr;  // a process that is killed frees nothing itself
  pair.one->shared.reset();
  CHECK(mappings() == 2);
  pair.world.run_until([&] { return pair.zero->count("lost 0-1") == 1; });
  CHECK(lent.leases == 0);
  std::vector<float> read;
  for (const auto& chunk : pair.zero->memory.held)
    read.insert(read.end(), chunk.values.begin(), chunk.values.end());
  CHECK(read == expected);
  pair.zero->memory.held.clear();
  CHECK(mappings() == 1);  // its own
}

TEST_CASE("chunks may outlive the network that received them") {
  Lenders pair;
  SharedRow row(*pair.zero->shared, kValues, 5);
  pair.one->memory.hold = true;
  row.send(pair.link(), 0, 1);
  pair.world.run_until([&] { return pair.one->memory.held.size() == 4; });
  pair.one->network.reset();
  CHECK(pair.one->memory.held.back().values.back() == row.values.back());
  pair.one->memory.held.clear();
  pair.world.run_until([&] { return row.leases == 0; });  // by the loss of the link
}

namespace {

/// Process 1, which shares memory, and a raw client as peer 0.
struct Liar {
  Liar() : world(2), memory(SharedMemory::reserve().value()) {
    world.shares_memory = true;
    one = &world.add({1}, {{0, 1}});
    REQUIRE(one->network->start().ok());
    client = std::make_unique<RawClient>(world, one->network->address());
    client->hello(0, 1, identity(2));
    world.run_until([&] { return one->network->joined(); });
  }
  void send(const FrameBody& body, const std::string& payload = {}) {
    client->send(frame_bytes(frame_header(0, 1, body), std::as_bytes(std::span(payload))));
  }
  /// Lends `values` values of the memory from `begin` on, of a message of 20,000 from `offset` on.
  void lend(std::uint64_t begin, std::uint64_t values, std::uint64_t offset = 0) {
    send(LentFrame{{0, 0, offset, 20'000}}, encode_place({begin, values}));
  }
  /// The fault of process 1, without the name of peer 0.
  std::string fault() {
    world.run_until([&] { return !one->faults.empty(); });
    const std::string& sentence = one->faults.front().message;
    const std::string begin = "broke the protocol: ";
    const std::size_t at = sentence.find(begin);
    return at == std::string::npos ? sentence : sentence.substr(at + begin.size());
  }

  World world;
  std::unique_ptr<SharedMemory> memory;
  Process* one;
  std::unique_ptr<RawClient> client;
};

}  // namespace

TEST_CASE("a liar lends nothing that is not in its memory") {
  const auto answer = [](const std::function<void(Liar&)>& lie, bool offers = true) {
    Liar liar;
    if (offers) liar.send(OfferFrame{liar.memory->name()});
    lie(liar);
    return liar.fault();
  };
  const std::uint64_t bytes = (SharedMemory::reserve().value())->name().bytes;
  CHECK(answer([](Liar& liar) { liar.lend(4096, 100); }, false) ==
        "a lent chunk, though none of its memory is mapped");
  CHECK(answer([&](Liar& liar) { liar.lend(bytes - 396, 100); }) ==
        fmt::format("a lent chunk of 100 values at byte {} of {}", bytes - 396, bytes));
  CHECK(answer([&](Liar& liar) {
          liar.lend(~std::uint64_t{0} - 3, 100);
        }).starts_with("a lent chunk of 100 values at byte 18446744073709551612"));
  CHECK(answer([](Liar& liar) {
          liar.lend(4098, 100);
        }).starts_with("a lent chunk of 100 values at byte 4098"));
  CHECK(answer([](Liar& liar) { liar.lend(4096, 0); }) == "a lent chunk without values");
  CHECK(answer([](Liar& liar) { liar.lend(4096, 19'000, 1001); }) ==
        "a chunk of 19000 values at 1001 of a message of 20000");
  CHECK(answer([](Liar& liar) {
          liar.send(LentFrame{{0, 0, 0, 2 << 20}}, encode_place({4096, (1 << 20) + 1}));
        }) == "a lent chunk of 1048577 values, where 4194304 bytes are the limit");
  CHECK(answer([](Liar& liar) {
          liar.lend(4096, ~std::uint64_t{0} / 2);
        }).starts_with("a chunk of 9223372036854775807 values at 0"));
  CHECK(answer([](Liar& liar) { liar.send(LentFrame{{0, 0, 0, 100}}, "short"); }) ==
        "it sent a lent chunk with a payload of 5 bytes, where 16 say its place");
  CHECK(answer([](Liar& liar) {
          liar.one->memory.hold = true;
          for (std::size_t k = 0; k <= Lending::kMaxChunks; ++k) liar.lend(4096, 1, 0);
        }) == "more than 16384 lent chunks");
  CHECK(answer([](Liar& liar) { liar.send(OfferFrame{liar.memory->name()}); }) ==
        "it offered its memory twice");
  CHECK(answer([](Liar& liar) {
          liar.send(MappedFrame{});
          liar.send(MappedFrame{});
        }) == "it mapped what was not offered");
  CHECK(answer([](Liar& liar) { liar.send(AckFrame{1, 0, 2}); }) ==
        "it released 2 frames, of 1 that it has acknowledged and 0 that it had released "
        "before");
}

TEST_CASE("an offer of something else is not accepted, and rows are then sent") {
  Liar liar;
  SharedMemoryName name = liar.memory->name();
  name.token ^= 1;
  liar.send(OfferFrame{name});
  liar.lend(4096, 100);
  CHECK(liar.fault() == "a lent chunk, though none of its memory is mapped");
}

TEST_CASE(
    "a lent chunk keeps its lease until the other end releases it, in whatever order it hears") {
  HashMemo hashes;
  LentChunks lent;
  SendQueue queue(hashes, lent);
  const auto memory = SharedMemory::reserve().value();
  SharedRow row(*memory, 20'000, 1);
  const auto push = [&] {
    ++row.leases;
    FrameHeader header = frame_header(0, 1, LentFrame{{0, 0, 0, row.values.size()}});
    header.payload_bytes = sizeof(LentPlace);
    queue.push(header, {{0, 1, 0, 0, 0, row.values.size()}, row.values, gossip::Lease(row)},
               encode_place({4096, row.values.size()}));
  };
  const auto write_all = [&queue] {
    while (!queue.gather().empty()) queue.written(kFrameHeaderBytes + sizeof(LentPlace));
  };
  for (int k = 0; k < 4; ++k) push();
  write_all();
  row.waited_for = true;
  CHECK(queue.delays_writer());
  CHECK_FALSE(queue.copy_for_writers());  // it cannot be copied: the other end reads it here
  CHECK(queue.copied_bytes() == 0);
  CHECK(queue.on_ack(2));
  CHECK(lent.release(1));
  CHECK(row.leases == 3);
  CHECK(lent.count() == 3);
  CHECK_FALSE(lent.release(0));
  // The connection breaks; the other end has received a third frame, and reads it no more.
  queue.interrupt();
  CHECK(queue.resume(3));
  CHECK(lent.release(3));
  CHECK(row.leases == 1);
  write_all();
  CHECK(queue.on_ack(4));
  CHECK(queue.fully_acked());
  CHECK_FALSE(lent.empty());
  CHECK(queue.delays_writer());
  CHECK(lent.release(4));
  CHECK(lent.empty());
  CHECK(row.leases == 0);
  CHECK(lent.count() == 0);
}
