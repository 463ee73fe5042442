// Rows in the memory of a GPU, which checks them itself: when it does, and what follows.
#include "tests/gossip/test_network.hpp"

using namespace gossamer;
using namespace gossamer::gossip;
using namespace gossamer::gossip::testing;

TEST_CASE("what a GPU has found ends records, and rows of others on their way out") {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  CountingDevice gpu(1, true);
  Compute compute(scheduler, executor, gpu, nullptr, StepTimes{});
  const auto matrices = schedule("path", 8);
  std::string fault;
  Exchange exchange(scheduler, compute, *matrices, {.chunk_values = 100, .channels = {{10}, {10}}},
                    {4, 5, 7}, [&](Error error) { fault = error.message; });
  std::vector<float> row(10, 1), bad = row;
  bad[9] = 2e18F;
  const std::vector<int> near{6, 7}, far{2, 6};
  const ChunkHeader out{5, 6, 1001, 0, 0, 10};
  const auto serve = [&] { compute.run_pending(Time(0)); };
  CHECK(exchange.validator().validate_outgoing(4, 999, 1, row, near));
  CHECK(exchange.validator().validate_outgoing(
      4, 1000, 1, bad,
      far));  // for other processes only: judged where it is staged
  serve();
  CHECK(exchange.endpoint(5).flush_checks().ok());
  CHECK(exchange.validator().validate_outgoing(4, 1000, 1, bad, near));
  CHECK(exchange.validator().validate_outgoing_chunk(out, row).ok());  // nothing is known yet
  CHECK(exchange.validator().validate_before_coding(7, 1001, 0, bad, far));
  const std::string sentence =
      "peer 4 diverged: in round 1000, a value of its row is not finite, or beyond "
      "algorithm.largest_value = 1e+18 (channel 1), "
      "and the run ends";
  REQUIRE_FALSE(exchange.endpoint(5).flush_checks().ok());
  CHECK(exchange.endpoint(5).flush_checks().error().message == sentence);
  CHECK(exchange.endpoint(5).flush_checks().error().kind == ErrorKind::diverged);
  REQUIRE_FALSE(exchange.validator().validate_outgoing_chunk(out, row).ok());
  CHECK(exchange.validator().validate_outgoing_chunk(out, row).error().message == sentence);
  CHECK(fault == "");
  CHECK_FALSE(exchange.validator().validate_outgoing(7, 1001, 0, bad, near));
  serve();
  CHECK(fault == sentence);
}

TEST_CASE(
    "a GPU checks a row before it copies it for neighbours, which may be on another "
    "GPU") {
  struct Gpu final : gpu::CpuDevice {
    Gpu() : gpu::CpuDevice(1) {}
    bool host_accessible() const override { return false; }
    void execute(const gpu::Requests& requests) override {
      if (std::holds_alternative<std::span<const gpu::RangeCheckRequest>>(requests))
        asked += "check ";
      if (std::holds_alternative<std::span<const gpu::CopyRequest<float>>>(requests))
        asked += "copy ";
      gpu::CpuDevice::execute(requests);
    }
    std::string asked;
  };
  for (const Policy policy : {Policy::deadline, Policy::stale, Policy::async}) {
    CAPTURE(static_cast<int>(policy));
    VirtualScheduler scheduler;
    InlineExecutor executor;
    Gpu gpu;
    Compute compute(scheduler, executor, gpu, nullptr, StepTimes{});
    const auto matrices = schedule("path", 2);
    Exchange exchange(scheduler, compute, *matrices,
                      {.policy = policy, .chunk_values = 10, .channels = {{10, true}}}, {0, 1},
                      [](const Error&) {});
    SimulatedPort port;
    SimulatedLink link(scheduler, exchange, {}, port, port, [](const Error&) {});
    exchange.connect(0, 1, link);
    Rows<float> rows(2, 10);
    const std::vector<RowSpec> specs{{.name = "x", .mixed = true}};
    Node node(exchange, 0, 2, specs, {{rows.row(0)}, {rows.row(1)}, {}, {}});
    task<void> mixing = node.mix(0, 0);
    mixing.start(scheduler);
    scheduler.run();
    CHECK(gpu.asked.find("check copy copy ") == 0);
    exchange.endpoint(1).messenger().discard_unread();
  }
}
