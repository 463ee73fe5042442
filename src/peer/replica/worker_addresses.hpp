// Where workers of a cut model listen and are called. Each is in two networks, of its part and of
// its replica, and listens on two ports.
#pragma once

#include <optional>

#include "base/result.hpp"
#include "net/options.hpp"
#include "peer/config/config.hpp"
#include "peer/replica/worker_place.hpp"
#include "peer/setup/credentials.hpp"

namespace gossamer::peer {

/// Whether workers of this run can find each other: by net.rendezvous, or by net.peers with an
/// address for each worker, in the order 0.0, 0.1, …, 1.0, …: it listens there in the network of
/// its part, and on the port after in that of its replica. Error (invalid): names the key.
Status check_worker_addresses(const Config& config);

/// [net] of the network of all workers that hold this part: of net.peers and net.keys their
/// entries, by replica. Of a configuration that check_worker_addresses() accepts.
net::NetOptions part_options(const Config& config, int part);

/// [net] of the network of the workers of this replica, by part: the port after each address, and
/// after that of net.listen. Of a configuration that check_worker_addresses() accepts.
net::NetOptions replica_options(const Config& config, int replica);

/// The keys of the workers of a replica, by part, of a list of replicas: each has those of its
/// replica.
net::MemberList workers_of(const net::MemberList& members, const WorkerPlace& worker, int parts);

/// The keys of the workers of a replica, by part, and this worker's own; none without keys.
/// `options`: as of replica_options(). Errors as of load_credentials().
Result<std::optional<net::Credentials>> replica_credentials(const net::NetOptions& options,
                                                            const WorkerPlace& worker, int parts);

}  // namespace gossamer::peer
