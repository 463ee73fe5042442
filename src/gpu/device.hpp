// Where arithmetic runs: the interface of the CPU and of GPUs.
//
// Batches. Every operation has a leading peer dimension: it takes the requests of all peers that
// are ready together, so that a GPU may serve them with one kernel. On the CPU a peer's bits never
// depend on the other peers of the batch, on the thread count, on alignment or on how a row was cut
// into pieces.
//
// Order. The operations that one thread asks for take effect in that order. A call may return
// before its operation is done; finish() waits for all of them. Before another thread uses the
// results, this one calls finish(), or that one wait() with this one's mark(). Results that go to
// host memory (downloads, sketches, distances) are complete when the call returns; fault words are
// set by finish() at the latest.
//
// Memory. All pointers in requests are device memory, from Memory::allocate() or, where
// host_accessible(), from anywhere. A pointer to host memory is marked as such. A request is served
// by the GPU that holds its output, and may read and write memory of other GPUs. How rows are
// spread over GPUs changes no bits that are independent of the batch.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "gpu/codec_requests.hpp"
#include "gpu/low_rank_requests.hpp"
#include "gpu/memory.hpp"
#include "gpu/row_requests.hpp"
#include "gpu/training.hpp"

namespace gossamer::gpu {

/// The requests of one call: any number of one kind. A kind of request is added here, to the CPU
/// (gpu/cpu/) and to CUDA (gpu/cuda/kernels/).
template <class Real>
using BasicRequests =
    std::variant<std::span<const BasicMixRequest<Real>>, std::span<const AxpyRequest<Real>>,
                 std::span<const DifferenceRequest<Real>>, std::span<const ScaleRequest<Real>>,
                 std::span<const DivideRequest<Real>>, std::span<const CopyRequest<Real>>,
                 std::span<const FillRequest<Real>>, std::span<const DistancesRequest<Real>>,
                 std::span<const OrderStatisticsRequest<Real>>,
                 std::span<const ProjectRequest<Real>>, std::span<const AddProductRequest<Real>>,
                 std::span<const SketchRequest<Real>>, std::span<const RangeCheckRequest>,
                 std::span<const EncodeBf16Request>, std::span<const DecodeBf16Request>,
                 std::span<const EncodeInt8Request>, std::span<const DecodeInt8Request>,
                 std::span<const EncodeSignsRequest>, std::span<const DecodeSignsRequest>,
                 std::span<const TopKRequest>, std::span<const ScatterAddRequest>,
                 std::span<const SampleRequest>, std::span<const AddSampledRequest>>;
using Requests = BasicRequests<float>;

/// A device for rows of `Real`. The program computes in float; tests instantiate double as well, to
/// hold gradients and kernels against it. Thread: any, several at once.
template <class Real>
class BasicDevice : public Memory {
 public:
  /// Serves the requests. They need not outlive the call.
  virtual void execute(const BasicRequests<Real>& requests) = 0;
  /// Trains or evaluates many small models at once. The jobs write to disjoint rows.
  virtual void train(const Task& task, Pass pass, std::span<const Job<Real>> jobs) = 0;
  /// Passes of parts of networks, one for each replica. A replica's memory is on one GPU.
  virtual void train_part(const Task& task, PartPass pass, std::span<const PartJob<Real>> jobs) = 0;
  /// One optimizer step for each job.
  virtual void update(const UpdateRule& rule, std::span<const UpdateJob<Real>> jobs) = 0;

  /// Text for people: "cpu, 2 threads", "cuda:0, NVIDIA H200, 139.7 GiB", "cuda:0-3, 4 × …".
  virtual std::string description() const = 0;
};
using Device = BasicDevice<float>;

}  // namespace gossamer::gpu
