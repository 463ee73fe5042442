#include "net/options.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace gossamer::net {

namespace {

/// Adds the keys of times, and of what follows when one is over.
ParameterSet<NetOptions> with_timeouts(ParameterSet<NetOptions> set) {
  return set
      .add("join_timeout", &NetOptions::join_timeout,
           {.help = "how long to wait for all peers at the start",
            .minimum = 0,
            .maximum = 1e7,
            .minimum_excluded = true,
            .unit = "s"})
      .add("failure_timeout", &NetOptions::failure_timeout,
           {.help = "a peer that sends nothing for this time is lost, and suspected after half of "
                    "it; also the longest downtime of a connection that breaks again and again",
            .minimum = 0.05,
            .maximum = 1e6,
            .unit = "s"})
      .add("row_timeout", &NetOptions::row_timeout,
           {.help = "a neighbour whose rows a round has waited for this long is lost, although "
                    "its process answers; longer than the slowest round of any peer",
            .minimum = 2,
            .maximum = 1e7,
            .unit = "s"})
      .add("on_loss", &NetOptions::on_loss,
           {.help = "when a peer is lost: continue without it, if the algorithm tolerates that "
                    "(it only mixes), or stop",
            .choices = {"continue", "stop"}});
}

ParameterSet<NetOptions> with_reach(ParameterSet<NetOptions> set) {
  return std::move(set)
      .add("advertise", &NetOptions::reach, &ReachOptions::advertise,
           {.help = "host:port at which other processes call this one, where it is not the "
                    "address that it listens on: that of a router that forwards the port. "
                    "none: no process can call this one, which has an id or a key; it calls "
                    "the others, and reaches those that cannot be called through them"})
      .add("relay", &NetOptions::reach, &ReachOptions::relay,
           {.help = "whether this process passes on what two others send each other that cannot "
                    "call one another"});
}

ParameterSet<NetOptions> with_page(ParameterSet<NetOptions> set) {
  return std::move(set)
      .add("http", &NetOptions::http,
           {.help = "host:port at which this process serves a page that shows the run, "
                    "/metrics for Prometheus, and /health; port 0: any free one. Whoever "
                    "reaches the address can read them: 127.0.0.1 is of this machine alone. "
                    "gossamer run serves them too"})
      .add("share_figures", &NetOptions::share_figures,
           {.help = "whether the newest records of a process's log go to pages of other "
                    "processes (net.http), and theirs to its own page: auto: unless [privacy] "
                    "is set or data.partition is own. Losses tell of the samples",
            .choices = {"auto", "on", "off"}});
}

}  // namespace

const ParameterSet<NetOptions>& net_parameters() {
  static const auto set = with_page(with_reach(with_timeouts(
      ParameterSet<NetOptions>()
          .add("peers", &NetOptions::peers,
               {.help = "one host:port per peer, in order of their ids, then one per server of the "
                        "algorithm, if it has any; the peers of one process share an address. "
                        "Or one entry for all, in which {peer} stands for the id, where each "
                        "process hosts one peer: [\"node{peer}:7000\"]. With keys, each entry is "
                        "{address = \"host:port\", "
                        "key = \"…\"}"})
          .add("keys", &NetOptions::keys,
               {.help = "public key of each peer, in the order of net.peers, whose entries give it "
                        "too; the peers of one process share a key"})
          .add("members", &NetOptions::members,
               {.help = "file with the id, the public key and perhaps the address of each peer, in "
                        "place of net.keys; it is read again when it changes, and on SIGHUP",
                .path = true})
          .add("key", &NetOptions::key,
               {.help = "file with the private key of this process (gossamer keygen makes it): "
                        "every link is encrypted, and both ends prove their keys",
                .path = true})
          .add("listen", &NetOptions::listen,
               {.help = "host:port to listen on instead of the own entry of net.peers; port 0: any "
                        "free port. Without net.peers: any port, on every IPv4 interface if the "
                        "process has a key or net.insecure is set, otherwise on 127.0.0.1; the "
                        "address that it announces is then the name of the machine"})
          .add("rendezvous", &NetOptions::rendezvous,
               {.help = "folder that all processes see; each writes its address there, so that "
                        "net.peers is not needed",
                .path = true})
          .add("seeds", &NetOptions::seeds,
               {.help = "host:port of some processes of the network, in place of net.peers: each "
                        "process finds the others from any of them that answers. A process of "
                        "such a machine listens there, unless net.listen is set"})
          .add("insecure", &NetOptions::insecure,
               {.help = "without keys, use addresses that other machines can reach, although links "
                        "are then neither encrypted nor authenticated"})
          .add("chunk_kib", &NetOptions::chunk_kib,
               {.help = "size of the chunks in which rows are sent",
                .minimum = 4,
                .maximum = 4096,
                .unit = "KiB"})
          .add("window", &NetOptions::window,
               {.help = "chunks buffered per connection", .minimum = 1, .maximum = 64})
          .add("shared_memory", &NetOptions::shared_memory,
               {.help =
                    "auto: under algorithm.policy sync, a process reads the rows of another one of "
                    "the same machine and user in that process's memory; off: all rows are "
                    "sent over TCP",
                .choices = {"auto", "off"}}))));
  return set;
}

