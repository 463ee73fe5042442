#include "peer/runtime/staging.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "base/check.hpp"

namespace gossamer::peer {

/// State that all queues share. Callbacks of the device keep it alive.
struct Staging::Shared {
  Shared(gpu::Device& device_in, gossip::Receiver& receiver_in, Hooks hooks_in)
      : device(device_in), receiver(receiver_in), hooks(std::move(hooks_in)) {}

  gpu::Device& device;
  gossip::Receiver& receiver;
  Hooks hooks;

  std::mutex mutex;
  std::condition_variable all_copied;
  std::size_t copying = 0;  ///< copies under way; guarded by mutex

  void on_copy_begun() {
    const std::lock_guard lock(mutex);
    ++copying;
  }
  void on_copy_done() {
    const std::lock_guard lock(mutex);
    if (--copying == 0) all_copied.notify_all();
  }
};

/// The chunks of one link in one direction: each waits, is copied to one of the queue's buffers,
/// and is forwarded from there. Order is preserved, because all memory of a peer is on one GPU of
/// the device, which completes its copies in order.
class Staging::StagingQueue {
 public:
  explicit StagingQueue(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), self_(std::make_shared<StagingQueue*>(this)) {
    for (Slot& slot : slots_) slot.queue = this;
  }
  virtual ~StagingQueue() = default;

  void push(gossip::Chunk chunk) {
    waiting_.push_back(std::move(chunk));
    pump();
  }
  bool idle() const { return waiting_.empty() && copying_.empty(); }
  /// Drops all chunks, and ignores later callbacks of the device. No copy is under way.
  void drop() {
    self_.reset();
    waiting_.clear();
    copying_.clear();
  }

 protected:
  struct Slot final : gossip::BufferOwner {
    StagingQueue* queue = nullptr;
    float* memory = nullptr;
    std::size_t capacity = 0;
    bool taken = false;
    void on_lease_end() override {
      taken = false;
      queue->pump_after_lease();
    }
    bool writer_waiting() const override { return !queue->waiting_.empty(); }
  };

  virtual float* allocate(std::size_t values) = 0;
  virtual void release(float* memory) = 0;
  virtual void begin_copy(float* to, std::span<const float> from, gpu::CopyDone done) = 0;
  /// Passes on a chunk that is in the queue's memory.
  virtual void forward(gossip::Chunk chunk) = 0;

  /// Whether the owner of a chunk that is not copied yet waits to write.
  bool has_waiting_writer() const {
    const auto waits = [](const gossip::Chunk& chunk) { return chunk.lease.writer_waiting(); };
    return std::ranges::any_of(waiting_, waits) ||
           std::ranges::any_of(copying_, waits, &Copy::source);
  }

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

  /// The end of a lease lets no exception pass.
  void pump_after_lease() {
    try {
      pump();
    } catch (const std::exception& failure) {  // of a GPU, or memory is short
      shared_->hooks.post([shared = shared_, error = Error{ErrorKind::internal, failure.what()}] {
        shared->hooks.on_fault(error);
      });
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
    shared_->on_copy_begun();
    // The callback may come after the end of this queue, and is then ignored.
    gpu::CopyDone done = [shared = shared_, queue = std::weak_ptr(self_)](const Status& copied) {
      shared->hooks.post([queue, copied] {
        if (const auto alive = queue.lock()) (*alive)->forward_copied(copied);
      });
      shared->on_copy_done();
    };
    try {
      begin_copy(copy.slot->memory, copy.source.values, std::move(done));
    } catch (...) {  // a GPU that failed: no copy is under way, and close() waits for none
      shared_->on_copy_done();
      throw;
    }
  }

  void forward_copied(const Status& copied) {
    if (!copied.ok()) return shared_->hooks.on_fault(copied.error());
    Copy copy = std::move(copying_.front());
    copying_.pop_front();
    const std::span<const float> values(copy.slot->memory, copy.source.values.size());
    forward(gossip::Chunk(copy.source.header, values, gossip::Lease(*copy.slot)));
  }

  std::shared_ptr<StagingQueue*> self_;
  Slot slots_[kWindow];
  std::deque<gossip::Chunk> waiting_;
  std::deque<Copy> copying_;
};

/// From the GPU to the network.
class Staging::DownloadQueue final : public StagingQueue, public gossip::Link {
 public:
  DownloadQueue(std::shared_ptr<Shared> shared, gossip::Link& network)
      : StagingQueue(std::move(shared)), network_(network) {}
  ~DownloadQueue() override { release_all(); }
  void send(gossip::Chunk chunk) override { push(std::move(chunk)); }
  bool delays_writer() const override { return has_waiting_writer(); }

