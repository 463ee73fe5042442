// Whole networks: joining in any order, carrying chunks, holding back, leaving.
#include <algorithm>

#include "tests/net/test_util.hpp"

using namespace gossamer;
using namespace gossamer::net;
using namespace gossamer::net::words;

TEST_CASE("a ring joins in any order, carries a row each way, and leaves") {
  const World::Pairs ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  std::vector<int> order = {0, 1, 2, 3};
  do {
    World world(4);
    for (int peer : order) world.add({peer}, ring);
    world.join();
    std::vector<Row> rows;
    for (int peer = 0; peer < 4; ++peer) rows.emplace_back(1000, static_cast<float>(peer));
    for (std::size_t i = 0; i < 4; ++i) {
      const int from = order[i];
      for (int to : {(from + 1) % 4, (from + 3) % 4})
        world.processes[i]->network->link(from, to).send(
            rows[static_cast<std::size_t>(from)].chunk(from, to));
    }
    world.run_until(
        [&] { return world.all([](Process& p) { return p.memory.headers.size() == 2; }); });
    world.leave();
    for (const Row& row : rows) CHECK(row.leases == 0);
    CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("figures arrive once and whole, and a link takes the next ones after that") {
  World world(2);
  Process& a = world.add({0}, {{0, 1}});
  std::vector<std::pair<std::uint64_t, std::string>> came;
  Process& b = world.add({1}, {{0, 1}});
  b.on_figures = [&came](const Figures& figures) -> Status {
    came.emplace_back(figures.frame.wish, figures.entries);
    return came.size() < 4 ? Status() : Error{ErrorKind::lost_peer, "it sent figures of no node"};
  };
  const auto offer = [&a](std::uint64_t wish, const std::string& entries) {
    bool asked = false;
    a.network->send_figures(0, 1, [&] {
      asked = true;
      return std::optional(Figures{{0, wish}, entries});
    });
    return asked;
  };
  CHECK_FALSE(offer(0, ""));
  world.join();
  const std::string largest(kMaxFiguresBytes, 'x');
  for (const std::uint64_t wish : {1, 2, 3}) {
    world.run_until([&] { return offer(wish, wish == 2 ? largest : ""); });
    CHECK_FALSE(offer(wish + 10, ""));  // before the other end has these
  }
  world.run_until([&] { return came.size() == 3; });
  CHECK(came[1] == std::pair(std::uint64_t{2}, largest));
  CHECK(came[2] == std::pair(std::uint64_t{3}, std::string()));
  a.network->send_figures(0, 1, [] { return std::optional<Figures>(); });
  world.run_until([&] { return offer(4, ""); });
  world.run_until([&] { return !b.faults.empty(); });
  CHECK(b.faults.front().message.find("broke the protocol: it sent figures of no node") !=
        std::string::npos);
}

TEST_CASE("chunks of many sizes arrive in order and intact, and their leases end") {
  World world(2);
  Process& a = world.add({0}, {{0, 1}});
  Process& b = world.add({1}, {{0, 1}});
  world.join();
  std::vector<std::size_t> sizes = {0,    1,     2,      3,       15, 16, 17, 4077,    4078,
                                    4079, 65536, 262144, 1 << 20, 5,  0,  1,  1 << 20, 7};
  std::vector<std::unique_ptr<Row>> rows;
  std::vector<float> sent;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rows.push_back(std::make_unique<Row>(sizes[i], static_cast<float>(i)));
    sent.insert(sent.end(), rows.back()->values.begin(), rows.back()->values.end());
    a.network->link(0, 1).send(rows.back()->chunk(0, 1, i));
  }
  world.run_until([&] { return b.memory.headers.size() == sizes.size(); });
  CHECK(b.memory.received == sent);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CHECK(b.memory.headers[i].round == i);
    CHECK(b.memory.headers[i].total == sizes[i]);
  }
  world.run_until(
      [&] { return std::ranges::all_of(rows, [](auto& row) { return row->leases == 0; }); });
  const std::uint64_t data =
      sent.size() * sizeof(float) + sizes.size() * gossip::kFrameOverheadBytes;
  CHECK(a.network->traffic(0).data_bytes_sent == data);
  CHECK(b.network->traffic(1).data_bytes_received == data);
  // The sessions add frames of their own, at most one after each long message.
  for (const std::uint64_t bytes :
       {a.network->traffic(0).bytes_sent, b.network->traffic(1).bytes_received}) {
    CHECK(bytes >= data + kHelloBytes);
    CHECK(bytes - data - kHelloBytes <= sizes.size() * kFrameHeaderBytes);
    CHECK((bytes - data - kHelloBytes) % kFrameHeaderBytes == 0);
  }
  world.leave();
}

