#include "peer/runtime/staging.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "base/check.hpp"

namespace gossamer::peer {

/// What the lanes have in common. The device's reports keep it alive.
struct Staging::Shared {
  Shared(gpu::Device& device_in, gossip::Receiver& receiver_in, Hooks hooks_in)
      : device(device_in), receiver(receiver_in), hooks(std::move(hooks_in)) {}

  gpu::Device& device;
  gossip::Receiver& receiver;
  Hooks hooks;

  std::mutex mutex;
  std::condition_variable all_copied;
  std::size_t copying = 0;  ///< copies that the device has not reported yet; under mutex

  void begun() {
    const std::lock_guard lock(mutex);
    ++copying;
  }
  void copied() {
    const std::lock_guard lock(mutex);
    if (--copying == 0) all_copied.notify_all();
  }
};

/// One link in one direction: chunks wait, are copied into one of the lane's buffers, and go on
/// from there, in order. All of a peer's memory is on one GPU of the device, so the lane's copies
/// are done in order too.
class Staging::Lane {
 public:
  explicit Lane(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), self_(std::make_shared<Lane*>(this)) {
    for (Slot& slot : slots_) slot.lane = this;
  }
  virtual ~Lane() = default;

  void push(gossip::Chunk chunk) {
    waiting_.push_back(std::move(chunk));
    pump();
  }
  bool idle() const { return waiting_.empty() && copying_.empty(); }
  /// Gives up what is waiting and what is being copied, and takes no more reports. No copy is under
  /// way.
  void drop() {
    self_.reset();
    waiting_.clear();
    copying_.clear();
  }

 protected:
  struct Slot final : gossip::BufferOwner {
    Lane* lane = nullptr;
    float* memory = nullptr;
    std::size_t capacity = 0;
    bool taken = false;
    void give_back() override {
      taken = false;
      lane->pump();
    }
    bool writer_waiting() const override { return !lane->waiting_.empty(); }
  };

  virtual float* allocate(std::size_t values) = 0;
  virtual void release(float* memory) = 0;
  virtual void begin_copy(float* to, std::span<const float> from, std::function<void()> done) = 0;
  /// The chunk, in the lane's memory.
  virtual void forward(gossip::Chunk chunk) = 0;

  void release_all() {
    for (Slot& slot : slots_)
      if (slot.memory != nullptr) release(std::exchange(slot.memory, nullptr));
  }

  std::shared_ptr<Shared> shared_;

 private:
  struct Copy {
    gossip::Chunk source;
    Slot* slot;
  };

  Slot* free_slot() {
    for (Slot& slot : slots_)
      if (!slot.taken) return &slot;
    return nullptr;
  }

  void pump() {
    while (!waiting_.empty()) {
      Slot* slot = free_slot();
      if (slot == nullptr) return;
      slot->taken = true;
      copying_.push_back({std::move(waiting_.front()), slot});
      waiting_.pop_front();
      begin(copying_.back());
    }
  }

  void begin(const Copy& copy) {
    const std::size_t values = copy.source.values.size();
    if (copy.slot->capacity < values) {
      if (copy.slot->memory != nullptr) release(std::exchange(copy.slot->memory, nullptr));
      copy.slot->capacity = 0;
      copy.slot->memory = allocate(values);
      copy.slot->capacity = values;
    }
    shared_->begun();
    // The report may come when this lane is gone: then nobody takes it.
    begin_copy(copy.slot->memory, copy.source.values,
               [shared = shared_, lane = std::weak_ptr(self_)] {
                 shared->hooks.post([lane] {
                   if (const auto alive = lane.lock()) (*alive)->copied();
                 });
                 shared->copied();
               });
  }

  void copied() {
    Copy copy = std::move(copying_.front());
    copying_.pop_front();
    const std::span<const float> values(copy.slot->memory, copy.source.values.size());
    forward(gossip::Chunk(copy.source.head, values, gossip::Lease(*copy.slot)));
  }

  std::shared_ptr<Lane*> self_;
  Slot slots_[kWindow];
  std::deque<gossip::Chunk> waiting_;
  std::deque<Copy> copying_;
};

/// From the GPU to the network.
class Staging::Outgoing final : public Lane, public gossip::Link {
 public:
  Outgoing(std::shared_ptr<Shared> shared, gossip::Link& network)
      : Lane(std::move(shared)), network_(network) {}
  ~Outgoing() override { release_all(); }
  void send(gossip::Chunk chunk) override { push(std::move(chunk)); }

 private:
  float* allocate(std::size_t values) override {
    return static_cast<float*>(shared_->device.allocate_host(values * sizeof(float)));
  }
  void release(float* memory) override { shared_->device.release_host(memory); }
  void begin_copy(float* to, std::span<const float> from, std::function<void()> done) override {
    shared_->device.begin_download(to, from.data(), from.size_bytes(), std::move(done));
  }
  void forward(gossip::Chunk chunk) override {
    if (Status judged = shared_->hooks.departs(chunk); !judged.ok())
      return shared_->hooks.on_fault(judged.error());
    network_.send(std::move(chunk));
  }

  gossip::Link& network_;
};

/// From the network to the GPU.
class Staging::Incoming final : public Lane {
 public:
  Incoming(std::shared_ptr<Shared> shared, int gpu_index)
      : Lane(std::move(shared)), gpu_index_(gpu_index) {}
  ~Incoming() override { release_all(); }

 private:
  float* allocate(std::size_t values) override {
    return static_cast<float*>(shared_->device.allocate(values * sizeof(float), gpu_index_));
  }
  void release(float* memory) override { shared_->device.release(memory); }
  void begin_copy(float* to, std::span<const float> from, std::function<void()> done) override {
    shared_->device.begin_upload(to, from.data(), from.size_bytes(), std::move(done));
  }
  void forward(gossip::Chunk chunk) override {
    const gossip::ChunkHeader head = chunk.head;
    if (Status status = shared_->receiver.deliver(std::move(chunk)); !status.ok())
      shared_->hooks.on_protocol_violation(head, status.error());
  }

  int gpu_index_;  // the receiving peer's
};

Staging::Staging(gpu::Device& device, gossip::Receiver& receiver, Hooks hooks)
    : shared_(std::make_shared<Shared>(device, receiver, std::move(hooks))) {}

Staging::~Staging() { close(); }

void Staging::close() {
  {
    std::unique_lock lock(shared_->mutex);
    shared_->all_copied.wait(lock, [this] { return shared_->copying == 0; });
  }
  for (auto& [ends, lane] : outgoing_) lane->drop();
  for (auto& [ends, lane] : incoming_) lane->drop();
}

gossip::Link& Staging::link(int from, int to, gossip::Link& network) {
  auto& lane = outgoing_[{from, to}];
  GOSSAMER_CHECK(!lane, "a link is staged twice");
  lane = std::make_unique<Outgoing>(shared_, network);
  return *lane;
}

Status Staging::deliver(gossip::Chunk chunk) {
  GOSSAMER_TRY_STATUS(shared_->hooks.arrives(chunk));
  auto& lane = incoming_[{chunk.head.from, chunk.head.to}];
  if (!lane) lane = std::make_unique<Incoming>(shared_, shared_->hooks.gpu_of(chunk.head.to));
  lane->push(std::move(chunk));
  return {};
}

bool Staging::idle() const {
  for (const auto& [ends, lane] : outgoing_)
    if (!lane->idle()) return false;
  return true;
}

}  // namespace gossamer::peer
