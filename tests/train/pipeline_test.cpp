// The order of microbatches in a pipeline, and the time that a batch takes in it.
#include "train/split/pipeline.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

using namespace gossamer::train;

namespace {

using Kind = PipelineCosts::Message::Kind;

/// Equal parts, of which all together take 1 second for forward and 2 for backward passes, and a
/// message between neighbours in each direction.
PipelineCosts equal_parts(int parts, double bytes = 0) {
  PipelineCosts costs;
  for (int p = 0; p < parts; ++p) costs.segments.push_back({p, p, 1.0 / parts, 2.0 / parts});
  for (int p = 0; p + 1 < parts; ++p) {
    costs.messages.push_back({p, p + 1, bytes, Kind::output});
    costs.messages.push_back({p + 1, p, bytes, Kind::gradient});
  }
  return costs;
}

void take_no_time(PipelineCosts& costs) {
  for (PipelineCosts::Segment& segment : costs.segments) segment.forward = segment.backward = 0;
}

/// Each pass once, inputs before, and a bound on microbatches in flight.
void check_order(const Pipeline& pipeline) {
  const int parts = pipeline.stages;
  const std::vector<PipelineStep> order = pipeline.order();
  REQUIRE(order.size() == static_cast<std::size_t>(2 * parts * pipeline.microbatches));
  std::vector<int> forward(static_cast<std::size_t>(parts)), backward = forward;
  std::vector<std::vector<PipelineStep>> own(static_cast<std::size_t>(parts));
  for (const PipelineStep& step : order) {
    const auto p = static_cast<std::size_t>(step.stage);
    own[p].push_back(step);
    if (step.is_backward) {
      CHECK(step.microbatch == backward[p]++);  // ascending: sums of gradients have one order
      CHECK(forward[p] > step.microbatch);
      if (step.stage + 1 < parts) CHECK(backward[p + 1] > step.microbatch);
    } else {
      CHECK(step.microbatch == forward[p]++);
      if (step.stage > 0) CHECK(forward[p - 1] > step.microbatch);
    }
    CHECK(forward[p] - backward[p] <= pipeline.in_flight(step.stage));
  }
  for (int p = 0; p < parts; ++p) CHECK(own[static_cast<std::size_t>(p)] == pipeline.order_of(p));
}

}  // namespace

TEST_CASE("a pipeline's order") {
  for (const bool is_eager : {false, true})
    for (int parts = 1; parts <= 6; ++parts)
      for (int microbatches = 1; microbatches <= 12; ++microbatches) {
        CAPTURE(is_eager);
        CAPTURE(parts);
        CAPTURE(microbatches);
        check_order({parts, microbatches, is_eager});
      }
}