TEST_CASE(
    "an all-gather spreads the knowledge of each process step by step; chunks are delivered after "
    "release_chunks()") {
  const World::Pairs path = {{0, 1}, {1, 2}, {2, 3}};
  World world(4);
  for (int peer = 0; peer < 4; ++peer) world.add({peer}, path);
  world.join();
  std::vector<int> known{4, 7, 2, 9}, merged(4);
  for (std::size_t i = 0; i < 4; ++i) {
    AllGather gather;
    gather.steps = 3;
    gather.contribution = [&known, i] { return std::to_string(known[i]); };
    gather.merge = [&known, &merged, i](int here, int there, const std::string& contribution) {
      CHECK(here == static_cast<int>(i));
      CHECK(std::abs(there - here) == 1);
      known[i] = std::max(known[i], std::stoi(contribution));
      ++merged[i];
      return Status();
    };
    world.processes[i]->network->begin_all_gather(std::move(gather));
  }
  world.run_until([&] { return world.all([](Process& p) { return p.network->all_gathered(); }); });
  CHECK(known == std::vector<int>{9, 9, 9, 9});
  CHECK(merged == std::vector<int>{3, 6, 6, 3});
  Row row(100);
  Process &one = *world.processes[1], &two = *world.processes[2];
  one.network->release_chunks();
  one.network->link(1, 2).send(row.chunk(1, 2));
  two.network->link(2, 1).send(row.chunk(2, 1));
  world.run_until([&] { return one.memory.headers.size() == 1; });
  CHECK(two.memory.headers.empty());
  two.network->release_chunks();
  world.run_until([&] { return two.memory.headers.size() == 1; });
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty() && p.lines.empty(); }));
}

TEST_CASE("a goodbye is received while chunks are held, and the held chunks are dropped") {
  World world(2);
  Process& a = world.add({0}, {{0, 1}});
  world.add({1}, {{0, 1}});
  world.join();
  world.all_gather();
  Row row(100);
  a.network->link(0, 1).send(row.chunk(0, 1));
  world.leave();
  CHECK(world.all(
      [](Process& p) { return p.faults.empty() && p.lines.empty() && p.memory.headers.empty(); }));
}

TEST_CASE("the reason of an abort is received behind held chunks, although its sender is gone") {
  World world(2);
  world.options.failure_timeout = 0.1;
  Process &a = world.add({0}, {{0, 1}}), &b = world.add({1}, {{0, 1}});
  world.join();
  world.all_gather();
  Row row(100);
  const std::uint64_t before = b.network->traffic(1).bytes_sent;
  b.network->link(1, 0).send(row.chunk(1, 0));
  world.run_until([&] { return b.network->traffic(1).bytes_sent >= before + 400; });
  b.network->abort({ErrorKind::interrupted, "peer 1 was stopped"});
  b.network->begin_leave();
  bool over = false;
  world.scheduler.after(400ms, [&] { over = true; });
  world.run_until([&] { return over; });
  world.kill(b);
  world.scheduler.after(400ms, [&] { over = false; });
  world.run_until([&] { return !over; });
  CHECK(a.faults.empty());
  a.network->release_chunks();
  world.run_until([&] { return !a.faults.empty(); });
  CHECK(a.faults.front().message == "peer 1 was stopped");
}

