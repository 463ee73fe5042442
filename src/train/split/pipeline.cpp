#include "train/split/pipeline.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

/// The stages' orders, of which some stage's next step is taken at a time.
class Walk {
 public:
  explicit Walk(const Pipeline& pipeline)
      : next_(static_cast<std::size_t>(pipeline.stages)), done_(next_.size()) {
    for (int s = 0; s < pipeline.stages; ++s) orders_.push_back(pipeline.order_of(s));
  }

  /// Calls take(step) for each step, once it can be taken. Stages take turns, the first of them
  /// first.
  void run(const std::function<void(const PipelineStep&)>& take) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < orders_.size(); ++s) {
        if (next_[s] == orders_[s].size() || !can_take(orders_[s][next_[s]])) continue;
        const PipelineStep& step = orders_[s][next_[s]++];
        (step.is_backward ? done_[s].backward : done_[s].forward) = step.microbatch + 1;
        take(step);
        moved = true;
      }
    }
    for (std::size_t s = 0; s < orders_.size(); ++s)
      GOSSAMER_CHECK(next_[s] == orders_[s].size(), "no stage waits for ever");
  }

 private:
  struct Done {
    int forward = 0, backward = 0;  ///< microbatches, from 0 on
  };
  bool can_take(const PipelineStep& step) const {
    const auto s = static_cast<std::size_t>(step.stage);
    if (step.is_backward) return s + 1 == done_.size() || done_[s + 1].backward > step.microbatch;
    return s == 0 || done_[s - 1].forward > step.microbatch;
  }

  std::vector<std::vector<PipelineStep>> orders_;
  std::vector<std::size_t> next_;
  std::vector<Done> done_;
};

/// When links, uplinks and downlinks are free.
class Transfers {
 public:
  explicit Transfers(const PipelineCosts& costs) : costs_(costs) {}

  /// Sends `share` of a message at `time` or later. Returns when it has arrived.
  double send(const PipelineCosts::Message& message, double share, double time) {
    const int from = costs_.segments[static_cast<std::size_t>(message.from)].worker;
    const int to = costs_.segments[static_cast<std::size_t>(message.to)].worker;
    const double bytes = message.bytes * share;
    // What has no limit holds nothing up: a message that waits for its link leaves the others of
    // its sender alone.
    std::vector<std::pair<double*, double>> used;  // when it is free, and its limit
    const auto use = [&](double& free, double limit) {
      if (limit > 0) used.emplace_back(&free, limit);
    };
    use(free_[{from, to}], costs_.link);
    use(free_[{from, kAll}], costs_.uplink);
    use(free_[{kAll, to}], costs_.downlink);
    double begin = time;
    for (const auto& [free, limit] : used) begin = std::max(begin, *free);
    double end = begin;
    for (const auto& [free, limit] : used) end = std::max(end, *free = begin + bytes / limit);
    return end + costs_.latency;
  }

 private:
  static constexpr int kAll = -1;
  const PipelineCosts& costs_;
  std::map<std::pair<int, int>, double> free_;  // by sender and receiver
};

}  // namespace

int Pipeline::in_flight(int stage) const {
  const int from_here = stages - stage;
  return std::min(microbatches, is_eager ? 2 * from_here - 1 : from_here);
}

std::vector<PipelineStep> Pipeline::order_of(int stage) const {
  std::vector<PipelineStep> order;
  const int ahead = in_flight(stage);
  for (int m = 0; m < ahead; ++m) order.push_back({stage, false, m});
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({stage, true, m});
    if (m + ahead < microbatches) order.push_back({stage, false, m + ahead});
  }
  return order;
}

std::vector<PipelineStep> Pipeline::order() const {
  std::vector<PipelineStep> order;
  Walk(*this).run([&](const PipelineStep& step) { order.push_back(step); });
  return order;
}

int PipelineCosts::stages() const { return segments.back().stage + 1; }

int PipelineCosts::workers() const {
  int most = 0;
  for (const Segment& segment : segments) most = std::max(most, segment.worker);
  return most + 1;
}

