// Chunks between a GPU and the network: order, bounds, and closing while copies are under way. The
// device of this test completes a copy only when the test asks for it.
#include <doctest/doctest.h>

#include <deque>
#include <numeric>
#include <thread>
#include <vector>

#include "gpu/cpu_device.hpp"
#include "peer/runtime/staging.hpp"

using namespace gossamer;
using namespace gossamer::peer;

namespace {

class SlowDevice final : public gpu::CpuDevice {
 public:
  SlowDevice() : gpu::CpuDevice(1) {}
  void begin_download(void* host, const void* device, std::size_t bytes,
                      gpu::CopyDone done) override {
    if (fails) throw std::runtime_error("the GPU failed");
    copies.push_back([=, this, done = std::move(done)](const Status& fault) {
      if (fault.ok()) gpu::CpuDevice::begin_download(host, device, bytes, done);
      else done(fault);
    });
  }
  void begin_upload(void* device, const void* host, std::size_t bytes,
                    gpu::CopyDone done) override {
    if (fails) throw std::runtime_error("the GPU failed");
    copies.push_back([=, this, done = std::move(done)](const Status& fault) {
      if (fault.ok()) gpu::CpuDevice::begin_upload(device, host, bytes, done);
      else done(fault);
    });
  }
  void copy_one(const Status& fault = {}) {
    const auto copy = std::move(copies.front());
    copies.pop_front();
    copy(fault);
  }
  std::deque<std::function<void(const Status& fault)>> copies;
  bool fails = false;  ///< no copy begins
};

/// A row that counts its leases.
struct Row final : gossip::BufferOwner {
  explicit Row(std::size_t length) : values(length) {
    std::iota(values.begin(), values.end(), 1.0F);
  }
  void on_lease_end() override { --readers; }
  gossip::Chunk chunk(std::size_t offset, std::size_t count) {
    ++readers;
    return gossip::Chunk({0, 1, 0, 0, offset, values.size()},
                         std::span(values).subspan(offset, count), gossip::Lease(*this));
  }
  std::vector<float> values;
  int readers = 0;
};

/// The receivers at both ends: they store the chunks that arrive.
struct End final : gossip::Link, gossip::Receiver {
  void send(gossip::Chunk chunk) override { chunks.push_back(std::move(chunk)); }
  Status deliver(gossip::Chunk chunk) override {
    if (refuse) return Error{ErrorKind::lost_peer, "refused"};
    chunks.push_back(std::move(chunk));
    return {};
  }
  std::deque<gossip::Chunk> chunks;
  bool refuse = false;
};

struct Way {
  /// Callbacks of copies, until the scheduler runs them.
  void run_scheduler() {
    for (; !posted.empty(); posted.pop_front()) posted.front()();
  }
  void copy_and_run() {
    device.copy_one();
    run_scheduler();
  }

  SlowDevice device;
  End end;
  std::deque<std::function<void()>> posted;
  std::string fault, breach;
  /// Validates chunks of both directions in host memory.
  std::function<Status(const gossip::Chunk&)> validate = [](const gossip::Chunk&) {
    return Status();
  };
  Staging staging{
      device, end,
      Staging::Hooks{
          .post = [this](std::function<void()> report) { posted.push_back(std::move(report)); },
          .on_protocol_violation =
              [this](const gossip::ChunkHeader& header, const Error& why) {
                breach = fmt::format("{} to {}: {}", header.from, header.to, why.message);
              },
          .validate_incoming = [this](const gossip::Chunk& chunk) { return validate(chunk); },
          .validate_outgoing = [this](const gossip::Chunk& chunk) { return validate(chunk); },
          .on_fault = [this](const Error& error) { fault = error.message; }}};
};

constexpr std::size_t kChunks = 2 * Staging::kWindow + 1;

}  // namespace

TEST_CASE(
    "outgoing chunks arrive complete and in order, at most a window at a time, and a row's lease "
    "ends with its copy") {
  Way way;
  Row row(3 * kChunks);
  gossip::Link& link = way.staging.link(0, 1, way.end);
  CHECK(way.staging.idle());
  for (std::size_t i = 0; i < kChunks; ++i) link.send(row.chunk(3 * i, 3));
  CHECK_FALSE(way.staging.idle());
  CHECK(way.device.copies.size() == Staging::kWindow);
  for (std::size_t i = 0; i < Staging::kWindow; ++i) way.copy_and_run();
  CHECK(way.device.copies.empty());  // the network holds all buffers
  CHECK(row.readers == static_cast<int>(kChunks - Staging::kWindow));
  std::vector<float> sent;
  while (!way.staging.idle() || !way.end.chunks.empty()) {
    if (!way.device.copies.empty()) way.copy_and_run();
    REQUIRE_FALSE(way.end.chunks.empty());
    const gossip::Chunk chunk = std::move(way.end.chunks.front());
    way.end.chunks.pop_front();
    CHECK(chunk.header.offset == sent.size());
    CHECK(chunk.values.data() != row.values.data() + sent.size());
    sent.insert(sent.end(), chunk.values.begin(), chunk.values.end());
  }
  CHECK(sent == row.values);
  CHECK(row.readers == 0);
}

