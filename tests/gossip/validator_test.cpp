// The validator alone: which values may leave a peer and enter one.
#include "gossip/process/validator.hpp"

#include <limits>

#include "tests/gossip/test_util.hpp"

using namespace gossamer;
using namespace gossamer::gossip;

namespace {

struct Validating {
  VirtualScheduler scheduler;
  InlineExecutor executor;
  gpu::CpuDevice device{1};
  Compute compute{scheduler, executor, device, nullptr, StepTimes{}};
  ExchangeOptions options;
  std::set<int> hosted{3};
  std::vector<Error> errors;
  FaultReporter faults{hosted, [this](Error error) { errors.push_back(std::move(error)); }};
  Validator validator{options, compute, hosted, faults};
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("values that are not finite, or beyond the bound, are refused by their place") {
  Validating v;
  v.options.largest_value = 100;
  for (const float wrong : {kNan, kInfinity, -kInfinity, 100.1F, -101.0F}) {
    std::vector<float> values(8, 100.0F);
    const ChunkHeader in{1, 3, 4, 0, 16, 32}, out{3, 1, 4, 0, 16, 32};
    CHECK(v.validator.validate_incoming(in, values).ok());
    CHECK(v.validator.validate_outgoing_chunk(out, values).ok());
    values[5] = wrong;
    const Status incoming = v.validator.validate_incoming(in, values);
    REQUIRE_FALSE(incoming.ok());
    CHECK(incoming.error().kind == ErrorKind::lost_peer);
    CHECK(incoming.error().message.find("peer 1 broke the protocol towards peer 3") == 0);
    CHECK(incoming.error().message.find("value 21 ") != std::string::npos);
    const Status outgoing = v.validator.validate_outgoing_chunk(out, values);
    REQUIRE_FALSE(outgoing.ok());
    CHECK(outgoing.error().kind == ErrorKind::diverged);
    CHECK(outgoing.error().message.find("peer 3 diverged: in round 4") == 0);
  }
}

TEST_CASE("an invalid message is a fault of its sender, once, and is not sent") {
  Validating v;
  std::vector<float> values(8, 1.0F);
  const std::vector<int> to{1};
  CHECK(v.validator.validate_outgoing(3, 0, 0, values, to));
  CHECK(v.validator.validate_before_coding(3, 0, 0, values, to));
  values[0] = kNan;
  CHECK_FALSE(v.validator.validate_outgoing(3, 0, 0, values, to));
  CHECK_FALSE(v.validator.validate_before_coding(3, 1, 0, values, to));
  REQUIRE(v.errors.size() == 1);
  CHECK(v.errors[0].kind == ErrorKind::diverged);
}

TEST_CASE("a violation by a peer of this process is a fault; by another one it loses the link") {
  Validating v;
  std::vector<int> lost;
  v.faults.on_protocol_violation = [&](int, int there, const Error&) { lost.push_back(there); };
  v.faults.protocol_violation({1, 3}, {ErrorKind::lost_peer, "of another process"});
  CHECK(lost == std::vector<int>{1});
  CHECK(v.errors.empty());
  v.faults.protocol_violation({3, 3}, {ErrorKind::lost_peer, "of this process"});
  CHECK(v.errors.size() == 1);
}
