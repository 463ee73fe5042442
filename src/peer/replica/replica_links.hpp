// What the thread that trains hands to the network of a replica, and takes from it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/split/worker_links.hpp"

namespace gossamer::peer {

/// Thread: each function says which.
class ReplicaLinks final : public train::WorkerLinks<float> {
 public:
  // ---- the thread that trains
  void send(int part, std::span<const float> values) override;
  void receive(int part, std::span<float> values) override;

  // ---- any thread
  void close() override { close("this process ends"); }
  /// As close(); `why`: a clause for people.
  void close(const std::string& why);

  // ---- the network's thread
  struct Message {
    int part = 0;
    std::vector<float> values;
  };
  struct Wanted {
    int part = 0;
    std::size_t values = 0;
  };
  /// `wake` is called, from any thread, when there is something to take. Before the others.
  void connect(std::function<void()> wake);
  /// The next message to send.
  std::optional<Message> take_outgoing();
  /// The message that the other thread waits for; each once.
  std::optional<Wanted> take_wanted();
  /// It has come.
  void arrived(std::span<const float> values);
  /// The trainer is done: once all messages are sent, the network may end.
  bool done() const;
  /// Called once by the thread that made the network, after training.
  void finish();

 private:
  void wake() const {
    if (wake_) wake_();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> wake_;
  std::deque<Message> outgoing_;
  std::span<float> into_;  ///< of the receive() under way
  std::optional<Wanted> wanted_;
  bool waiting_ = false, done_ = false;
  std::optional<std::string> closed_;  ///< why
};

}  // namespace gossamer::peer