void expand_addresses(NetOptions& options, int peers) {
  constexpr std::string_view kId = "{peer}";
  if (options.peers.size() != 1 || options.peers.front().find(kId) == std::string::npos) return;
  const std::string pattern = options.peers.front();
  options.peers.clear();
  for (int peer = 0; peer < peers; ++peer) {
    std::string address = pattern;
    for (std::size_t at = 0; (at = address.find(kId, at)) != std::string::npos;)
      address.replace(at, kId.size(), std::to_string(peer));
    options.peers.push_back(std::move(address));
  }
}

Result<Address> listen_address(const NetOptions& options, const std::vector<int>& hosted) {
  if (!options.listen.empty()) return parse_address(options.listen);
  const bool reachable = !options.key.empty() || options.insecure;
  if (options.peers.empty()) return Address{reachable ? "0.0.0.0" : "127.0.0.1", 0};
  return parse_address(options.peers.at(static_cast<std::size_t>(hosted.front())));
}

namespace {

Status validate_keys(const NetOptions& options) {
  const bool members_have_keys = !options.keys.empty() || !options.members.empty();
  if (!options.keys.empty() && !options.members.empty())
    return invalid_error("net.keys: net.members gives the keys too: remove one of them");
  if (!options.keys.empty() && options.keys.size() != options.peers.size())
    return invalid_error(fmt::format("net.keys: {} keys for {} addresses in net.peers",
                                     options.keys.size(), options.peers.size()));
  if (!options.key.empty() && !members_have_keys)
    return invalid_error(
        "net.key: the public keys of the peers are missing: give them in net.peers, as {address = "
        "\"host:port\", key = \"…\"}, or in a file that net.members names");
  if (options.key.empty() && members_have_keys)
    return invalid_error(
        "net.key: the peers have keys, and this process has none: make one with gossamer keygen "
        "FILE, and name the file in net.key");
  return {};
}

Status validate_advertise(const NetOptions& options) {
  if (options.reach.advertise.empty()) return {};
  if (!options.peers.empty())
    return invalid_error(
        "net.advertise: net.peers says at which addresses the peers are called: put the address "
        "there, and set net.listen to the one to listen on");
  if (options.reach.advertise == kNoAddress)
    return !options.rendezvous.empty() && options.seeds.empty()
               ? invalid_error("net.advertise: none needs net.seeds, and not net.rendezvous alone")
               : Status();
  const auto address = parse_address(options.reach.advertise);
  if (!address.ok())
    return invalid_error("net.advertise: " + address.error().message + "; or none");
  if (address->port == 0 || is_any_host(*address))
    return invalid_error(fmt::format(
        "net.advertise: {} cannot be called: give the address and the port that other machines use",
        options.reach.advertise));
  return check_reach(options, *address, "net.advertise:");
}

}  // namespace