 private:
  float* allocate(std::size_t values) override {
    return static_cast<float*>(shared_->device.allocate_host(values * sizeof(float)));
  }
  void release(float* memory) override { shared_->device.release_host(memory); }
  void begin_copy(float* to, std::span<const float> from, gpu::CopyDone done) override {
    shared_->device.begin_download(to, from.data(), from.size_bytes(), std::move(done));
  }
  void forward(gossip::Chunk chunk) override {
    if (Status valid = shared_->hooks.validate_outgoing(chunk); !valid.ok())
      return shared_->hooks.on_fault(valid.error());
    network_.send(std::move(chunk));
  }

  gossip::Link& network_;
};

/// From the network to the GPU.
class Staging::UploadQueue final : public StagingQueue {
 public:
  UploadQueue(std::shared_ptr<Shared> shared, int gpu_index)
      : StagingQueue(std::move(shared)), gpu_index_(gpu_index) {}
  ~UploadQueue() override { release_all(); }

 private:
  float* allocate(std::size_t values) override {
    return static_cast<float*>(shared_->device.allocate(values * sizeof(float), gpu_index_));
  }
  void release(float* memory) override { shared_->device.release(memory); }
  void begin_copy(float* to, std::span<const float> from, gpu::CopyDone done) override {
    shared_->device.begin_upload(to, from.data(), from.size_bytes(), std::move(done));
  }
  void forward(gossip::Chunk chunk) override {
    const gossip::ChunkHeader header = chunk.header;
    if (Status status = shared_->receiver.deliver(std::move(chunk)); !status.ok())
      shared_->hooks.on_protocol_violation(header, status.error());
  }

  int gpu_index_;  ///< of the receiving peer
};

Staging::Staging(gpu::Device& device, gossip::Receiver& receiver, Hooks hooks)
    : shared_(std::make_shared<Shared>(device, receiver, std::move(hooks))) {}

Staging::~Staging() { close(); }

void Staging::close() {
  {
    std::unique_lock lock(shared_->mutex);
    shared_->all_copied.wait(lock, [this] { return shared_->copying == 0; });
  }
  for (auto& [ends, queue] : outgoing_) queue->drop();
  for (auto& [ends, queue] : incoming_) queue->drop();
}

gossip::Link& Staging::link(int from, int to, gossip::Link& network) {
  auto& queue = outgoing_[{from, to}];
  GOSSAMER_CHECK(!queue, "a link is staged twice");
  queue = std::make_unique<DownloadQueue>(shared_, network);
  return *queue;
}

Status Staging::deliver(gossip::Chunk chunk) {
  GOSSAMER_TRY_STATUS(shared_->hooks.validate_incoming(chunk));
  auto& queue = incoming_[{chunk.header.from, chunk.header.to}];
  if (!queue)
    queue = std::make_unique<UploadQueue>(shared_, shared_->hooks.gpu_of(chunk.header.to));
  queue->push(std::move(chunk));
  return {};
}

bool Staging::idle() const {
  for (const auto& [ends, queue] : outgoing_)
    if (!queue->idle()) return false;
  return true;
}

}  // namespace gossamer::peer
