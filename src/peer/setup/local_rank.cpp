#include "peer/setup/local_rank.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/io/address.hpp"
#include "peer/setup/launchers.hpp"

namespace gossamer::peer {
namespace {

std::optional<int> read_count(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  int value = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure != std::errc() || end != digits.data() + digits.size() || value < 0)
    return std::nullopt;
  return value;
}

/// The rank among the processes whose address has the same host, in the order of their peers.
std::optional<LocalRank> rank_by_address(const std::vector<int>& ids,
                                         const std::vector<std::string>& addresses) {
  if (static_cast<std::size_t>(ids.back()) >= addresses.size()) return std::nullopt;
  const std::string& own = addresses[static_cast<std::size_t>(ids.front())];
  const auto here = net::parse_address(own);
  if (!here.ok()) return std::nullopt;
  LocalRank result{.rank = 0, .processes = 0};
  std::vector<std::string> seen;
  for (const std::string& address : addresses) {
    if (std::find(seen.begin(), seen.end(), address) != seen.end()) continue;
    const auto parsed = net::parse_address(address);
    if (!parsed.ok() || parsed->host != here->host) continue;
    if (address == own) result.rank = result.processes;
    ++result.processes;
    seen.push_back(address);
  }
  return result;
}

LocalRank find_rank(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                    const Environment& environment) {
  LocalRank result{.rank = ids.front() / static_cast<int>(ids.size()), .processes = 0};
  for (const Launcher& launcher : kLaunchers)
    if (const auto rank = read_count(environment, launcher.local_rank)) {
      result = {.rank = *rank,
                .processes = read_count(environment, launcher.local_size).value_or(0),
                .of_launcher = true};
      break;
    }
  if (result.processes > 0) return result;
  if (static_cast<int>(ids.size()) >= peers) return {};
  return rank_by_address(ids, net.peers).value_or(result);
}

}  // namespace

LocalRank find_local_rank(const std::vector<int>& ids, int peers, const net::NetOptions& net,
                          const Environment& environment) {
  LocalRank result = find_rank(ids, peers, net, environment);
  result.hosted = ids;
  return result;
}

}  // namespace gossamer::peer
