#include "peer/replica/replica_links.hpp"

#include <algorithm>
#include <utility>

namespace gossamer::peer {

void ReplicaLinks::connect(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void ReplicaLinks::send(int part, std::span<const float> values) {
  const std::lock_guard lock(mutex_);
  if (closed_) throw train::WorkerLost(*closed_);
  outgoing_.push_back({part, {values.begin(), values.end()}});
  wake();
}

void ReplicaLinks::receive(int part, std::span<float> values) {
  if (values.empty()) return;
  std::unique_lock lock(mutex_);
  into_ = values;
  wanted_ = Wanted{part, values.size()};
  waiting_ = true;
  wake();
  changed_.wait(lock, [this] { return !waiting_ || closed_; });
  into_ = {};
  wanted_.reset();
  if (std::exchange(waiting_, false)) throw train::WorkerLost(*closed_);
}

void ReplicaLinks::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = why;
  }
  changed_.notify_all();
}

std::optional<ReplicaLinks::Message> ReplicaLinks::take_outgoing() {
  const std::lock_guard lock(mutex_);
  if (outgoing_.empty()) return std::nullopt;
  Message message = std::move(outgoing_.front());
  outgoing_.pop_front();
  return message;
}

std::optional<ReplicaLinks::Wanted> ReplicaLinks::take_wanted() {
  const std::lock_guard lock(mutex_);
  return std::exchange(wanted_, std::nullopt);
}

void ReplicaLinks::arrived(std::span<const float> values) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_) return;  // closed meanwhile
    std::ranges::copy(values, into_.begin());
    waiting_ = false;
  }
  changed_.notify_all();
}

void ReplicaLinks::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  wake();
}

bool ReplicaLinks::done() const {
  const std::lock_guard lock(mutex_);
  return done_ && outgoing_.empty();
}

}  // namespace gossamer::peer