TEST_CASE("one forward, one backward: the order of three stages") {
  const auto text = [](int part, bool is_eager = false) {
    std::string letters;
    for (const PipelineStep& step : Pipeline{3, 4, is_eager}.order_of(part))
      letters += (step.is_backward ? 'b' : 'f') + std::to_string(step.microbatch);
    return letters;
  };
  CHECK(text(0) == "f0f1f2b0f3b1b2b3");
  CHECK(text(1) == "f0f1b0f2b1f3b2b3");
  CHECK(text(2) == "f0b0f1b1f2b2f3b3");
  CHECK(text(0, true) == "f0f1f2f3b0b1b2b3");
  CHECK(text(1, true) == "f0f1f2b0f3b1b2b3");
  CHECK(text(2, true) == text(2));
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
  take_no_time(costs);
  costs.link = 1000;
  CHECK(pipeline_time(costs, 8).seconds == doctest::Approx(1 + 1.0 / 8));
  // The part in the middle sends both ways over one uplink: 2 × 1000 bytes, and those of its
  // neighbours meet on its downlink.
  costs = equal_parts(3, 1000);
  take_no_time(costs);
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

TEST_CASE("a message that waits for its link holds up no other link of its sender") {
  // Worker 0 sends to worker 1 for two seconds in each of two microbatches, and then a message
  // without bytes to worker 2, which worker 2 passes on to worker 3: two latencies.
  PipelineCosts costs;
  costs.segments = {{.worker = 0}, {.worker = 1}, {.worker = 0}, {.worker = 2}, {.worker = 3}};
  costs.messages = {{0, 1, 4000, Kind::output}, {2, 3, 0, Kind::output}, {3, 4, 0, Kind::output}};
  costs.latency = 10, costs.link = 1000;
  CHECK(pipeline_time(costs, 2).seconds == doctest::Approx(20));
  // Over one uplink the second of them waits for the second long one.
  costs.uplink = 1000;
  CHECK(pipeline_time(costs, 2).seconds == doctest::Approx(24));
}

TEST_CASE("workers that share a stage: each waits for what it takes, as computed by hand") {
  // Stage 0 of two workers: 0 computes segments 0 and 2, 1 computes segment 1, which takes the
  // output of 0 and gives one to 2; gradients go back.
  PipelineCosts costs;
  costs.segments = {{0, 0, 1, 2}, {0, 1, 3, 5}, {0, 0, 1, 1}};
  costs.messages = {{0, 1, 100, Kind::output},
                    {1, 2, 100, Kind::output},
                    {2, 1, 100, Kind::gradient},
                    {1, 0, 100, Kind::gradient}};
  CHECK(costs.stages() == 1);
  CHECK(costs.workers() == 2);
  CHECK(costs.bytes_sent(0) == 200);
  costs.latency = 0.5;
  const PipelineTime time = pipeline_time(costs, 1);
  CHECK(time.seconds == doctest::Approx(13 + 4 * 0.5));
  CHECK(time.idle == doctest::Approx(1 - 13.0 / (2 * 15)));
  // Two microbatches of half the work, one after the other.
  CHECK(pipeline_time(costs, 2).seconds == doctest::Approx(13 + 8 * 0.5));
}

TEST_CASE("more forward passes ahead hide the time of messages") {
  // A microbatch takes 1 forward and 1 backward in each of two stages, and 1 in a message. From
  // one pass of the first stage over it to the next microbatch in its place it takes 6: with two
  // places 3 a microbatch, and with three no more than a stage computes, 2.
  constexpr int kMicrobatches = 100;
  PipelineCosts costs = equal_parts(2);
  for (PipelineCosts::Segment& segment : costs.segments)
    segment.forward = segment.backward = kMicrobatches;
  costs.latency = 1;
  CHECK(pipeline_time(costs, kMicrobatches).seconds == doctest::Approx(3 * kMicrobatches + 2));
  costs.is_eager = true;
  CHECK(pipeline_time(costs, kMicrobatches).seconds == doctest::Approx(2 * kMicrobatches + 4));
}

TEST_CASE("a stage that sends its gradients first, as computed by hand") {
  // Forward takes 1 a microbatch, backward 2, of which the second stage does 1 after it has sent.
  PipelineCosts costs;
  costs.segments = {{.stage = 0, .worker = 0, .forward = 2, .backward = 4},
                    {.stage = 1, .worker = 1, .forward = 2, .backward = 4, .after_sending = 2}};
  costs.messages = {{0, 1, 100, Kind::output}, {1, 0, 100, Kind::gradient}};
  // Stage 1 computes from 1 to 7, and sends at 3 and 6. Stage 0 computes until 2, from 3 to 5, and
  // from 6 to 8.
  CHECK(pipeline_time(costs, 2).seconds == doctest::Approx(8));
  costs.segments[1].after_sending = 0;  // sends at 4 and 7
  CHECK(pipeline_time(costs, 2).seconds == doctest::Approx(9));
}

TEST_CASE("a slice goes on with the gradient of another, and both compute while it travels") {
  // Worker 1 has segment 0, worker 0 segment 1: slices of one layer. The backward pass begins with
  // segment 1, which sends its gradient before it makes that of its parameters, 2 of 5 seconds.
  PipelineCosts costs;
  costs.segments = {{.worker = 1, .forward = 1, .backward = 4, .after_begun = 2},
                    {.worker = 0, .forward = 1, .backward = 5, .after_sending = 2}};
  costs.messages = {{1, 0, 100, Kind::begun_gradient}};
  costs.latency = 0.25;
  // Forward passes side by side: 1. Segment 1 sends at 4. Segment 0 has been ready since 3, waits
  // until 4.25, and is done at 6.25; segment 1 at 6.
  const PipelineTime time = pipeline_time(costs, 1);
  CHECK(time.seconds == doctest::Approx(6.25));
  CHECK(time.idle == doctest::Approx(1 - 11 / 12.5));
}
