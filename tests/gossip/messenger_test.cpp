// The messenger alone: one sender and one receiver, connected by a link that delivers at once.
#include <numeric>

#include "gossip/messaging/messenger.hpp"
#include "tests/gossip/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

namespace {

constexpr Channel kChannel = 0;

/// Keeps the chunks that are sent.
struct RecordingLink final : Link {
  void send(Chunk chunk) override { chunks.push_back(std::move(chunk)); }
  std::vector<Chunk> chunks;
};

/// The services of a process that hosts peer 0; its links to peers 1 and 2 keep the chunks.
struct Process {
  explicit Process(std::size_t chunk_values = 4) {
    options.chunk_values = chunk_values;
    for (const int to : {1, 2}) links.connect(0, to, sent[to]);
  }
  /// Leases of the messenger's copies end before the messenger.
  ~Process() { sent.clear(); }

  Chunk chunk(int from, Round t, std::uint64_t offset, std::uint64_t total,
              std::span<const float> values) {
    return Chunk({from, 0, t, kChannel, offset, total}, values, Lease());
  }

  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  std::unique_ptr<topology::MixingSchedule> matrices = schedule("complete", 3);
  ExchangeOptions options;
  std::set<int> hosted{0};
  std::vector<std::string> errors;
  LinkRegistry links{hosted};
  FaultReporter faults{hosted, [this](const Error& error) { errors.push_back(error.message); }};
  Validator validator{options, compute, hosted, faults};
  ZeroRows zeros{device};
  ProcessContext context{scheduler, compute, *matrices, options, links, faults, validator, zeros};
  std::map<int, RecordingLink> sent;
  Messenger messenger{context, 0};
};

struct OwnedRow {
  OwnedRow(Scheduler& scheduler, std::size_t length) : values(length) {
    std::iota(values.begin(), values.end(), 0.0F);
    row.attach(scheduler, values);
  }
  std::vector<float> values;
  LeasedRow row;
};

}  // namespace

TEST_CASE("a message goes out in chunks, in turn to each receiver, and is leased until they end") {
  Process process(4);
  OwnedRow own(process.scheduler, 10);
  const std::vector<int> to{1, 2};
  process.messenger.send(to, 7, kChannel, own.values, own.row);
  for (const int receiver : to) {
    auto& chunks = process.sent[receiver].chunks;
    REQUIRE(chunks.size() == 3);
    for (std::size_t k = 0; k < chunks.size(); ++k) {
      CHECK(chunks[k].header.round == 7);
      CHECK(chunks[k].header.offset == 4 * k);
      CHECK(chunks[k].header.total == 10);
      CHECK(chunks[k].values.data() == own.values.data() + 4 * k);  // nothing is copied
    }
    CHECK(chunks.back().values.size() == 2);
  }
  CHECK(own.row.leased());
  process.sent.clear();
  CHECK_FALSE(own.row.leased());
}

TEST_CASE("an invalid value is a fault, and nothing of its message is sent") {
  Process process;
  OwnedRow own(process.scheduler, 10);
  own.values[9] = std::numeric_limits<float>::infinity();
  const std::vector<int> to{1};
  process.messenger.send(to, 0, kChannel, own.values, own.row);
  CHECK(process.sent[1].chunks.empty());
  REQUIRE(process.errors.size() == 1);
  CHECK(process.errors[0].find("peer 0 diverged") == 0);
}

TEST_CASE("a copy may be overwritten at once, and is used again when no lease on it is out") {
  Process process(16);
  std::vector<float> values(10, 1.0F);
  process.messenger.send_copy(1, 0, kChannel, values);
  values.assign(10, 2.0F);
  process.messenger.send_copy(1, 1, kChannel, values);
  auto& chunks = process.sent[1].chunks;
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0].values[0] == 1.0F);
  CHECK(chunks[1].values[0] == 2.0F);
  const float* first = chunks[0].values.data();
  chunks.erase(chunks.begin());
  process.messenger.send_copy(1, 2, kChannel, values);
  CHECK(chunks.back().values.data() == first);
}

TEST_CASE("a message is received whole from its chunks, and added or put in place") {
  Process process;
  const std::vector<float> values{1, 2, 3, 4, 5};
  std::vector<float> into(5, 10.0F);
  task<bool> receiving = process.messenger.receive_whole(1, 3, kChannel, into, Combine::add);
  receiving.start(process.scheduler);
  CHECK(process.messenger.deliver(process.chunk(1, 3, 0, 5, std::span(values).first(2))).ok());
  process.scheduler.run();
  CHECK_FALSE(receiving.done());
  CHECK(process.messenger.deliver(process.chunk(1, 3, 2, 5, std::span(values).subspan(2))).ok());
  process.scheduler.run();
  REQUIRE(receiving.done());
  CHECK(receiving.result());
  CHECK(into == std::vector<float>{11, 12, 13, 14, 15});
}

