#include "peer/runtime/process_place.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.hpp"

namespace gossamer::peer {
namespace {

/// Names of a process's number on its machine, and of how many there are, in the order in which
/// they are believed.
struct Launcher {
  const char* rank;
  const char* size;
};
constexpr Launcher kLaunchers[] = {{"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                                   {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                   {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<int> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc() || end != digits.data() + digits.size() || value < 0)
    return std::nullopt;
  return value;
}

/// The place that the addresses tell: the processes with this one's host, in the order of their
/// peers.
std::optional<ProcessPlace> place_by_addresses(const std::vector<int>& ids,
                                               const std::vector<std::string>& addresses) {
  if (static_cast<std::size_t>(ids.back()) >= addresses.size()) return std::nullopt;
  const std::string& mine = addresses[static_cast<std::size_t>(ids.front())];
  const auto here = net::parse_address(mine);
  if (!here.ok()) return std::nullopt;
  ProcessPlace place{.process = 0, .processes = 0};
  std::vector<std::string> seen;
  for (const std::string& address : addresses) {
    if (std::find(seen.begin(), seen.end(), address) != seen.end()) continue;
    const auto parsed = net::parse_address(address);
    if (!parsed.ok() || parsed->host != here->host) continue;
    if (address == mine) place.process = place.processes;
    ++place.processes;
    seen.push_back(address);
  }
  return place;
}

ProcessPlace find_place(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                        const Environment& environment) {
  ProcessPlace place{.process = ids.front() / static_cast<int>(ids.size()), .processes = 0};
  for (const Launcher& launcher : kLaunchers)
    if (const auto rank = number(environment, launcher.rank)) {
      place = {.process = *rank, .processes = number(environment, launcher.size).value_or(0)};
      break;
    }
  if (place.processes > 0) return place;
  if (static_cast<int>(ids.size()) >= peers) return {};
  return place_by_addresses(ids, net.peers).value_or(place);
}

}  // namespace

ProcessPlace process_place(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                           const Environment& environment) {
  ProcessPlace place = find_place(ids, peers, net, environment);
  place.nodes = static_cast<int>(ids.size());
  return place;
}

}  // namespace gossamer::peer
