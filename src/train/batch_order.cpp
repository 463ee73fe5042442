// The order in which a peer draws its batches is a function of (seed, peer, epoch), so that any
// process can compute the batch of any step, and a resumed run needs no stored state.
#include <limits>

#include "base/check.hpp"
#include "base/philox.hpp"
#include "train/shards.hpp"

namespace gossamer::train {

namespace {
constexpr std::uint64_t kNoEpoch = std::numeric_limits<std::uint64_t>::max();

using gpu::ImageViews;
static_assert(ImageViews{.crop = ImageViews::kMostCrop, .flip = true}.count() <=
                  1U << (32 - ImageViews::kNumberBits),
              "a view fits in the bits above a number");
}  // namespace

gpu::ImageViews image_views(const ShardOptions& options, const Dataset& data) {
  return {.crop = options.crop, .flip = options.flip, .height = data.height, .width = data.width};
}

BatchOrder::BatchOrder(const std::vector<std::uint32_t>& shard, int batch, int peer,
                       std::uint64_t seed, const gpu::ImageViews& views)
    : shard_(shard),
      order_(shard),
      views_(views),
      batch_(batch > 0 ? batch : static_cast<int>(shard.size())),
      peer_(static_cast<std::uint32_t>(peer)),
      seed_(seed),
      per_epoch_(0),
      epoch_(batch > 0 ? kNoEpoch : 0),
      whole_(batch == 0) {
  GOSSAMER_CHECK(batch >= 0 && !shard.empty() && static_cast<std::size_t>(batch_) <= shard.size(),
                 "make_shards refuses shards smaller than a batch");
  per_epoch_ = shard.size() / static_cast<std::size_t>(batch_);
}

std::span<const std::uint32_t> BatchOrder::batch(std::uint64_t step) {
  const std::uint64_t epoch = step / per_epoch_;
  if (!whole_ && epoch != epoch_) {
    order_ = shard_;
    RandomStream(seed_, peer_, Purpose::shuffle, epoch).shuffle(order_);
    epoch_ = epoch;
  }
  const auto batch = std::span<const std::uint32_t>(order_).subspan(
      step % per_epoch_ * static_cast<std::size_t>(batch_), static_cast<std::size_t>(batch_));
  if (!views_.on()) return batch;
  seen_.clear();
  RandomStream random(seed_, peer_, Purpose::image_view, step);
  for (const std::uint32_t sample : batch)
    seen_.push_back(gpu::ImageViews::index(sample, random.below(views_.count())));
  return seen_;
}

}  // namespace gossamer::train
