// What the processes of a network learn of each other's data before the first round, where each
// peer has its own (data.partition = "own"): sizes and moments of the shards, in the all-gather at
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
  /// Adds what a partner knows of a page. Error (lost_peer): a clause that says how the
  /// contribution makes no sense.
  Status merge(int page, const std::string& contribution);
  /// After the all-gather of all pages. Error (lost_peer): a shard that nobody knows.
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
