// Hands the requests of a run to the thread of the Python program. The run, on threads of its own,
// serves a batch of requests by waiting until the program has completed it. No thread of the run
// ever takes Python's lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peer/setup/workload.hpp"

namespace gossamer::python {

enum class Operation {
  initialise,
  local_steps,
  gradient,
  update,
  reset,
  evaluate,
  save,
  restore,
  agree
};

/// One operation on the rows of a peer, which the program carries out (gossip/trainer.hpp); agree
/// has no row, and is for all peers of the process.
struct Request {
  Operation operation = Operation::initialise;
  int peer = 0;            ///< whose rows these are
  int shard_of = 0;        ///< whose batch it is
  std::uint64_t step = 0;  ///< number of the first local step
  int steps = 1;
  std::span<float> x, gradient;
  peer::LossSum losses;          ///< out: of the batches
  std::optional<double> rate;    ///< out: the optimizer's rate γ
  std::vector<int> averaged;     ///< into evaluate, if x is a mean of rows: their peers
  train::Evaluation evaluation;  ///< out
  std::string state;             ///< out of save, into restore: what the program keeps of the peer
  std::vector<train::FeatureScale> scales;  ///< into agree: of the program's data, by feature
};

/// Thrown in the thread of the run when the program does not serve requests any more.
struct Closed : std::exception {
  const char* what() const noexcept override { return "the program has closed its peer"; }
};

class Handoff {
 public:
  // ---- the run's thread
  /// Returns when the program has completed the batch. Throws Closed.
  void serve(std::vector<Request>& batch);
  /// No batch follows.
  void end();

  // ---- the program's thread
  /// Waits up to `patience` for a batch that is not complete, or for the end.
  bool wait(std::chrono::milliseconds patience);
  /// The batch that waits; null if there is none.
  std::vector<Request>* batch();
  void complete();
  bool ended();
  /// Requests are not served any more.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request>* batch_ = nullptr;
  bool ended_ = false, closed_ = false;
};

}  // namespace gossamer::python
