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

bool ReplicaLinks::trains(std::uint64_t step, std::uint64_t steps) {
  return decide([&] { return agreement_.about(step, steps); });
}

bool ReplicaLinks::is_whole() {
  return decide([&] { return agreement_.about_evaluation(); });
}

bool ReplicaLinks::decide(const std::function<Answer()>& answer) {
  std::unique_lock lock(mutex_);
  Answer decided = Answer::wait;
  changed_.wait(lock, [&] {
    decided = answer();
    wake_for_agreement();
    return closed_ || decided != Answer::wait;
  });
  if (closed_) throw train::WorkerLost(*closed_);
  return decided == Answer::train;
}

void ReplicaLinks::begin(bool joins) {
  const std::lock_guard lock(mutex_);
  agreement_.begin(joins);
  wake_for_agreement();
}

void ReplicaLinks::close(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) closed_ = why;
  }
  changed_.notify_all();
}

ReplicaLinks::Work ReplicaLinks::take() {
  const std::lock_guard lock(mutex_);
  return {std::exchange(outgoing_, {}), agreement_messages(), std::exchange(wanted_, std::nullopt),
          done_};
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

std::vector<ReplicaLinks::Message> ReplicaLinks::take_agreement() {
  const std::lock_guard lock(mutex_);
  return agreement_messages();
}

std::vector<ReplicaLinks::Message> ReplicaLinks::agreement_messages() {
  std::vector<Message> messages;
  for (const auto& [to, message] : agreement_.take_messages()) {
    const auto values = StepAgreement::values_of(message);
    messages.push_back({to, {values.begin(), values.end()}});
  }
  return messages;
}

Status ReplicaLinks::agreement_arrived(int part, std::span<const float> values) {
  GOSSAMER_TRY(const StepAgreement::Message message, StepAgreement::message_of(values));
  {
    const std::lock_guard lock(mutex_);
    GOSSAMER_TRY_STATUS(agreement_.receive(part, message));
  }
  changed_.notify_all();
  return {};
}

void ReplicaLinks::finish() {
  const std::lock_guard lock(mutex_);
  done_ = true;
  wake();
}

}  // namespace gossamer::peer