TEST_CASE(
    "an incoming chunk is on the GPU before it is delivered, and its network buffer is released "
    "then") {
  Way way;
  Row row(3 * kChunks);
  for (std::size_t i = 0; i < kChunks; ++i) REQUIRE(way.staging.deliver(row.chunk(3 * i, 3)).ok());
  CHECK(way.end.chunks.empty());
  for (std::size_t i = 0; i < Staging::kWindow; ++i) way.copy_and_run();
  CHECK(row.readers == static_cast<int>(kChunks - Staging::kWindow));
  std::vector<float> delivered;
  while (row.readers > 0 || !way.end.chunks.empty()) {
    if (!way.device.copies.empty()) way.copy_and_run();
    REQUIRE_FALSE(way.end.chunks.empty());
    const gossip::Chunk chunk = std::move(way.end.chunks.front());
    way.end.chunks.pop_front();
    delivered.insert(delivered.end(), chunk.values.begin(), chunk.values.end());
  }
  CHECK(delivered == row.values);
}

TEST_CASE("a chunk that the exchange refuses is reported with its header and the reason") {
  Way way;
  Row row(4);
  way.end.refuse = true;
  REQUIRE(way.staging.deliver(row.chunk(0, 4)).ok());
  way.copy_and_run();
  CHECK(way.breach == "0 to 1: refused");
  CHECK(way.fault.empty());
  CHECK(row.readers == 0);
}

TEST_CASE(
    "chunks are validated: incoming ones before they are copied to the GPU, outgoing ones before "
    "the network gets them") {
  Way way;
  Row row(9);
  way.validate = [](const gossip::Chunk& chunk) {
    return chunk.values[0] == 4 ? Status(Error{ErrorKind::diverged, "not this one"}) : Status();
  };
  CHECK(way.staging.deliver(row.chunk(0, 3)).ok());
  const Status refused = way.staging.deliver(row.chunk(3, 3));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message == "not this one");
  CHECK(way.device.copies.size() == 1);
  way.copy_and_run();
  CHECK(way.end.chunks.size() == 1);
  CHECK(row.readers == 0);

  gossip::Link& link = way.staging.link(0, 1, way.end);
  link.send(row.chunk(0, 3));
  link.send(row.chunk(3, 3));
  way.copy_and_run();
  CHECK(way.fault == "");
  way.copy_and_run();
  CHECK(way.fault == "not this one");
  CHECK(way.end.chunks.size() == 2);
  CHECK(row.readers == 0);
  way.end.chunks.clear();
}

TEST_CASE("a copy that a failed GPU does not begin is not waited for") {
  for (const bool outgoing : {true, false}) {
    Way way;
    Row row(6);
    gossip::Link& link = way.staging.link(0, 1, way.end);
    way.device.fails = true;
    if (outgoing) CHECK_THROWS_AS(link.send(row.chunk(0, 3)), std::runtime_error);
    else
      CHECK_THROWS_AS(static_cast<void>(way.staging.deliver(row.chunk(0, 3))), std::runtime_error);
    way.staging.close();
    CHECK(row.readers == 0);
  }
}

TEST_CASE("a lease that ends after a GPU has failed throws nothing, and the fault is reported") {
  Way way;
  Row row(3 * kChunks);
  gossip::Link& link = way.staging.link(0, 1, way.end);
  for (std::size_t i = 0; i < kChunks; ++i) link.send(row.chunk(3 * i, 3));
  way.copy_and_run();
  way.device.fails = true;
  way.end.chunks.clear();  // its buffer is free, and the next chunk waits for one
  CHECK(way.fault == "");
  while (!way.device.copies.empty()) way.copy_and_run();
  CHECK(way.fault == "the GPU failed");
  way.end.chunks.clear();
  way.staging.close();
  way.run_scheduler();
  CHECK(row.readers == 0);
}

TEST_CASE("a copy that a failed GPU ends with an error is a fault of the run, and goes nowhere") {
  for (const bool outgoing : {true, false}) {
    Way way;
    Row row(6);
    gossip::Link& link = way.staging.link(0, 1, way.end);
    if (outgoing) link.send(row.chunk(0, 3));
    else REQUIRE(way.staging.deliver(row.chunk(0, 3)).ok());
    way.device.copy_one(Error{ErrorKind::internal, "the GPU failed"});
    way.run_scheduler();
    CHECK(way.fault == "the GPU failed");
    CHECK(way.end.chunks.empty());
    way.staging.close();
    CHECK(row.readers == 0);
  }
}

TEST_CASE(
    "closing waits for copies that are under way, releases everything, and ignores later "
    "callbacks") {
  Way way;
  Row row(3 * kChunks);
  gossip::Link& link = way.staging.link(0, 1, way.end);
  for (std::size_t i = 0; i < kChunks; ++i) link.send(row.chunk(3 * i, 3));
  for (std::size_t i = 0; i < kChunks; ++i) REQUIRE(way.staging.deliver(row.chunk(3 * i, 3)).ok());
  way.copy_and_run();  // one buffer is at the network when all ends
  std::thread gpu([&] {
    while (!way.device.copies.empty()) way.device.copy_one();
  });
  way.staging.close();
  gpu.join();
  CHECK(row.readers == 0);
  CHECK(way.end.chunks.size() == 1);
  way.run_scheduler();
  CHECK(way.end.chunks.size() == 1);
  way.end.chunks.clear();  // comes back after the end
  CHECK(way.device.copies.empty());
}
