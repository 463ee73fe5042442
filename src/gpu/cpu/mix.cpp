#include "gpu/cpu/mix.hpp"

#include <algorithm>
#include <vector>

#include "gpu/cpu/kernels.hpp"

namespace gossamer::gpu {
namespace {

/// Bytes of one block of all rows: it and the next block, which is prefetched meanwhile, fit a
/// second-level cache of 512 KiB or more; outputs are streamed past it.
constexpr std::size_t kCacheBytes = 256 << 10;
/// A shorter block of a row costs more, in loop starts and page misses, than the cache saves.
constexpr std::size_t kLeastBlockBytes = 2 << 10;
/// More output bytes of one call do not stay in a cache until they are read, so streaming stores
/// save the read before the write.
constexpr std::size_t kStreamBytes = 8 << 20;
/// Smaller pieces of a call are not worth a second thread.
constexpr std::size_t kPieceBytes = 64 << 10;

template <class Real>
void mix_range(std::span<const BasicMixRequest<Real>> requests, std::size_t begin, std::size_t end,
               std::size_t block, bool streaming) {
  std::vector<BasicMixSource<Real>> sources;
  for (std::size_t from = begin; from < end; from += block) {
    const std::size_t to = std::min(end, from + block);
    for (const BasicMixRequest<Real>& request : requests) {
      if (from >= request.length) continue;
      sources.assign(request.sources.begin(), request.sources.end());
      for (auto& source : sources) source.row += from;
      kernels<Real>().mix({.x = request.x + from,
                           .out = request.out + from,
                           .sources = sources,
                           .length = std::min(to, request.length) - from,
                           .own = request.own},
                          streaming, streaming ? block : 0);
    }
  }
}

}  // namespace

template <class Real>
void run_all(std::span<const BasicMixRequest<Real>> requests, ThreadPool& pool) {
  std::size_t longest = 0, total = 0;
  for (const auto& request : requests) {
    longest = std::max(longest, request.length);
    total += request.length;
  }
  if (total == 0) return;
  const std::size_t line = 64 / sizeof(Real);
  const std::size_t block =
      std::max(kCacheBytes / requests.size(), kLeastBlockBytes) / sizeof(Real) / line * line;
  const bool streaming = total * sizeof(Real) > kStreamBytes;
  const std::size_t most = std::max<std::size_t>(1, total * sizeof(Real) / kPieceBytes);
  const std::size_t pieces = std::min<std::size_t>(static_cast<std::size_t>(pool.threads()), most);
  const std::size_t piece = ((longest + pieces - 1) / pieces + line - 1) / line * line;
  pool.parallel_for(pieces, [&](std::size_t i) {
    mix_range(requests, std::min(longest, i * piece), std::min(longest, (i + 1) * piece), block,
              streaming);
  });
}

template void run_all(std::span<const BasicMixRequest<float>>, ThreadPool&);
template void run_all(std::span<const BasicMixRequest<double>>, ThreadPool&);

}  // namespace gossamer::gpu
