// A lease keeps memory unchanged while it is read: a row that is being sent, or a buffer that a
// chunk lies in. A writer waits until no lease is out.
#pragma once

#include <utility>

namespace gossamer::gossip {

/// The owner of leased memory. Outlives the leases.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  /// A lease has ended. Thread: the scheduler's.
  virtual void on_lease_end() = 0;
  /// Whether a writer waits until no lease is out: a reader that can as well read a copy should.
  /// Thread: the scheduler's.
  virtual bool writer_waiting() const { return false; }
};

/// Move-only. Its end is reported to the owner. An empty lease holds nothing.
class Lease {
 public:
  Lease() = default;
  explicit Lease(BufferOwner& owner) : owner_(&owner) {}
  Lease(Lease&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      end();
      owner_ = std::exchange(other.owner_, nullptr);
    }
    return *this;
  }
  ~Lease() { end(); }

  bool writer_waiting() const { return owner_ != nullptr && owner_->writer_waiting(); }

  void end() {
    if (BufferOwner* owner = std::exchange(owner_, nullptr)) owner->on_lease_end();
  }

 private:
  BufferOwner* owner_ = nullptr;
};

/// An owner that gives a lease for each chunk of a message.
class LeaseSource : public BufferOwner {
 public:
  virtual Lease lease() = 0;
};

}  // namespace gossamer::gossip
