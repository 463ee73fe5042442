// The k values of largest magnitude, exactly, by radix selection. For each of three digits of |x|'s
// bits, from the top: a histogram of the digit (atomic sums of integers, the same in any order),
// and the digit in which the k-th value lies. Then each piece of the row counts its chosen values,
// a scan over the pieces gives each piece its offset, and each piece writes its values there:
// indices ascend, whatever the order of the blocks.
#include <cstring>

#include "gpu/cuda/kernels/codecs.hpp"
#include "gpu/cuda/kernels/launches.hpp"
#include "gpu/cuda/kernels/memory_spaces.hpp"
#include "gpu/cuda/kernels/vector.hpp"

namespace gossamer::gpu::cuda {
namespace {

constexpr int kTopKThreads = 256;
constexpr int kRun = 32;  // neighbouring values of a thread
constexpr std::size_t kTopKPiece = std::size_t{kTopKThreads} * kRun;

constexpr int kDigits = 3;
constexpr unsigned kMostBins = 2048;
constexpr unsigned kBinsOfThread = kMostBins / kTopKThreads;

/// A digit's bits among the 31 bits of a magnitude.
struct Digit {
  int shift, bits;
};
__device__ __forceinline__ Digit digit_at(int index) {
  return index == 0 ? Digit{20, 11} : Digit{20 - 10 * index, 10};
}

/// A request's choice: all values above `magnitude` (its digits so far), and the first `equal`
/// values of that magnitude.
struct Threshold {
  unsigned magnitude, equal;
};

/// Number of a piece's values above the threshold (lower half) and equal to it (upper half).
using Counts = unsigned long long;
constexpr Counts kAbove = 1, kEqual = Counts{1} << 32;

__device__ __forceinline__ unsigned magnitude(float value) {
  return __float_as_uint(value) & 0x7FFFFFFFU;
}

__device__ __forceinline__ Counts compared(unsigned magnitude, const Threshold& threshold) {
  return magnitude > threshold.magnitude ? kAbove : magnitude == threshold.magnitude ? kEqual : 0;
}

/// Σ of the values of the threads before this one. All threads of a block of kTopKThreads call it.
template <class Value>
__device__ __forceinline__ Value sum_before(Value value, Value* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = value;
  __syncthreads();
  for (int step = 1; step < kTopKThreads; step *= 2) {
    const Value before = thread >= step ? shared[thread - step] : 0;
    __syncthreads();
    shared[thread] += before;
    __syncthreads();
  }
  const Value sum = shared[thread] - value;
  __syncthreads();
  return sum;
}

__global__ void __launch_bounds__(kTopKThreads)
    begin_kernel(const TopKRequest* requests, Threshold* thresholds, unsigned* bins) {
  if (threadIdx.x == 0)
    thresholds[blockIdx.x] = {0, static_cast<unsigned>(requests[blockIdx.x].count)};
  for (unsigned i = threadIdx.x; i < kMostBins; i += kTopKThreads)
    bins[blockIdx.x * kMostBins + i] = 0;
}

__global__ void __launch_bounds__(kTopKThreads)
    histogram_kernel(const TopKRequest* requests, unsigned count, const Threshold* thresholds,
                     unsigned* bins, int digit_index) {
  GOSSAMER_SHARED(unsigned, own, [kMostBins]);
  const unsigned request = blockIdx.x % count;
  const TopKRequest r = requests[request];
  const std::size_t begin = blockIdx.x / count * kTopKPiece,
                    end = min(r.length, begin + kTopKPiece);
  if (begin >= r.length) return;
  const Digit digit = digit_at(digit_index);
  const unsigned prefix = thresholds[request].magnitude >> (digit.shift + digit.bits),
                 mask = (1U << digit.bits) - 1;
  for (unsigned i = threadIdx.x; i <= mask; i += kTopKThreads) own[i] = 0;
  __syncthreads();
  for (std::size_t i = begin + threadIdx.x; i < end; i += kTopKThreads) {
    const unsigned m = magnitude(r.values[i]);
    if (m >> (digit.shift + digit.bits) == prefix) atomicAdd(&own[m >> digit.shift & mask], 1U);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i <= mask; i += kTopKThreads)
    if (own[i] != 0) atomicAdd(&bins[request * kMostBins + i], own[i]);
}

/// Thread t has the t-th kBinsOfThread bins from the top. Leaves the bins empty.
__global__ void __launch_bounds__(kTopKThreads)
    digit_kernel(Threshold* thresholds, unsigned* bins, int digit_index) {
  GOSSAMER_SHARED(unsigned, shared, [kTopKThreads]);
  const Threshold so_far = thresholds[blockIdx.x];
  unsigned own[kBinsOfThread], sum = 0;
  const unsigned top = kMostBins - 1 - threadIdx.x * kBinsOfThread;
  for (unsigned i = 0; i < kBinsOfThread; ++i) {
    unsigned& bin = bins[blockIdx.x * kMostBins + top - i];
    own[i] = bin;
    bin = 0;
    sum += own[i];
  }
  const unsigned before = sum_before(sum, shared);  // after it, no thread reads the threshold
  if (before >= so_far.equal || before + sum < so_far.equal) return;
  unsigned left = so_far.equal - before, i = 0;
  for (; own[i] < left; ++i) left -= own[i];
  thresholds[blockIdx.x] = {so_far.magnitude | (top - i) << digit_at(digit_index).shift, left};
}

__global__ void __launch_bounds__(kTopKThreads)
    count_kernel(const TopKRequest* requests, unsigned count, const Threshold* thresholds,
                 Counts* counts, unsigned pieces) {
  GOSSAMER_SHARED(Counts, shared, [kTopKThreads]);
  const unsigned request = blockIdx.x % count, piece = blockIdx.x / count;
  const TopKRequest r = requests[request];
  const Threshold threshold = thresholds[request];
  const std::size_t begin = piece * kTopKPiece, end = min(r.length, begin + kTopKPiece);
  Counts mine = 0;
  for (std::size_t i = begin + threadIdx.x; i < end; i += kTopKThreads)
    mine += compared(magnitude(r.values[i]), threshold);
  const Counts all = block_sum<kTopKThreads>(mine, shared);
  if (threadIdx.x == 0) counts[std::size_t{request} * pieces + piece] = all;
}

/// counts[request, piece] ← Σ over the pieces before it.
__global__ void __launch_bounds__(kTopKThreads) scan_kernel(Counts* counts, unsigned pieces) {
  GOSSAMER_SHARED(Counts, shared, [kTopKThreads]);
  Counts* own = counts + std::size_t{blockIdx.x} * pieces;
  const unsigned each = (pieces + kTopKThreads - 1) / kTopKThreads;
  const unsigned begin = min(pieces, threadIdx.x * each), end = min(pieces, begin + each);
  Counts sum = 0;
  for (unsigned i = begin; i < end; ++i) sum += own[i];
  Counts before = sum_before(sum, shared);
  for (unsigned i = begin; i < end; ++i) {
    const Counts here = own[i];
    own[i] = before;
    before += here;
  }
}

__global__ void __launch_bounds__(kTopKThreads)
    write_kernel(const TopKRequest* requests, unsigned count, const Threshold* thresholds,
                 const Counts* counts, unsigned pieces) {
  GOSSAMER_SHARED(Counts, shared, [kTopKThreads]);
  const unsigned request = blockIdx.x % count, piece = blockIdx.x / count;
  const TopKRequest r = requests[request];
  if (r.count == 0) return;  // its threshold is below every value
  const Threshold threshold = thresholds[request];
  const std::size_t first = min(r.length, piece * kTopKPiece + std::size_t{threadIdx.x} * kRun),
                    end = min(r.length, first + kRun);
  Counts mine = 0;
  for (std::size_t i = first; i < end; ++i) mine += compared(magnitude(r.values[i]), threshold);
  const Counts before = counts[std::size_t{request} * pieces + piece] + sum_before(mine, shared);
  unsigned above = static_cast<unsigned>(before), equal = static_cast<unsigned>(before >> 32);
  for (std::size_t i = first; i < end; ++i) {
    const float value = r.values[i];
    const Counts is = compared(magnitude(value), threshold);
    if (is == kAbove || (is == kEqual && equal < threshold.equal)) {
      const unsigned to = above + min(equal, threshold.equal);
      r.chosen[to] = value;
      r.indices[to] = static_cast<std::uint32_t>(i);
    }
    above += is == kAbove ? 1 : 0;
    equal += is == kEqual ? 1 : 0;
  }
}

/// One launch of each kernel. `longest`: length of a request.
void choose(StreamContext& context, std::span<const TopKRequest> requests, std::size_t longest) {
  const UploadRing::Slot slot = context.uploads().reserve(requests.size_bytes());
  std::memcpy(slot.host, requests.data(), requests.size_bytes());
  context.uploads().send(slot);
  const auto* tasks = reinterpret_cast<const TopKRequest*>(slot.device);
  const auto count = static_cast<unsigned>(requests.size()),
             pieces = static_cast<unsigned>(pieces_of(longest, kTopKPiece));
  auto* counts = static_cast<Counts*>(context.scratch(
      count * (pieces * sizeof(Counts) + sizeof(Threshold) + kMostBins * sizeof(unsigned))));
  auto* thresholds = reinterpret_cast<Threshold*>(counts + std::size_t{count} * pieces);
  auto* bins = reinterpret_cast<unsigned*>(thresholds + count);
  launch(begin_kernel, count, kTopKThreads, context.stream(), tasks, thresholds, bins);
  for (int digit = 0; digit < kDigits; ++digit) {
    launch(histogram_kernel, count * pieces, kTopKThreads, context.stream(), tasks, count,
           thresholds, bins, digit);
    launch(digit_kernel, count, kTopKThreads, context.stream(), thresholds, bins, digit);
  }
  launch(count_kernel, count * pieces, kTopKThreads, context.stream(), tasks, count, thresholds,
         counts, pieces);
  launch(scan_kernel, count, kTopKThreads, context.stream(), counts, pieces);
  launch(write_kernel, count * pieces, kTopKThreads, context.stream(), tasks, count, thresholds,
         counts, pieces);
}

}  // namespace

void enqueue(StreamContext& context, std::span<const TopKRequest> requests) {
  in_launches(requests, kTopKPiece, [&](std::span<const TopKRequest> some, std::size_t longest) {
    choose(context, some, longest);
  });
}

}  // namespace gossamer::gpu::cuda
