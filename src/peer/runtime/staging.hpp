// Transfers chunks between rows in GPU memory and the network, which reads and writes host memory.
// Outgoing chunks are copied to pinned host memory, incoming chunks to the GPU, while other chunks
// are on the wire or being mixed. The exchange and the network only see links and a receiver.
//
// Memory is bounded: each link has kWindow buffers per direction. If all are in use, an outgoing
// chunk waits in its leased row, and an incoming chunk in the buffers of the connection, which
// slows down the sender.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "gossip/link.hpp"
#include "gpu/device.hpp"

namespace gossamer::peer {

/// Thread: the scheduler's, except for the device's report that a copy is complete.
class Staging final : public gossip::Receiver {
 public:
  struct Hooks {
    /// Runs a function on the scheduler's thread; may be called from any thread.
    std::function<void(std::function<void()>)> post;
    /// The receiver refused a chunk from the network.
    std::function<void(const gossip::ChunkHeader&, Error)> on_protocol_violation;
    /// Checks an incoming chunk in host memory, before it is copied to the GPU. deliver() returns
    /// the error.
    std::function<Status(const gossip::Chunk&)> validate_incoming = [](const gossip::Chunk&) {
      return Status();
    };
    /// Checks an outgoing chunk in host memory, before the network gets it. An error goes to
    /// on_fault.
    std::function<Status(const gossip::Chunk&)> validate_outgoing = [](const gossip::Chunk&) {
      return Status();
    };
    /// An outgoing chunk is invalid, or the GPU has failed, which ends the run.
    std::function<void(Error)> on_fault;
    /// The GPU index of the memory of a hosted peer (Memory::gpu_of).
    std::function<int(int peer)> gpu_of = [](int) { return 0; };
  };

  /// Number of buffers per link and direction.
  static constexpr std::size_t kWindow = 4;

  /// `receiver` takes chunks in device memory. All arguments outlive the call of close().
  Staging(gpu::Device& device, gossip::Receiver& receiver, Hooks hooks);
  ~Staging() override;

  /// A link that takes chunks in device memory and sends them over `network`, whose chunks are in
  /// host memory. Lives as long as this object.
  gossip::Link& link(int from, int to, gossip::Link& network);

  /// Takes a chunk in host memory. Its lease is held until the chunk is on the GPU.
  Status deliver(gossip::Chunk chunk) override;

  /// Waits for copies that are under way (also a GPU that failed ends them), and drops all chunks,
  /// which releases their leases. Leases of this object's own buffers may be released later.
  /// Nothing may be staged afterwards.
  void close();

  /// Whether the network has all chunks that the links were given.
  bool idle() const;

 private:
  class StagingQueue;
  class DownloadQueue;
  class UploadQueue;
  struct Shared;

  std::shared_ptr<Shared> shared_;
  std::map<std::pair<int, int>, std::unique_ptr<DownloadQueue>> outgoing_;  ///< by (from, to)
  std::map<std::pair<int, int>, std::unique_ptr<UploadQueue>> incoming_;    ///< by (from, to)
};

}  // namespace gossamer::peer
