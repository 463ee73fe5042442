// What stands between this process and the addresses of other processes: whether their names
// resolve, whether a process listens there, and, with keys, whether both ends know each other's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/io/real_scheduler.hpp"
#include "net/tls/members.hpp"

namespace gossamer::net {

enum class ProbeOutcome {
  listens,     ///< a process listens there; with keys it is the peer, and knows this process's key
  no_process,  ///< the machine answers, and no process listens there
  no_answer,   ///< nothing has answered within the deadline
  wrong_key,   ///< the process there shows the key of another one
  refused,     ///< the process there does not know the key of this one
  failed       ///< the name does not resolve, there is no route, or the process speaks no TLS
};

struct ProbeResult {
  ProbeOutcome outcome = ProbeOutcome::failed;
  std::string text;  ///< a clause: what was seen
};

struct ProbeRequest {
  int peer = 0;
  std::string address;
};

/// Connects to many addresses at once and sends nothing but, with credentials, a handshake of TLS:
/// a network that runs takes it for a check of its ports. Takes up to `deadline` to resolve the
/// name and connect, and with credentials as long again. In the order of the requests. Thread: any.
std::vector<ProbeResult> probe_addresses(const std::vector<ProbeRequest>& requests,
                                         const std::optional<Credentials>& credentials,
                                         gossip::Time deadline);

}  // namespace gossamer::net
