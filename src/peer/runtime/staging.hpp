// Between rows on a GPU and the network, which reads and writes host memory: what goes out is
// copied to pinned memory chunk by chunk, what comes in is copied to the GPU, while other chunks
// are on the wire and others are being mixed. The exchange and the network see links and a receiver
// as ever.
//
// Memory is bounded: a link has kWindow buffers in each direction. When they are out, what goes out
// waits in its row (lent, so nobody writes it), and what comes in waits in the connection's
// buffers, so that the other side is slowed down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "gossip/links/link.hpp"
#include "gpu/device.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's, but for the device's report that a copy is done.
class Staging final : public gossip::Receiver {
 public:
  /// What it asks of its owner.
  struct Hooks {
    /// Runs a function on the scheduler's thread; callable from any thread.
    std::function<void(std::function<void()>)> post;
    /// The receiver refused a chunk, which came over the network.
    std::function<void(const gossip::ChunkHeader&, Error)> on_protocol_violation;
    /// Judge chunks in host memory: what came before it goes to the GPU, and what goes out before
    /// it reaches the network. An error of the first is returned to the network.
    std::function<Status(const gossip::Chunk&)> arrives = [](const gossip::Chunk&) {
      return Status();
    };
    std::function<Status(const gossip::Chunk&)> departs = [](const gossip::Chunk&) {
      return Status();
    };
    /// What must not go out ends the run.
    std::function<void(Error)> on_fault;
    /// The GPU index of a hosted peer's memory (Memory::gpu_of).
    std::function<int(int peer)> gpu_of = [](int) { return 0; };
  };

  /// Buffers of a link and direction.
  static constexpr std::size_t kWindow = 4;

  /// `receiver` takes chunks in device memory. All live until close().
  Staging(gpu::Device& device, gossip::Receiver& receiver, Hooks hooks);
  ~Staging() override;

  /// The link to use in place of `network`, whose chunks are in host memory. Lives as long as this
  /// object.
  gossip::Link& link(int from, int to, gossip::Link& network);

  /// A chunk in host memory; its lease is held until it is on the GPU.
  Status deliver(gossip::Chunk chunk) override;

  /// Waits for copies under way and gives up what has not gone on: all leases of others end here.
  /// What this object has lent may come back until its end. Nothing is staged any more.
  void close();

  /// Whether all that was given to the links has gone out to the network.
  bool idle() const;

 private:
  class Lane;
  class Outgoing;
  class Incoming;
  struct Shared;

  std::shared_ptr<Shared> shared_;
  std::map<std::pair<int, int>, std::unique_ptr<Outgoing>> outgoing_;
  std::map<std::pair<int, int>, std::unique_ptr<Incoming>> incoming_;
};

}  // namespace gossamer::peer
