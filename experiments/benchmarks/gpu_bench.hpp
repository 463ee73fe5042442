// Shared by all benchmarks of bench_gpu: measurement in pairs with a bound, and output.
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

/// Sizes and times. The defaults are those of docs/BENCHMARKS.md; `quick` sizes only test the
/// program.
struct Scale {
  bool quick = false;
  std::size_t row = 100'000'000;      ///< values of a row
  std::size_t ring_row = 25'000'000;  ///< values of a row of the ring
  int pairs = 9;
  double side_seconds = 0.03;  ///< of one side of a pair, approximately
};
inline Scale quick_scale() {
  return {.quick = true, .row = 3'001, .ring_row = 1'001, .pairs = 6, .side_seconds = 1e-4};
}

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

/// Seconds of `repeats` calls of `work` between two calls of `finish`, which waits for the device.
double seconds_of(const Work& work, int repeats, const Work& finish);

/// The number of repetitions that take about `seconds`. Warms up.
int repeats_for(const Work& work, double seconds, const Work& finish);

/// One side of a pair: its work, how to wait for it, and the bytes that it must move.
struct Side {
  Work work, finish;
  double bytes = 0;
};

/// Bytes per second of both sides, pair by pair in alternating order.
struct PairedRates {
  std::vector<double> ours, theirs;
};
PairedRates measure_pairs(const Side& ours, const Side& theirs, const Scale& scale);

/// cudaMemcpyAsync from device to device, the baseline of all operations that move bytes. Throws
/// std::runtime_error with CUDA's message.
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

/// Prints one JSON object per line to standard output and flushes it, so that a later crash does
/// not lose it.
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

/// Runs the requested benchmarks, also after failures, and prints the reason of each failure.
class Parts {
 public:
  Parts(std::vector<std::string> only, double deadline_seconds);
  void run(const std::string& name, const std::function<void()>& part);
  /// True if no benchmark has failed.
  bool ok() const { return ok_; }

 private:
  std::vector<std::string> only_;
  Clock::time_point end_;
  bool ok_ = true;
};

/// Runs all benchmarks that are bound by the bytes that they move.
void run_rows(gpu::Device& device, const Scale& scale, Parts& parts);

/// The training workloads of the table: mlp64, mlp1, cnn1.
const std::vector<std::string>& training_workloads();

/// Node steps per second of train::Learner. A workload is created at its first measurement; later
/// measurements continue its training.
class TrainingRates {
 public:
  TrainingRates(gpu::Device& device, const Scale& scale);
  ~TrainingRates();
  TrainingRates(const TrainingRates&) = delete;
  TrainingRates& operator=(const TrainingRates&) = delete;

  /// `steps_per_call`: local steps of one call of the learner. Throws std::runtime_error for an
  /// unknown workload, and if the losses are not those of training.
  double measure(const std::string& workload, int steps_per_call, double seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gossamer::bench
