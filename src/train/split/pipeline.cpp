#include "train/split/pipeline.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/check.hpp"

namespace gossamer::train {
namespace {

/// The workers' orders, of which some worker's next step is taken at a time.
class Walk {
 public:
  Walk(int parts, int microbatches)
      : next_(static_cast<std::size_t>(parts)), done_(static_cast<std::size_t>(parts)) {
    for (int p = 0; p < parts; ++p) orders_.push_back(worker_order(p, parts, microbatches));
  }

  /// Calls take(step) for each step, once it can be taken. Workers take turns, the first of them
  /// first.
  void run(const std::function<void(const PipelineStep&)>& take) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t p = 0; p < orders_.size(); ++p) {
        if (next_[p] == orders_[p].size() || !can_take(orders_[p][next_[p]])) continue;
        const PipelineStep& step = orders_[p][next_[p]++];
        (step.is_backward ? done_[p].backward : done_[p].forward) = step.microbatch + 1;
        take(step);
        moved = true;
      }
    }
    for (std::size_t p = 0; p < orders_.size(); ++p)
      GOSSAMER_CHECK(next_[p] == orders_[p].size(), "no worker waits for ever");
  }

 private:
  struct Done {
    int forward = 0, backward = 0;  ///< microbatches, from 0 on
  };
  bool can_take(const PipelineStep& step) const {
    const auto p = static_cast<std::size_t>(step.part);
    if (step.is_backward) return p + 1 == done_.size() || done_[p + 1].backward > step.microbatch;
    return p == 0 || done_[p - 1].forward > step.microbatch;
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
    const double bytes = message.bytes * share;
    const auto seconds = [bytes](double limit) { return limit > 0 ? bytes / limit : 0; };
    double& link = free_[{message.from, message.to}];
    double& up = free_[{message.from, kAll}];
    double& down = free_[{kAll, message.to}];
    const double begin = std::max({time, link, up, down});
    link = begin + seconds(costs_.link);
    up = begin + seconds(costs_.uplink);
    down = begin + seconds(costs_.downlink);
    return std::max({link, up, down}) + costs_.latency;
  }

 private:
  static constexpr int kAll = -1;
  const PipelineCosts& costs_;
  std::map<std::pair<int, int>, double> free_;  // by sender and receiver
};

}  // namespace

int in_flight(int part, int parts, int microbatches) {
  return std::min(microbatches, parts - part);
}

std::vector<PipelineStep> worker_order(int part, int parts, int microbatches) {
  std::vector<PipelineStep> order;
  const int ahead = in_flight(part, parts, microbatches);
  for (int m = 0; m < ahead; ++m) order.push_back({part, false, m});
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({part, true, m});
    if (m + ahead < microbatches) order.push_back({part, false, m + ahead});
  }
  return order;
}

std::vector<PipelineStep> pipeline_order(int parts, int microbatches) {
  std::vector<PipelineStep> order;
  Walk(parts, microbatches).run([&](const PipelineStep& step) { order.push_back(step); });
  return order;
}

double PipelineCosts::bytes_sent(int part) const {
  double bytes = 0;
  for (const Message& message : messages)
    if (message.from == part) bytes += message.bytes;
  return bytes;
}

PipelineTime pipeline_time(const PipelineCosts& costs, int microbatches) {
  const auto parts = static_cast<int>(costs.forward.size());
  const double share = 1.0 / microbatches;
  std::vector<double> worker_free(costs.forward.size());
  Transfers transfers(costs);
  std::map<std::pair<int, int>, double> arrival, arrival_back;  // by part and microbatch
  double busy = 0, end = 0;
  Walk(parts, microbatches).run([&](const PipelineStep& step) {
    const auto p = static_cast<std::size_t>(step.part);
    auto& arrivals = step.is_backward ? arrival_back : arrival;
    const double begin = std::max(worker_free[p], arrivals[{step.part, step.microbatch}]);
    const double takes = (step.is_backward ? costs.backward[p] : costs.forward[p]) * share;
    const double done = worker_free[p] = begin + takes;
    busy += takes;
    end = std::max(end, done);
    for (const PipelineCosts::Message& message : costs.messages) {
      if (message.from != step.part || (message.to < message.from) != step.is_backward) continue;
      double& there = arrivals[{message.to, step.microbatch}];
      there = std::max(there, transfers.send(message, share, done));
    }
  });
  return {end, end > 0 ? 1 - busy / (end * parts) : 0};
}

PipelineCosts pipeline_costs(const SplitModel& model, double seconds, int batch,
                             std::size_t value_bytes) {
  PipelineCosts costs;
  double all = 0;
  for (const ModelPart& part : model.parts()) all += part.forward_flops + part.backward_flops;
  for (const ModelPart& part : model.parts()) {
    costs.forward.push_back(seconds * part.forward_flops / all);
    costs.backward.push_back(seconds * part.backward_flops / all);
  }
  std::map<std::pair<int, int>, double> bytes;
  const double of_batch = static_cast<double>(value_bytes) * batch;
  for (const Crossing& crossing : model.crossings()) {
    bytes[{crossing.maker, crossing.user}] += of_batch * static_cast<double>(crossing.values);
    if (!crossing.gradients.empty())
      bytes[{crossing.user, crossing.maker}] +=
          of_batch * static_cast<double>(crossing.values * crossing.gradients.size());
  }
  for (const auto& [pair, sum] : bytes) costs.messages.push_back({pair.first, pair.second, sum});
  return costs;
}

}  // namespace gossamer::train
