#include "peer/launch/launch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>

#include "net/io/address.hpp"
#include "peer/setup/hosted_ids.hpp"
#include "peer/setup/launchers.hpp"

namespace gossamer::peer {
namespace {

constexpr int kMaxPort = 65535;

struct Slot {
  const LaunchHost* host = nullptr;
  int index = 0;  ///< among the slots of the machine, wherever the file lists them
  int count = 0;  ///< slots of the machine
};

std::vector<Slot> slots_of(const std::vector<LaunchHost>& hosts) {
  std::vector<Slot> slots;
  std::map<std::string, int> counts;  // by address
  for (const LaunchHost& host : hosts)
    for (int s = 0; s < host.slots; ++s) slots.push_back({&host, counts[host.address]++});
  for (Slot& slot : slots) slot.count = counts[slot.host->address];
  return slots;
}

std::string ids_text(const std::vector<int>& ids) {
  return ids.size() == 1 ? fmt::format("{}", ids.front())
                         : fmt::format("{}-{}", ids.front(), ids.back());
}

/// What the processes of a launch hold.
struct Holding {
  int units = 0;  ///< peers and servers, or workers
  int parts = 0;  ///< workers of a replica; 0: no process is a worker
  int size = 0;   ///< processes
  int ports() const { return parts > 0 ? 2 : 1; }  ///< on which a process listens
  std::vector<int> units_of(int rank) const { return ids_of_rank(rank, size, units); }
  std::string name(int rank) const {
    return parts > 0 ? fmt::format("{}.{}", rank / parts, rank % parts) : ids_text(units_of(rank));
  }
};

Result<Holding> holding_of(const LaunchRequest& request) {
  std::int64_t total = 0;
  for (const LaunchHost& host : request.hosts) total += host.slots;
  const std::int64_t all_workers = std::int64_t{request.nodes} * request.workers;
  const int size = static_cast<int>(total);
  if (total <= request.nodes) return Holding{request.nodes, 0, size};
  if (total == all_workers) return Holding{size, request.workers, size};
  if (request.workers > 1)
    return invalid_error(
        fmt::format("the hosts have {} slots: give {}, and each is one worker of the {} replicas "
                    "of {}, or {} at "
                    "most, and each holds whole replicas",
                    total, all_workers, request.nodes, request.workers, request.nodes));
  return invalid_error(fmt::format(
      "the hosts have {} slots, and the network has {} node{} (peers and servers): remove {}, or "
      "set run.peers",
      total, request.nodes, request.nodes == 1 ? "" : "s", total - request.nodes));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// The shell's own input stays open beside the process, in a shell of its own that turns lines
/// into signals. Under sh, a background process has no input unless it is given one.
std::string script_of(const LaunchRequest& request, const std::vector<std::string>& variables,
                      const std::vector<std::string>& command) {
  return fmt::format(
      "exec 3<&0 </dev/null; cd {} || exit 3; unset GOSSAMER_ID; {} {} 3<&- & process=$!; "
      "(while read -r line; do kill -TERM $process; done) <&3 >/dev/null 2>&1 & reader=$!; "
      "exec 3<&-; wait $process; code=$?; kill $reader 2>/dev/null; exit $code",
      shell_quoted(request.directory), fmt::join(variables, " "), joined(command));
}

std::string listening_host(const LaunchRequest& request, const LaunchHost& host) {
  if (!request.listen.empty()) return request.listen;
  return host.address.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') quoted += "'\\''";
    else quoted += c;
  }
  return quoted + "'";
}

Result<std::vector<PlannedProcess>> plan_launch(const LaunchRequest& request) {
  GOSSAMER_TRY(const Holding holding, holding_of(request));
  const std::vector<Slot> slots = slots_of(request.hosts);
  const int size = holding.size;
  const auto port_of = [&](const Slot& slot) {
    return request.port + holding.ports() * slot.index;
  };
  std::vector<std::string> addresses;  // of the nodes, or of the workers
  for (int r = 0; r < size && request.port > 0; ++r) {
    const Slot& slot = slots[static_cast<std::size_t>(r)];
    const int port = port_of(slot);
    if (port + holding.ports() - 1 > kMaxPort)
      return invalid_error(
          fmt::format("--port: slot {} of {} would listen on port {}; choose a "
                      "lower port",
                      slot.index, slot.host->login, port));
    addresses.insert(addresses.end(), holding.units_of(r).size(),
                     net::to_string({slot.host->address, static_cast<std::uint16_t>(port)}));
  }
  const Launcher& names = kLaunchers[0];
  std::vector<PlannedProcess> planned;
  for (int r = 0; r < size; ++r) {
    const Slot& slot = slots[static_cast<std::size_t>(r)];
    std::vector<std::string> command{request.program, "peer"};
    command.insert(command.end(), request.arguments.begin(), request.arguments.end());
    if (r > 0 || request.quiet) command.emplace_back("--quiet");
    if (request.port > 0)
      for (const std::string& set :
           {fmt::format("net.peers={}", fmt::join(addresses, ",")),
            "net.listen=" + net::to_string({listening_host(request, *slot.host),
                                            static_cast<std::uint16_t>(port_of(slot))})})
        command.insert(command.end(), {"--set", set});
    const std::string script =
        script_of(request,
                  {fmt::format("{}={}", names.rank, r), fmt::format("{}={}", names.size, size),
                   fmt::format("{}={}", names.local_rank, slot.index),
                   fmt::format("{}={}", names.local_size, slot.count)},
                  command);
    PlannedProcess process{holding.name(r), slot.host->login, {}};
    if (slot.host->is_local()) {
      process.command = {"sh", "-c", script};
    } else {
      process.command = request.ssh;
      // The user's shell there, a POSIX one, only starts sh.
      process.command.insert(process.command.end(),
                             {"--", slot.host->login, "exec sh -c " + shell_quoted(script)});
    }
    planned.push_back(std::move(process));
  }
  return planned;
}

}  // namespace gossamer::peer
