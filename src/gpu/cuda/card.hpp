// One card: its memory, and the streams by which work gets there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/cuda/blas.hpp"
#include "gpu/cuda/cuda.hpp"
#include "gpu/cuda/lane.hpp"
#include "gpu/cuda/transfers.hpp"

namespace gossamer::gpu::cuda {

/// Each calling thread has a lane of its own, made at its first call. Any thread. Errors of CUDA
/// throw std::runtime_error; memory that is short, std::bad_alloc. What is not told here is told at
/// Memory and Transfers.
class Card {
 public:
  /// The card is there and fit (survey); `blas` outlives it. Throws as above.
  Card(CardInfo info, const BlasFunctions& blas);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const CardInfo& info() const { return info_; }
  /// The calling thread's, with the card current.
  Lane& lane();
  /// Workspace of a lane's training at most.
  std::size_t most_workspace() const;

  /// Lets kernels of this card touch the memory of `other`, from now to the program's end.
  void reach(const Card& other) const;
  /// An event on this card: all that the calling thread has asked of it is done. Until the thread's
  /// next call of this card.
  cudaEvent_t mark();
  /// What the calling thread asks of this card from now on is done after `event`, which may be
  /// another card's.
  void wait_for(cudaEvent_t event);

  void* allocate(std::size_t bytes);
  void release(void* memory);
  void upload(void* device, const void* host, std::size_t bytes);
  void download(void* host, const void* device, std::size_t bytes);
  MemoryInfo memory_info() const;
  void* allocate_host(std::size_t bytes) const;
  void release_host(void* memory) const;
  void begin_download(void* host, const void* device, std::size_t bytes,
                      std::function<void()> done);
  void begin_upload(void* device, const void* host, std::size_t bytes, std::function<void()> done);

 private:
  void make_current() const { GOSSAMER_CUDA(cudaSetDevice, info_.index); }

  CardInfo info_;
  const BlasFunctions& blas_;
  std::mutex capturing_;  // Lane::capturing
  std::mutex mutex_;      // of lanes_
  std::map<std::thread::id, std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<CopyStream> downloads_, uploads_;
};

}  // namespace gossamer::gpu::cuda