double PipelineCosts::bytes_sent(int worker) const {
  const auto worker_of = [&](int segment) {
    return segments[static_cast<std::size_t>(segment)].worker;
  };
  double bytes = 0;
  for (const Message& message : messages)
    if (worker_of(message.from) == worker && worker_of(message.to) != worker)
      bytes += message.bytes;
  return bytes;
}

PipelineTime pipeline_time(const PipelineCosts& costs, int microbatches) {
  using Kind = PipelineCosts::Message::Kind;
  const double share = 1.0 / microbatches;
  std::vector<double> worker_free(static_cast<std::size_t>(costs.workers()));
  Transfers transfers(costs);
  std::map<std::tuple<Kind, int, int>, double> arrivals;  // by segment and microbatch
  double busy = 0, end = 0;
  const auto take = [&](int s, const PipelineStep& step) {
    const PipelineCosts::Segment& segment = costs.segments[static_cast<std::size_t>(s)];
    if (segment.stage != step.stage) return;
    const auto arrival = [&](Kind kind) { return arrivals[{kind, s, step.microbatch}]; };
    double& free = worker_free[static_cast<std::size_t>(segment.worker)];
    const double takes = (step.is_backward ? segment.backward : segment.forward) * share;
    const double before = std::max(free, arrival(step.is_backward ? Kind::gradient : Kind::output));
    double sent = before + takes;
    if (step.is_backward) {
      const double last = segment.after_begun * share;
      sent = std::max(sent - last, arrival(Kind::begun_gradient)) + last -
             segment.after_sending * share;
    }
    free = sent + (step.is_backward ? segment.after_sending * share : 0);
    busy += takes;
    end = std::max(end, free);
    for (const PipelineCosts::Message& message : costs.messages) {
      if (message.from != s || (message.kind != Kind::output) != step.is_backward) continue;
      double& there = arrivals[{message.kind, message.to, step.microbatch}];
      there = std::max(there, transfers.send(message, share, sent));
    }
  };
  const auto segments = static_cast<int>(costs.segments.size());
  Walk({costs.stages(), microbatches, costs.is_eager}).run([&](const PipelineStep& step) {
    for (int s = 0; s < segments; ++s) take(step.is_backward ? segments - 1 - s : s, step);
  });
  return {end, end > 0 ? 1 - busy / (end * costs.workers()) : 0};
}

PipelineCosts pipeline_costs(const SplitModel& model, double seconds, int batch,
                             std::size_t value_bytes) {
  PipelineCosts costs;
  costs.is_eager = model.is_eager();
  double all = 0;
  for (const ModelPart& part : model.parts()) all += part.forward_flops + part.backward_flops;
  const double each = seconds / all;
  for (const Segment& segment : model.segments())
    costs.segments.push_back(
        {.stage = model.parts()[static_cast<std::size_t>(segment.worker)].stage,
         .worker = segment.worker,
         .forward = each * segment.forward_flops,
         .backward = each * segment.backward_flops,
         .after_sending = segment.sends_before_parameters ? each * segment.first_product_flops : 0,
         .after_begun = segment.goes_on ? each * segment.first_product_flops : 0});
  using Kind = PipelineCosts::Message::Kind;
  std::map<std::tuple<Kind, int, int>, double> bytes;
  const double of_batch = static_cast<double>(value_bytes) * batch;
  for (const Message& message : model.outputs())
    bytes[{Kind::output, message.from, message.to}] +=
        of_batch * static_cast<double>(message.values);
  for (const Message& message : model.gradients())
    bytes[{message.is_begun ? Kind::begun_gradient : Kind::gradient, message.from, message.to}] +=
        of_batch * static_cast<double>(message.values);
  for (const auto& [key, sum] : bytes)
    costs.messages.push_back({std::get<1>(key), std::get<2>(key), sum, std::get<0>(key)});
  return costs;
}

}  // namespace gossamer::train