TEST_CASE("the messages of any peer are received in the order in which they began to arrive") {
  Process process;
  const std::vector<float> values(2, 1.0F);
  CHECK(process.messenger.deliver(process.chunk(2, 9, 0, 2, values)).ok());
  CHECK(process.messenger.deliver(process.chunk(1, 4, 0, 2, values)).ok());
  for (const auto& [from, round] : {std::pair{2, Round{9}}, std::pair{1, Round{4}}}) {
    const auto next = process.messenger.peek_any(kChannel);
    REQUIRE(next.has_value());
    CHECK(next->from == from);
    std::vector<float> into(2);
    task<MessageOrigin> receiving = process.messenger.receive_any(kChannel, into, Combine::replace);
    receiving.start(process.scheduler);
    process.scheduler.run();
    REQUIRE(receiving.done());
    CHECK(receiving.result().round == round);
  }
  CHECK_FALSE(process.messenger.peek_any(kChannel).has_value());
}

TEST_CASE("a lost link ends what waits for it, and messages begin anew when it is restored") {
  Process process;
  const std::vector<float> values(4, 1.0F);
  std::vector<float> into(4);
  task<bool> receiving = process.messenger.receive_whole(1, 0, kChannel, into, Combine::replace);
  receiving.start(process.scheduler);
  CHECK(process.messenger.deliver(process.chunk(1, 0, 0, 4, std::span(values).first(3))).ok());
  process.scheduler.run();
  process.messenger.close(1);
  process.scheduler.run();
  REQUIRE(receiving.done());
  CHECK_FALSE(receiving.result());
  process.messenger.reopen(1);
  CHECK_FALSE(
      process.messenger.deliver(process.chunk(1, 5, 3, 4, std::span(values).first(1))).ok());
  CHECK(process.messenger.deliver(process.chunk(1, 5, 0, 4, values)).ok());
  CHECK(process.messenger.unread_bytes() == kFrameOverheadBytes + 4 * sizeof(float));
  process.messenger.discard_unread();
  CHECK(process.messenger.unread_bytes() == 0);
}

TEST_CASE("a message of another round is a protocol violation, and its sender's inbox is closed") {
  Process process;
  std::vector<std::pair<int, int>> lost;
  process.faults.on_protocol_violation = [&](int here, int there, const Error&) {
    lost.push_back({here, there});
  };
  const std::vector<float> values(4, 1.0F);
  std::vector<float> into(4);
  CHECK(process.messenger.deliver(process.chunk(2, 6, 0, 4, values)).ok());
  task<bool> receiving = process.messenger.receive_whole(2, 5, kChannel, into, Combine::replace);
  receiving.start(process.scheduler);
  process.scheduler.run();
  CHECK_FALSE(receiving.done());
  CHECK(lost == std::vector<std::pair<int, int>>{{0, 2}});
  CHECK(process.errors.empty());
  process.messenger.discard_unread();
}

TEST_CASE("A worker's slices are those of the model's row, as far as it has them") {
  constexpr std::size_t length = 1000;
  // Columns of a matrix, a tensor that is missing, and a whole one.
  std::vector<RowPart::Run> runs;
  std::vector<std::size_t> held;  // by place in the worker's row: place in the model's
  const auto add = [&](std::size_t whole, std::size_t values) {
    runs.push_back({whole, held.size(), values});
    for (std::size_t k = 0; k < values; ++k) held.push_back(whole + k);
  };
  for (std::size_t row = 0; row < 20; ++row) add(7 + 20 * row, 9);
  add(700, 300);
  const RowPart part(length, runs);
  for (const int n : {1, 2, 3, 7, 64, 100}) {
    std::size_t next = 0;
    for (int k = 0; k < n; ++k) {
      const RowSlice whole = row_slice(length, k, n), own = part.slice(k, n);
      CHECK(own.begin == next);
      next = own.end;
      for (std::size_t place = own.begin; place < own.end; ++place) {
        CHECK(held[place] >= whole.begin);
        CHECK(held[place] < whole.end);
      }
      CHECK(part.slice(k - n, n).begin == own.begin);
      CHECK(part.slice(k + n, n).end == own.end);
    }
    CHECK(next == held.size());
  }
}

TEST_CASE("A part that holds the whole row has its slices") {
  const RowPart part(333, {{0, 0, 100}, {100, 100, 233}});
  for (int k = 0; k < 5; ++k) {
    CHECK(part.slice(k, 5).begin == row_slice(333, k, 5).begin);
    CHECK(part.slice(k, 5).end == row_slice(333, k, 5).end);
  }
}
