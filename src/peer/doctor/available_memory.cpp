#include "peer/doctor/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// The value of a line "key value" or "key: value".
std::optional<double> value_of(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  double value = 0;
  while (file >> word >> value) {
    if (word == key) return value;
    file.ignore(256, '\n');
  }
  return std::nullopt;
}

/// The number that is all of a file; nothing for "max".
std::optional<double> number_in(const fs::path& path) {
  double value = 0;
  if (!(std::ifstream(path) >> value)) return std::nullopt;
  return value;
}

/// The files of a version of control groups.
struct Version {
  const char *limit, *used, *droppable;
};
constexpr Version kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr Version kSecond{"memory.max", "memory.current", "inactive_file"};

std::optional<double> left_of(const fs::path& group, const Version& version) {
  const auto limit = number_in(group / version.limit), used = number_in(group / version.used);
  if (!limit || !used) return std::nullopt;
  const double droppable = value_of(group / "memory.stat", version.droppable).value_or(0);
  return std::max(0.0, *limit - std::max(0.0, *used - droppable));
}

/// The folder of a process's group, and where the folders of all groups begin.
struct Place {
  fs::path top;
  fs::path group;
  Version version;
};

/// From lines "0::/group" (version 2) and "9:memory:/group" (version 1).
std::vector<Place> places(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::vector<Place> found;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) found.push_back({groups, group, kSecond});
    else if (("," + controllers + ",").find(",memory,") != line.npos)
      found.push_back({groups / "memory", group, kFirst});
  }
  return found;
}

}  // namespace

std::optional<AvailableMemory> available_memory(const fs::path& root) {
  const auto kib = value_of(root / "proc/meminfo", "MemAvailable:");
  if (!kib) return std::nullopt;
  AvailableMemory least{*kib * 1024};
  for (const Place& place : places(root)) {
    fs::path group = place.group;
    // In a container, the group's own folder is the top, whatever its name outside.
    for (bool at_top = false; !at_top; group = group.parent_path()) {
      at_top = group.empty();
      const fs::path folder = at_top ? place.top : place.top / group;
      if (const auto left = left_of(folder, place.version); left && *left < least.bytes)
        least = {*left, folder.string()};
    }
  }
  return least;
}

}  // namespace gossamer::peer
