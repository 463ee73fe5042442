// The file of a run folder that keeps what the peers have agreed on where each has data of its own
// (data.partition = "own"): size and moments of every peer's shard.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "train/shard_summary.hpp"

namespace gossamer::peer {

using Shards = std::vector<train::ShardSummary>;  ///< by peer

/// Writes the shards of all peers to `folder`, in the file of the process whose lowest node is
/// `node`. A run that is `resumed` compares them with those that stand in the folder, if there are
/// any. Errors: (data) the disk; as of read_shards().
Status record_shards(const std::filesystem::path& folder, int node, const std::string& run_id,
                     const Shards& shards, std::size_t features, bool resumed);

/// Reads the shards that record_shards() wrote: the file of `node`, or else that of another process
/// in the same folder. `own`: shards that this process knows, those of others with 0 samples;
/// `features`: moments of each shard. Errors: (data) there is no such file, it is damaged, or one
/// of its shards is unlike that of `own`, whose files have changed since; (invalid) it is of
/// another run.
Result<Shards> read_shards(const std::filesystem::path& folder, int node, const std::string& run_id,
                           const Shards& own, std::size_t features);

/// The shards in `text`, the content of such a file named `path`, of a run of `peers` peers whose
/// shards have the moments of `features` features. Errors (data): it is damaged; (invalid): it is
/// of another run.
Result<Shards> parse_shards(std::string_view text, const std::filesystem::path& path,
                            const std::string& run_id, std::size_t peers, std::size_t features);

}  // namespace gossamer::peer
