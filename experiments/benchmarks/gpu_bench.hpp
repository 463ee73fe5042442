// What the parts of bench_gpu share: how a figure is measured beside its bound, and how it is
// written.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.hpp"

namespace gossamer::bench {

/// How large and how long. The defaults are what docs/BENCHMARKS.md speaks of; `quick` only shows
/// that it all runs.
struct Scale {
  bool quick = false;
  std::size_t row = 100'000'000;      ///< values of a row
  std::size_t ring_row = 25'000'000;  ///< values of a row of the ring
  int pairs = 9;
  double side_seconds = 0.03;  ///< of one side of a pair, about
};
inline Scale quick_scale() {
  return {.quick = true, .row = 3'001, .ring_row = 1'001, .pairs = 6, .side_seconds = 1e-4};
}

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

/// Seconds of `repeats` times `work`, from nothing outstanding to nothing outstanding.
double seconds_of(const Work& work, int repeats, const Work& finish);

/// As many repetitions as take `seconds`, about; warms up on the way.
int repeats_for(const Work& work, double seconds, const Work& finish);

/// Something with a number of bytes that it must move, and how to wait for it.
struct Side {
  Work work, finish;
  double bytes = 0;
};

/// Both sides' bytes per second, pair by pair, each side first in every other one.
struct PairedRates {
  std::vector<double> ours, theirs;
};
PairedRates measure_pairs(const Side& ours, const Side& theirs, const Scale& scale);

/// The GPU's own copy (cudaMemcpyAsync, device to device), which all that moves bytes is held
/// against. Throws std::runtime_error with CUDA's words.
class RawCopy {
 public:
  RawCopy();
  ~RawCopy();
  RawCopy(const RawCopy&) = delete;
  RawCopy& operator=(const RawCopy&) = delete;

  void copy(void* to, const void* from, std::size_t bytes);
  void finish();

 private:
  void* stream_ = nullptr;
};

/// One JSON object a line on standard output, flushed, so that what was measured is there whatever
/// comes after.
class Line {
 public:
  explicit Line(std::string_view record);
  Line& add(std::string_view key, std::string_view text);
  Line& add(std::string_view key, double number);
  Line& add(std::string_view key, bool truth);
  Line& add(std::string_view key, const std::vector<double>& numbers);
  void print() const;

 private:
  Line& add_raw(std::string_view key, const std::string& json);
  std::string text_;
};
std::string json_text(std::string_view text);

/// Runs the parts that are wanted, each whatever became of those before it, and says which failed
/// and why.
class Parts {
 public:
  Parts(std::vector<std::string> only, double deadline_seconds);
  void run(const std::string& name, const std::function<void()>& part);
  /// Whether all that ran did not fail.
  bool ok() const { return ok_; }

 private:
  std::vector<std::string> only_;
  Clock::time_point end_;
  bool ok_ = true;
};

/// Everything whose bound is the bytes that it moves.
void run_rows(gpu::Device& device, const Scale& scale, Parts& parts);

/// The networks of the table: mlp64, mlp1, cnn1.
const std::vector<std::string>& training_workloads();

/// Node steps per second through train::Learner. A workload is made when it is first asked for, and
/// goes on from there.
class TrainingRates {
 public:
  TrainingRates(gpu::Device& device, const Scale& scale);
  ~TrainingRates();
  TrainingRates(const TrainingRates&) = delete;
  TrainingRates& operator=(const TrainingRates&) = delete;

  /// `steps_per_call`: local steps that one call asks for. Throws std::runtime_error for an unknown
  /// workload, and where the losses are none that training gives.
  double measure(const std::string& workload, int steps_per_call, double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gossamer::bench