Status check_reach(const NetOptions& options, const Address& address, const std::string& name) {
  if (is_loopback(address) || options.insecure || !options.key.empty()) return {};
  return invalid_error(fmt::format(
      "{} {} can be reached from other machines, and without keys links are neither encrypted nor "
      "authenticated: make a key for each process with gossamer keygen, or set net.insecure = true "
      "if you trust that network",
      name, to_string(address)));
}

Status validate_seeds(const NetOptions& options) {
  GOSSAMER_TRY_STATUS(validate_advertise(options));
  for (std::size_t i = 0; i < options.seeds.size(); ++i) {
    const auto address = parse_address(options.seeds[i]);
    if (!address.ok())
      return invalid_error(fmt::format("net.seeds[{}]: {}", i, address.error().message));
    if (address->port == 0)
      return invalid_error(
          fmt::format("net.seeds[{}]: port 0 cannot be called; give the port of a process", i));
    GOSSAMER_TRY_STATUS(check_reach(options, *address, fmt::format("net.seeds[{}]:", i)));
  }
  return {};
}

Status validate(const NetOptions& options, int peers, const std::vector<int>& hosted) {
  GOSSAMER_TRY_STATUS(validate_keys(options));
  if (options.peers.empty() && options.rendezvous.empty() && options.seeds.empty())
    return invalid_error(
        fmt::format("net.peers: give the addresses of the {} peers, or a folder in "
                    "net.rendezvous, or the address of one process in net.seeds, or an address "
                    "of each in net.members",
                    peers));
  if (!options.peers.empty() && options.peers.size() != static_cast<std::size_t>(peers))
    return invalid_error(
        fmt::format("net.peers: {} addresses for {} peers", options.peers.size(), peers));

  std::vector<Address> addresses;
  for (std::size_t i = 0; i < options.peers.size(); ++i) {
    auto address = parse_address(options.peers[i]);
    if (!address.ok())
      return invalid_error(fmt::format("net.peers[{}]: {}", i, address.error().message));
    if (address->port == 0)
      return invalid_error(fmt::format(
          "net.peers[{}]: port 0 cannot be called; give a port, or use net.rendezvous", i));
    addresses.push_back(*address);
  }
  for (std::size_t i = 0; i < addresses.size() && !hosted.empty(); ++i)
    if (const int own = hosted.front(), other = static_cast<int>(i);
        addresses[i] == addresses[static_cast<std::size_t>(own)] &&
        std::ranges::find(hosted, other) == hosted.end())
      return invalid_error(fmt::format(
          "net.peers: peers {} and {} have one address, {}, and this process hosts peer {} only; "
          "give each process an address, or this one both ids",
          own, other, options.peers[i], own));
  if (!addresses.empty() && options.listen.empty())
    for (int peer : hosted)
      if (addresses[static_cast<std::size_t>(peer)] !=
          addresses[static_cast<std::size_t>(hosted.front())])
        return invalid_error(fmt::format(
            "net.peers: peers {} and {} are in one process but have two addresses; give them one, "
            "or set net.listen",
            hosted.front(), peer));

  auto listen = listen_address(options, hosted);
  if (!listen.ok()) return invalid_error("net.listen: " + listen.error().message);
  if (listen->port == 0 && options.rendezvous.empty() && options.seeds.empty())
    return invalid_error(
        "net.listen: with port 0 other processes cannot know the port: set net.rendezvous or "
        "net.seeds");
  GOSSAMER_TRY_STATUS(check_reach(options, *listen, "net.listen:"));
  for (std::size_t i = 0; i < addresses.size(); ++i)
    GOSSAMER_TRY_STATUS(check_reach(options, addresses[i], fmt::format("net.peers[{}]:", i)));
  return validate_seeds(options);
}

}  // namespace gossamer::net
