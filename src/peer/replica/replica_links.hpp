// What the thread that trains hands to the network of a replica, and takes from it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peer/replica/step_agreement.hpp"
#include "train/split/worker_links.hpp"

namespace gossamer::peer {

/// Thread: each function says which.
class ReplicaLinks final : public train::WorkerLinks<float> {
 public:
  /// Of the worker of part `part` of `workers`.
  ReplicaLinks(int part, int workers) : agreement_(part, workers) {}

  // ---- the thread that trains
  void send(int part, std::span<const float> values) override;
  void receive(int part, std::span<float> values) override;
  bool trains(std::uint64_t step, std::uint64_t steps) override;
  bool is_whole() override;

  // ---- any thread
  void close() override { close("this process ends"); }
  /// As close(); `why`: a clause for people.
  void close(const std::string& why);
  /// StepAgreement::begin(). Once.
  void begin(bool joins);

  // ---- the network's thread
  struct Message {
    int part = 0;
    std::vector<float> values;
  };
  struct Wanted {
    int part = 0;
    std::size_t values = 0;
  };
  /// What there is to do for the other thread. It is taken in one piece: what was sent before a
  /// wait began is there when the wait is, and must leave first, for the answer may depend on it.
  struct Work {
    std::vector<Message> outgoing;  ///< in the order sent
    /// Messages of StepAgreement, which leave before the others: a worker that waits for one of
    /// them takes no others, which would fill the connection.
    std::vector<Message> agreement;
    std::optional<Wanted> wanted;  ///< the message that the other thread waits for; each once
    bool done = false;             ///< nothing follows
  };
  /// `wake` is called, from any thread, when there is something to take. Before the others.
  void connect(std::function<void()> wake);
  Work take();
  /// Work::agreement alone.
  std::vector<Message> take_agreement();
  /// What was wanted has come.
  void arrived(std::span<const float> values);
  /// A message of StepAgreement has come. Errors (lost_peer): no worker sends it.
  Status agreement_arrived(int part, std::span<const float> values);
  /// Called once by the thread that made the network, after training.
  void finish();

 private:
  using Answer = StepAgreement::Answer;
  void wake() const {
    if (wake_) wake_();
  }
  void wake_for_agreement() const {
    if (agreement_.has_messages()) wake();
  }
  std::vector<Message> agreement_messages();
  /// Waits until `answer` is another one than to wait. Throws WorkerLost.
  bool decide(const std::function<Answer()>& answer);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> wake_;
  std::vector<Message> outgoing_;
  StepAgreement agreement_;
  std::span<float> into_;  ///< of the receive() under way
  std::optional<Wanted> wanted_;
  bool waiting_ = false, done_ = false;
  std::optional<std::string> closed_;  ///< why
};

}  // namespace gossamer::peer
