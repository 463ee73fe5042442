// A lease keeps memory as it is while somebody reads it: a row that is being sent, a buffer that a
// chunk lies in. Whoever wants to write asks the owner to wait until no lease is out.
#pragma once

#include <utility>

namespace gossamer::gossip {

/// Lends memory. Outlives its leases.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  /// One lease has ended. Thread: the scheduler's.
  virtual void give_back() = 0;
  /// Somebody waits until no lease is out: whoever can as well read a copy, should. Thread: the
  /// scheduler's.
  virtual bool writer_waiting() const { return false; }
};

/// Move-only; its end gives the memory back to the lender. An empty lease lends nothing.
class Lease {
 public:
  Lease() = default;
  explicit Lease(BufferOwner& lender) : lender_(&lender) {}
  Lease(Lease&& other) noexcept : lender_(std::exchange(other.lender_, nullptr)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      end();
      lender_ = std::exchange(other.lender_, nullptr);
    }
    return *this;
  }
  ~Lease() { end(); }

  bool writer_waiting() const { return lender_ != nullptr && lender_->writer_waiting(); }

  void end() {
    if (BufferOwner* lender = std::exchange(lender_, nullptr)) lender->give_back();
  }

 private:
  BufferOwner* lender_ = nullptr;
};

}  // namespace gossamer::gossip