TEST_CASE(
    "a contribution that makes no sense, or that no step waits for, ends the run and names its "
    "sender") {
  for (const bool awaited : {true, false}) {
    World world(2);
    Process &a = world.add({0}, {{0, 1}}), &b = world.add({1}, {{0, 1}});
    world.join();
    const auto all_gather_of = [](int steps, bool understands) {
      AllGather made;
      made.steps = steps;
      made.contribution = [] { return std::string(kMaxContributionBytes, 'x'); };
      made.merge = [understands](int, int, const std::string& contribution) {
        return understands && contribution.size() == kMaxContributionBytes
                   ? Status()
                   : Status(Error{ErrorKind::lost_peer, "it sent nonsense"});
      };
      return made;
    };
    a.network->begin_all_gather(all_gather_of(awaited ? 1 : 2, true));
    b.network->begin_all_gather(all_gather_of(1, !awaited));
    world.run_until([&] { return !a.faults.empty() && !b.faults.empty(); });
    const std::string expected =
        awaited ? "broke the protocol: it sent nonsense"
                : "broke the protocol: it sent a contribution that no step waits for";
    CHECK(b.faults.front().message.find("peer 0") != std::string::npos);
    CHECK(b.faults.front().message.find(expected) != std::string::npos);
    CHECK(a.faults.front().kind == ErrorKind::lost_peer);
    world.leave();
  }
}

TEST_CASE("contributions of a process that died are not taken for those of its successor") {
  const World::Pairs path = {{0, 1}, {1, 2}};
  World world(3);
  const auto start = [&](int peer) -> Process& {
    Process& process = world.add({peer}, path);
    REQUIRE(process.network->start().ok());
    return process;
  };
  std::vector<std::string> merged;
  const auto begin = [&](Process& process, std::string says) {
    AllGather gather;
    gather.steps = 2;
    gather.contribution = [says = std::move(says)] { return says; };
    gather.merge = [&merged](int, int, const std::string& contribution) {
      merged.push_back(contribution);
      return Status();
    };
    process.network->begin_all_gather(std::move(gather));
  };
  Process& one = start(1);
  for (int life = 0; life < 3; ++life) {
    Process& zero = start(0);
    world.run_until([&] { return zero.network->joined(); });
    const std::uint64_t before = one.network->traffic(1).bytes_received;
    begin(zero, "dies");
    world.run_until(
        [&] { return one.network->traffic(1).bytes_received >= before + kFrameHeaderBytes + 4; });
    world.kill(zero);
  }
  Process &zero = start(0), &two = start(2);
  world.run_until([&] { return world.all([](Process& p) { return p.network->joined(); }); });
  merged.clear();
  for (Process* process : {&zero, &one, &two}) begin(*process, "lives");
  world.run_until([&] {
    return world.all([](Process& p) { return p.network->all_gathered() || !p.faults.empty(); });
  });
  CHECK(merged == std::vector<std::string>(8, "lives"));
  world.leave();
  CHECK(world.all([](Process& p) { return p.faults.empty(); }));
}

TEST_CASE("a peer that leaves before the run begins is named") {
  for (const bool before : {true, false}) {
    World world(2);
    Process &a = world.add({0}, {{0, 1}}), &b = world.add({1}, {{0, 1}});
    world.join();
    AllGather gather;
    gather.steps = 1;
    gather.contribution = [] { return std::string("here"); };
    gather.merge = [](int, int, const std::string&) { return Status(); };
    if (before) a.network->begin_all_gather(gather);
    b.network->begin_leave();
    if (!before) {
      world.run_until([&] { return a.leaves.size() == 1; });
      a.network->begin_all_gather(gather);
    }
    world.run_until([&] { return !a.faults.empty(); });
    CHECK(a.faults.front().message.find("peer 1 (127.0.0.1:") == 0);
    CHECK(a.faults.front().message.find("left before the run began") != std::string::npos);
    world.leave();
  }
}
