// The summaries of shards that the processes of a network exchange before the first round if each
// peer has its own data (data.partition = "own"): sizes and moments, in the all-gather at
// the start. A process that joins later reads them
// from a run folder (peer/storage/shards_file.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/storage/shards_file.hpp"

namespace gossamer::peer {

/// What one process knows of the shards of all peers. The lists of features are exchanged in pages
/// that fit into a contribution, one after the other, all of them by every process. Pure.
class ShardAgreement {
 public:
  /// `shards`: by peer, those of other processes with 0 samples. `features`: moments of each
  /// summary; 0 if features are not standardised. Error (invalid): more peers than a contribution
  /// has room for.
  static Result<ShardAgreement> make(Shards shards, std::size_t features);

  int pages() const { return pages_; }
  /// What this process knows of a page, as net::AllGather::contribution: for each peer the number
  /// of samples and the moments of the page's features, in 8 bytes each, lowest byte first.
  std::string contribution(int page) const;
  /// Merges a partner's contribution to a page. Error (lost_peer), worded as a clause: the
  /// contribution is invalid or contradicts an earlier one.
  Status merge(int page, const std::string& contribution);
  /// After the all-gather of all pages. Error (lost_peer): a shard whose summary is missing.
  Result<Shards> outcome() const;

 private:
  ShardAgreement(Shards shards, std::size_t features, std::size_t features_per_page);
  static Error contradiction(std::size_t peer);
  std::size_t first_feature(int page) const;
  std::size_t end_feature(int page) const;

  struct Known {
    train::ShardSummary summary;
    std::vector<bool> pages;  ///< that are known
  };
  std::vector<Known> shards_;
  std::size_t features_, features_per_page_;
  int pages_;
};

}  // namespace gossamer::peer
