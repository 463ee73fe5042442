#include "handoff.hpp"

namespace gossamer::python {

void Handoff::serve(std::vector<Request>& batch) {
  std::unique_lock lock(mutex_);
  if (closed_) throw Closed();
  batch_ = &batch;
  changed_.notify_all();
  changed_.wait(lock, [this] { return closed_ || batch_ == nullptr; });
  batch_ = nullptr;
  if (closed_) throw Closed();
}

void Handoff::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool Handoff::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return batch_ != nullptr || ended_; });
}

std::vector<Request>* Handoff::batch() {
  const std::lock_guard lock(mutex_);
  return batch_;
}

void Handoff::complete() {
  const std::lock_guard lock(mutex_);
  batch_ = nullptr;
  changed_.notify_all();
}

bool Handoff::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Handoff::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  batch_ = nullptr;
  changed_.notify_all();
}

}  // namespace gossamer::python
