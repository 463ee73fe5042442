// The vocabulary of the protocol's tests: schedules, a trainer, a device that counts its memory,
// and reference mixes. tests/gossip/test_network.hpp has the network.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/philox.hpp"
#include "base/rows.hpp"
#include "gossip/link.hpp"
#include "gossip/trainer.hpp"
#include "gpu/cpu_device.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::gossip::testing {

inline constexpr std::uint64_t kSeed = 5;

inline std::unique_ptr<topology::MixingSchedule> schedule(
    const std::string& kind, int n, const topology::WeightOptions& weights = {}) {
  auto made = topology::make_schedule({kind, {}, weights, {n, 0}});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  return std::move(made).value();
}

inline Chunk control_chunk(int from, int to, ControlMessage message, Round round,
                           const LinkState& state = {}) {
  ChunkHeader header = control_header(from, to, message, round);
  header.link_state = state;
  return Chunk(header, {}, {});
}

/// Peer i minimises ½ ‖x − b_i‖², b_i random: gradients x − b_i, whose mean has its optimum at the
/// mean of the b_i. Its shard has 3 + i samples, and two batches.
class PullTrainer final : public Trainer {
 public:
  PullTrainer(int peers, std::size_t length, float rate)
      : rate_(rate), targets_(static_cast<std::size_t>(peers), length) {
    for (int i = 0; i < peers; ++i) {
      RandomStream random(9, static_cast<std::uint32_t>(i), Purpose::test);
      for (float& value : targets_.row(static_cast<std::size_t>(i)))
        value = static_cast<float>(random.next_normal());
    }
  }
  void run(TrainOperation operation, std::span<TrainRequest* const> requests) override {
    if (operation == TrainOperation::take_loss) return;
    ++batches;
    largest_batch = std::max(largest_batch, requests.size());
    if (operation == TrainOperation::evaluate) return;
    if (operation == TrainOperation::batch_loss) {
      for (TrainRequest* request : requests) {
        request->loss = 0;
        for (std::size_t k = 0; k < request->x.size(); ++k)
          request->loss += std::pow(request->x[k] - target(request->shard_of)[k], 2) / 2;
      }
      return;
    }
    for (TrainRequest* request : requests) {
      if (operation == TrainOperation::local_steps || operation == TrainOperation::update)
        rate_steps[request->peer].push_back(request->step + request->rate_lead);
      for (int step = 0; step < request->steps; ++step)
        for (std::size_t k = 0; k < request->x.size(); ++k) {
          if (operation != TrainOperation::update)
            request->gradient[k] = request->x[k] - target(request->shard_of)[k];
          if (operation != TrainOperation::gradient) request->x[k] -= rate_ * request->gradient[k];
        }
    }
  }
  double rate(int, std::uint64_t) const override { return rate_; }
  std::size_t shard_size(int peer) const override { return 3 + static_cast<std::size_t>(peer); }
  std::uint64_t batches_per_epoch(int) const override { return 2; }
  double data_weight(int peer) const override {
    const auto n = static_cast<double>(targets_.count());
    return n * static_cast<double>(shard_size(peer)) / (n * 3 + n * (n - 1) / 2);
  }
  /// b_i
  std::span<const float> target(int peer) const {
    return targets_.row(static_cast<std::size_t>(peer));
  }
  std::vector<double> optimum() const {
    std::vector<double> mean(targets_.length());
    for (std::size_t i = 0; i < targets_.count(); ++i)
      for (std::size_t k = 0; k < mean.size(); ++k)
        mean[k] += targets_.row(i)[k] / static_cast<double>(targets_.count());
    return mean;
  }

  int batches = 0;
  std::size_t largest_batch = 0;
  std::map<int, std::vector<std::uint64_t>> rate_steps;  ///< of the schedule, by peer, in order

 private:
  float rate_;
  Rows<float> targets_;
};

/// Of rows from a reference in double.
inline double largest_difference(const std::vector<std::vector<float>>& rows,
                                 const std::vector<std::vector<double>>& expected) {
  REQUIRE(rows.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == expected[i].size());
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      largest = std::max(largest, std::abs(rows[i][k] - expected[i][k]));
  }
  return largest;
}

/// Counts allocations. As a GPU, its memory is not accessible to the host.
class CountingDevice final : public gpu::CpuDevice {
 public:
  explicit CountingDevice(int threads, bool as_gpu = false)
      : gpu::CpuDevice(threads), as_gpu_(as_gpu) {}
  bool host_accessible() const override { return !as_gpu_; }
  void* allocate(std::size_t bytes, int gpu_index = 0) override {
    void* memory = gpu::CpuDevice::allocate(bytes, gpu_index);
    sizes_[memory] = bytes;
    bytes_ += bytes;
    most_bytes_ = std::max(most_bytes_, bytes_);
    return memory;
  }
  void release(void* memory) noexcept override {
    if (const auto found = sizes_.find(memory); found != sizes_.end()) {
      bytes_ -= found->second;
      sizes_.erase(found);
    }
    gpu::CpuDevice::release(memory);
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  bool as_gpu_;
  std::map<void*, std::size_t> sizes_;
  std::size_t bytes_ = 0, most_bytes_ = 0;
};

/// W^k x in double, by the difference form.
inline std::vector<std::vector<double>> mixed_in_double(
    const topology::MixingSchedule& schedule, const std::vector<std::vector<float>>& start,
    Round rounds) {
  std::vector<std::vector<double>> rows;
  for (const auto& row : start) rows.emplace_back(row.begin(), row.end());
  for (Round t = 0; t < rounds; ++t) {
    const auto before = rows;
    const auto matrix = schedule.at(t);
    for (int i = 0; i < schedule.peers(); ++i)
      for (const topology::Neighbour& j : matrix->in_neighbours(i))
        for (std::size_t k = 0; k < rows.front().size(); ++k)
          rows[static_cast<std::size_t>(i)][k] +=
              j.weight * (before[static_cast<std::size_t>(j.peer)][k] -
                          before[static_cast<std::size_t>(i)][k]);
  }
  return rows;
}

}  // namespace gossamer::gossip::testing
