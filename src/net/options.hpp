// The [net] section of a configuration. Each machine has its own.
#pragma once

#include <string>
#include <vector>

#include "base/parameter.hpp"
#include "net/io/address.hpp"

namespace gossamer::net {

/// Of processes that cannot call each other (net/relay/).
struct ReachOptions {
  /// Where others call this process, if that is not where it listens; or kNoAddress.
  std::string advertise;
  bool relay = true;  ///< passes on the bytes of peers that cannot call each other
};

struct NetOptions {
  /// One address per peer, in order of their ids; the peers of one process share theirs. Or one
  /// with "{peer}".
  std::vector<std::string> peers;
  /// The public key of each peer, in the order of `peers`; empty: none, or those of `members`.
  std::vector<std::string> keys;
  std::string members;               ///< file of the members' keys, which is read again on change
  std::string key;                   ///< file of this process's private key; empty: no encryption
  std::string listen;                ///< replaces the address of the hosted peers
  std::string rendezvous;            ///< a folder that all processes see, instead of addresses
  std::vector<std::string> seeds;    ///< addresses of some processes, instead of all
  double join_timeout = 120;         ///< seconds: enough to start all machines by hand
  double failure_timeout = 2;        ///< seconds: four heartbeats
  double row_timeout = 1800;         ///< seconds: gossip/exchange/row_deadline.hpp
  std::string on_loss = "continue";  ///< continue | stop: what the run does when a peer is lost
  bool insecure = false;             ///< without keys: allows addresses beyond this machine
  /// Size of the chunks of a row: large enough for few system calls, small enough to mix a row
  /// while it is received.
  int chunk_kib = 1024;
  int window = 2;                      ///< chunks: one is read while another is mixed
  std::string shared_memory = "auto";  ///< auto | off: rows between processes of one machine
  std::string share_figures = "auto";  ///< auto | on | off: for pages of other processes
  ReachOptions reach;                  ///< how others reach this process, or each other through it
  std::string http;                    ///< where the page of the run is served; empty: nowhere
};

/// The value of net.advertise of a process that cannot be called.
inline constexpr const char* kNoAddress = "none";

/// The declaration of the options, for configuration files, --set and `gossamer list`.
const ParameterSet<NetOptions>& net_parameters();

/// Fills net.peers where it is a single entry with "{peer}": that stands for the id of each of
/// `peers` peers.
void expand_addresses(NetOptions& options, int peers);

/// Where the process that hosts `hosted` listens. Without an address of its own: on every interface
/// if the process has a key or is allowed to do without, otherwise on this machine's alone.
Result<Address> listen_address(const NetOptions& options, const std::vector<int>& hosted);

/// Whether this process may use an address. Error (invalid): other machines can reach it, there are
/// no keys, and net.insecure does not allow that; the sentence begins with `name` and the address.
Status check_reach(const NetOptions& options, const Address& address, const std::string& name);

/// The part of validate() that is about net.seeds and net.advertise.
Status validate_seeds(const NetOptions& options);

/// Checks what the declaration cannot: addresses and keys, their number, and that an address that
/// other machines can reach has keys or is allowed without. `peers` is the size of the network;
/// `hosted` are the peers of this process, ascending. Error (invalid): names the key and says what
/// to set.
Status validate(const NetOptions& options, int peers, const std::vector<int>& hosted);

}  // namespace gossamer::net
