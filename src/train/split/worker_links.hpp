// What a worker of a replica has of the others where each is in a process of its own.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

namespace gossamer::train {

/// The replica is no longer whole, or this process ends: thrown where a worker waits for another.
struct WorkerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thread: one at a time, the one that trains.
template <class Real>
class WorkerLinks {
 public:
  virtual ~WorkerLinks() = default;
  /// Sends finite values (host memory, which may change at once) to the worker of part `part`.
  /// Throws WorkerLost.
  virtual void send(int part, std::span<const Real> values) = 0;
  /// Waits for the values that the worker of part `part` sent next to this one. Throws WorkerLost,
  /// also if that worker sent another number of them.
  virtual void receive(int part, std::span<Real> values) = 0;
  /// Whether the replica does the next `steps` local steps, of which `step` is the first; steps
  /// ascend. False until its workers, which may have joined networks in different rounds, agree on
  /// a step from which on they train: all of them leave the same steps out. Throws WorkerLost.
  virtual bool trains(std::uint64_t step, std::uint64_t steps) = 0;
  /// Whether the parts of the replica are of one model, which can be evaluated: not while trains()
  /// is false. All workers have the same answer between two local steps. Throws WorkerLost.
  virtual bool is_whole() = 0;
  /// Ends a wait, and each later one. Thread: any.
  virtual void close() = 0;
};

/// Sends numbers to the worker of part `part`, and waits for those that it sent next, unchanged to
/// the bit. Throws WorkerLost.
template <class Real>
void send_numbers(WorkerLinks<Real>& links, int part, std::span<const double> numbers);
template <class Real>
void receive_numbers(WorkerLinks<Real>& links, int part, std::span<double> numbers);

/// A worker that is in a process of its own.
template <class Real>
struct Worker {
  int part = 0;
  WorkerLinks<Real>* links = nullptr;  ///< null: all workers of a replica are in this process
};

}  // namespace gossamer::train
