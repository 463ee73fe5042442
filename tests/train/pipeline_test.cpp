// The order of microbatches in a pipeline, and the time that a batch takes in it.
#include "train/split/pipeline.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

using namespace gossamer::train;

namespace {

/// Equal parts, of which all together take 1 second for forward and 2 for backward passes, and a
/// message between neighbours in each direction.
PipelineCosts equal_parts(int parts, double bytes = 0) {
  PipelineCosts costs;
  costs.forward.assign(static_cast<std::size_t>(parts), 1.0 / parts);
  costs.backward.assign(static_cast<std::size_t>(parts), 2.0 / parts);
  for (int p = 0; p + 1 < parts; ++p) {
    costs.messages.push_back({p, p + 1, bytes});
    costs.messages.push_back({p + 1, p, bytes});
  }
  return costs;
}

}  // namespace

TEST_CASE(
    "a pipeline's order: each pass once, inputs before, and a bound on microbatches in flight") {
  for (int parts = 1; parts <= 6; ++parts)
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      CAPTURE(parts);
      CAPTURE(microbatches);
      const std::vector<PipelineStep> order = pipeline_order(parts, microbatches);
      REQUIRE(order.size() == static_cast<std::size_t>(2 * parts * microbatches));
      std::vector<int> forward(static_cast<std::size_t>(parts)), backward = forward;
      std::vector<std::vector<PipelineStep>> own(static_cast<std::size_t>(parts));
      for (const PipelineStep& step : order) {
        const auto p = static_cast<std::size_t>(step.part);
        own[p].push_back(step);
        if (step.is_backward) {
          CHECK(step.microbatch == backward[p]++);  // ascending: sums of gradients have one order
          CHECK(forward[p] > step.microbatch);
          if (step.part + 1 < parts) CHECK(backward[p + 1] > step.microbatch);
        } else {
          CHECK(step.microbatch == forward[p]++);
          if (step.part > 0) CHECK(forward[p - 1] > step.microbatch);
        }
        CHECK(forward[p] - backward[p] <= in_flight(step.part, parts, microbatches));
      }
      for (int p = 0; p < parts; ++p)
        CHECK(own[static_cast<std::size_t>(p)] == worker_order(p, parts, microbatches));
    }
}

TEST_CASE("one forward, one backward: the order of three workers") {
  const auto text = [](int part) {
    std::string letters;
    for (const PipelineStep& step : worker_order(part, 3, 4))
      letters += (step.is_backward ? 'b' : 'f') + std::to_string(step.microbatch);
    return letters;
  };
  CHECK(text(0) == "f0f1f2b0f3b1b2b3");
  CHECK(text(1) == "f0f1b0f2b1f3b2b3");
  CHECK(text(2) == "f0b0f1b1f2b2f3b3");
}

TEST_CASE("equal parts with fast links idle as the formula says") {
  for (int parts = 1; parts <= 8; ++parts)
    for (const int microbatches : {1, 2, 5, 8, 32}) {
      const PipelineTime time = pipeline_time(equal_parts(parts), microbatches);
      const double rounds = static_cast<double>(microbatches + parts - 1) / microbatches;
      CHECK(time.seconds == doctest::Approx(3.0 / parts * rounds));
      CHECK(time.idle == doctest::Approx(pipeline_bubble(parts, microbatches)));
    }
}

TEST_CASE("messages that take time delay a pipeline as computed by hand") {
  // One microbatch: forward and back through two parts, with a message each way.
  PipelineCosts costs = equal_parts(2, 1000);
  costs.latency = 0.25, costs.link = 2000;
  CHECK(pipeline_time(costs, 1).seconds == doctest::Approx(3 + 2 * (0.25 + 0.5)));
  // The link is the bottleneck: the second part waits for eight transfers of 1/8 s each, one behind
  // the other, and the last microbatch goes back.
  costs = equal_parts(2, 1000);
  for (double& seconds : costs.forward) seconds = 0;
  for (double& seconds : costs.backward) seconds = 0;
  costs.link = 1000;
  CHECK(pipeline_time(costs, 8).seconds == doctest::Approx(1 + 1.0 / 8));
  // The part in the middle sends both ways over one uplink: 2 × 1000 bytes, and those of its
  // neighbours meet on its downlink.
  costs = equal_parts(3, 1000);
  for (double& seconds : costs.forward) seconds = 0;
  for (double& seconds : costs.backward) seconds = 0;
  costs.uplink = 1000;
  CHECK(pipeline_time(costs, 100).seconds >= 2);
  CHECK(pipeline_time(costs, 100).seconds < 2.1);
  std::swap(costs.uplink, costs.downlink);
  CHECK(pipeline_time(costs, 100).seconds >= 2);
  CHECK(pipeline_time(costs, 100).seconds < 2.1);
  // A part whose outputs no other takes sends nothing.
  costs = equal_parts(3);
  costs.messages.clear();
  CHECK(pipeline_time(costs, 4).seconds > 0);
}
