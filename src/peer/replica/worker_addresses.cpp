#include "peer/replica/worker_addresses.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net/io/address.hpp"

namespace gossamer::peer {
namespace {

constexpr int kLargestPort = std::numeric_limits<std::uint16_t>::max();

/// Port 0, which is any port, stays.
net::Address after(net::Address address) {
  if (address.port > 0) ++address.port;
  return address;
}

void move_to_port_after(std::string& text) {
  if (const auto address = net::parse_address(text); address.ok())
    text = net::to_string(after(*address));
}

/// net.peers with an entry for each worker.
net::NetOptions expanded(const Config& config) {
  net::NetOptions options = config.net;
  net::expand_addresses(options, config.run.peers * config.model.split.workers());
  return options;
}

void choose(std::vector<std::string>& entries, int first, int step, int count) {
  if (entries.empty()) return;
  std::vector<std::string> chosen;
  for (int k = 0; k < count; ++k)
    chosen.push_back(std::move(entries.at(static_cast<std::size_t>(first + k * step))));
  entries = std::move(chosen);
}

Status check_port(const std::string& text, const std::string& name) {
  const auto address = net::parse_address(text);
  if (!address.ok()) return invalid_error(fmt::format("{}: {}", name, address.error().message));
  if (address->port == kLargestPort)
    return invalid_error(
        fmt::format("{}: a worker listens on the port after {} too, and there is none: give a "
                    "lower one",
                    name, text));
  return {};
}

/// No two workers listen on one port.
Status check_ports(const std::vector<std::string>& peers, int parts) {
  std::map<std::string, int> owners;
  for (int i = 0; const std::string& text : peers) {
    const std::string name = fmt::format("net.peers[{}]", i);
    GOSSAMER_TRY_STATUS(check_port(text, name));
    const net::Address address = net::parse_address(text).value();
    if (address.port == 0)
      return invalid_error(
          fmt::format("{}: port 0 cannot be called; give a port, or set net.rendezvous", name));
    for (const net::Address& port : {address, after(address)}) {
      const auto [owner, is_new] = owners.emplace(net::to_string(port), i);
      if (!is_new)
        return invalid_error(fmt::format(
            "{}: worker {} listens on its port and on the next, and so does worker {}, so "
            "both would listen on {}: leave a port between them",
            name, worker_at(i, parts).name(), worker_at(owner->second, parts).name(),
            owner->first));
    }
    ++i;
  }
  return {};
}

}  // namespace

Status check_worker_addresses(const Config& config) {
  const int replicas = config.run.peers, parts = config.model.split.workers();
  if (!config.net.seeds.empty() || !config.net.reach.advertise.empty())
    return invalid_error(
        fmt::format("{}: workers find each other by a folder, net.rendezvous, or by an address of "
                    "each, net.peers",
                    config.net.seeds.empty() ? "net.advertise" : "net.seeds"));
  const net::NetOptions options = expanded(config);
  net::NetOptions with_members = options;
  GOSSAMER_TRY_STATUS(add_addresses(with_members));
  if (options.peers.empty() && !with_members.peers.empty())
    return invalid_error(
        fmt::format("net.members: {} has addresses of peers, and each worker has one of its own: "
                    "give these in net.peers, or leave the addresses out and set net.rendezvous",
                    config.net.members));
  if (!options.listen.empty()) GOSSAMER_TRY_STATUS(check_port(options.listen, "net.listen"));
  if (options.peers.empty() && !options.keys.empty())
    return invalid_error(
        "net.keys: they are in the order of net.peers, which is empty: name a file of the keys in "
        "net.members");
  if (options.peers.empty() && !options.rendezvous.empty()) return {};
  if (options.peers.size() != static_cast<std::size_t>(replicas * parts))
    return invalid_error(fmt::format(
        "net.peers: {} addresses for {} workers ({} replicas of {}): give one for each, "
        "in the order 0.0, 0.1, and so on, or set net.rendezvous to a folder that all "
        "see",
        options.peers.size(), replicas * parts, replicas, parts));
  if (!options.keys.empty() && options.keys.size() != options.peers.size())
    return invalid_error(fmt::format("net.keys: {} keys for {} addresses in net.peers",
                                     options.keys.size(), options.peers.size()));
  return check_ports(options.peers, parts);
}

net::NetOptions part_options(const Config& config, int part) {
  net::NetOptions options = expanded(config);
  const int replicas = config.run.peers, parts = config.model.split.workers();
  choose(options.peers, part, parts, replicas);
  choose(options.keys, part, parts, replicas);
  return options;
}

net::NetOptions replica_options(const Config& config, int replica) {
  net::NetOptions options = expanded(config);
  const int parts = config.model.split.workers();
  choose(options.peers, replica * parts, 1, parts);
  choose(options.keys, replica * parts, 1, parts);
  for (std::string& address : options.peers) move_to_port_after(address);
  move_to_port_after(options.listen);
  return options;
}

net::MemberList workers_of(const net::MemberList& members, const WorkerPlace& worker, int parts) {
  std::map<int, net::Member> workers;
  if (const net::Member* replica = members.find(worker.replica))
    for (int part = 0; part < parts; ++part)
      workers[part] = {.keys = replica->keys, .expired = replica->expired};
  return net::MemberList(std::move(workers));
}

Result<std::optional<net::Credentials>> replica_credentials(const net::NetOptions& options,
                                                            const WorkerPlace& worker, int parts) {
  if (!options.keys.empty()) return load_credentials(options, {worker.part});
  GOSSAMER_TRY(auto credentials, load_credentials(options, {worker.replica}));
  if (credentials) credentials->members = workers_of(credentials->members, worker, parts);
  return credentials;
}

}  // namespace gossamer::peer
