#include "peer/runtime/shard_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "net/wire/frame.hpp"

namespace gossamer::peer {
namespace {

using train::ShardSummary;

template <class Number>
void append(std::string& bytes, Number number) {
  static_assert(sizeof(Number) == 8);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

}  // namespace

Result<ShardAgreement> ShardAgreement::make(Shards shards, std::size_t features) {
  const std::size_t peers = shards.size(), sizes = 8 * peers;
  const std::size_t room =
      sizes < net::kMaxContributionBytes ? net::kMaxContributionBytes - sizes : 0;
  const std::size_t features_per_page = room / (16 * peers);
  if (sizes > net::kMaxContributionBytes || (features > 0 && features_per_page == 0))
    return invalid_error(fmt::format(
        "own data: the processes of a network exchange the sizes and moments of all shards, which "
        "for {} peers do not fit into a message; at most {} can",
        peers, net::kMaxContributionBytes / (features > 0 ? 24 : 8)));
  return ShardAgreement(std::move(shards), features, features_per_page);
}

ShardAgreement::ShardAgreement(Shards shards, std::size_t features, std::size_t features_per_page)
    : features_(features), features_per_page_(std::max<std::size_t>(features_per_page, 1)) {
  pages_ = static_cast<int>(
      std::max<std::size_t>(1, (features_ + features_per_page_ - 1) / features_per_page_));
  for (ShardSummary& shard : shards) {
    const bool known = shard.samples > 0;
    shard.means.resize(features_), shard.variances.resize(features_);
    shards_.push_back(
        {std::move(shard), std::vector<bool>(static_cast<std::size_t>(pages_), known)});
  }
}

std::size_t ShardAgreement::first_feature(int page) const {
  return std::min(features_, static_cast<std::size_t>(page) * features_per_page_);
}
std::size_t ShardAgreement::end_feature(int page) const { return first_feature(page + 1); }

std::string ShardAgreement::contribution(int page) const {
  std::string bytes;
  for (const auto& [summary, pages] : shards_) {
    append<std::uint64_t>(bytes, pages[static_cast<std::size_t>(page)] ? summary.samples : 0);
    for (std::size_t f = first_feature(page); f < end_feature(page); ++f)
      append(bytes, summary.means[f]), append(bytes, summary.variances[f]);
  }
  return bytes;
}

Status ShardAgreement::merge(int page, const std::string& bytes) {
  const Error nonsense{ErrorKind::lost_peer, "its summary of the peers' shards makes no sense"};
  const std::size_t first = first_feature(page), count = end_feature(page) - first;
  const std::size_t numbers = 1 + 2 * count;  // of a peer
  if (bytes.size() != 8 * numbers * shards_.size()) return nonsense;
  for (std::size_t p = 0; p < shards_.size(); ++p) {
    auto& [summary, pages] = shards_[p];
    const std::size_t at = p * numbers;
    const auto samples = number_at<std::uint64_t>(bytes, at);
    if (samples == 0) continue;
    if (!train::is_shard_size(samples)) return nonsense;
    const bool known = pages[static_cast<std::size_t>(page)];
    if (summary.samples > 0 && samples != summary.samples) return contradiction(p);
    for (std::size_t k = 0; k < count; ++k) {
      const auto mean = number_at<double>(bytes, at + 1 + 2 * k),
                 variance = number_at<double>(bytes, at + 2 + 2 * k);
      double &known_mean = summary.means[first + k], &known_variance = summary.variances[first + k];
      if (!train::is_moment(mean, variance)) return nonsense;
      if (known && (mean != known_mean || variance != known_variance)) return contradiction(p);
      known_mean = mean, known_variance = variance;
    }
    summary.samples = samples;
    pages[static_cast<std::size_t>(page)] = true;
  }
  return {};
}

/// The first summary was merged unverified: it may be the wrong one, or the partner's may be.
Error ShardAgreement::contradiction(std::size_t peer) {
  return {ErrorKind::lost_peer,
          fmt::format("its summary of peer {}'s shard contradicts the one of this process, which "
                      "may come from another peer",
                      peer)};
}

Result<Shards> ShardAgreement::outcome() const {
  Shards shards;
  for (const auto& [summary, pages] : shards_) {
    if (std::ranges::find(pages, false) != pages.end())
      return Error{ErrorKind::lost_peer,
                   fmt::format("no process has sent the size of peer {}'s shard", shards.size())};
    shards.push_back(summary);
  }
  return shards;
}

}  // namespace gossamer::peer
