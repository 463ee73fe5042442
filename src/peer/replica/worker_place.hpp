// Which part of which replica a process holds, where each worker of a cut model is in a process of
// its own.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "peer/config/config.hpp"
#include "peer/setup/local_rank.hpp"

namespace gossamer::peer {

struct WorkerPlace {
  int replica = 0;  ///< id of the peer
  int part = 0;
  /// "2.1"
  std::string name() const;
};

/// The worker of this number among all, from 0, in the order 0.0, 0.1, …, 1.0, …, where replicas
/// have `parts` workers.
WorkerPlace worker_at(int number, int parts);

/// The worker that `option` names, or, if it is empty, GOSSAMER_ID: "2.1" is part 1 of replica 2.
/// If there is neither, and a launcher started as many processes as the cut model has workers, the
/// one of this rank, in the order 0.0, 0.1, …, 1.0, …. None if the process holds whole peers.
/// `origin`: name of the option in messages. Error (invalid): not of this form; processes of a cut
/// model that are more than the peers, and not as many as the workers.
Result<std::optional<WorkerPlace>> find_worker(const Config& config, const std::string& option,
                                               const std::string& origin,
                                               const Environment& environment);

/// Whether the run has this worker, and lets workers be in processes of their own. Error (invalid):
/// names the key, and says what would do.
Status check_worker(const Config& config, const WorkerPlace& worker);

/// The configuration of the network of the workers that hold this part, one of each replica, and
/// mix it: its peers are the replicas, and [net] is as of part_options(). The run folder, the
/// rendezvous and the folder of checkpoints are folders of the name part1of2 in those of `config`.
/// The workers of part 0 serve the page of the run.
Config part_config(Config config, const WorkerPlace& worker);

/// A line that says that this worker serves no page, though net.http asks for one; else empty.
std::string page_note(const Config& config, const WorkerPlace& worker);

/// The configuration of the network of the workers of this replica, whose peers are the parts. The
/// run is named <run id>-replica2, and the rendezvous is a folder of that name in that of `config`;
/// [net] is as of replica_options().
Config replica_config(Config config, const WorkerPlace& worker);

}  // namespace gossamer::peer
