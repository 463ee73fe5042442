// The memory that a process may still take, by files as Linux has them.
#include "peer/doctor/available_memory.hpp"

#include "tests/peer/test_util.hpp"

using namespace gossamer::peer;
using namespace gossamer::peer::testing;

namespace {

constexpr double kMiB = 1024 * 1024;

/// A file system with 1,000 MiB available, in which this process is in `groups`.
struct Machine : Folder {
  explicit Machine(const std::string& groups) {
    add("proc/meminfo", "MemTotal: 4096000 kB\nMemFree: 1000 kB\nMemAvailable: 1024000 kB\n");
    add("proc/self/cgroup", groups);
  }
  void add(const fs::path& name, const std::string& content) const {
    fs::create_directories((path / name).parent_path());
    written(path / name, content);
  }
  void add_group(const std::string& folder, const std::string& most, double used_mib) const {
    add(folder + "/memory.max", most + "\n");
    add(folder + "/memory.current", std::to_string(static_cast<long>(used_mib * kMiB)) + "\n");
  }
  AvailableMemory available() const {
    const auto found = available_memory(path);
    REQUIRE(found);
    return *found;
  }
};

}  // namespace

TEST_CASE("without a limit, the machine's memory is available") {
  const Machine machine("0::/user.slice/a.scope\n");
  machine.add_group("sys/fs/cgroup/user.slice/a.scope", "max", 10);
  CHECK(machine.available().bytes == 1000 * kMiB);
  CHECK(machine.available().limit.empty());
  CHECK(Machine("").available().bytes == 1000 * kMiB);
  CHECK(Machine("no such line\n0:\n::\n").available().bytes == 1000 * kMiB);
  CHECK_FALSE(available_memory(Folder().path));
}

TEST_CASE("the tightest group of a process counts, and files that it could drop are left") {
  const Machine machine("0::/jobs/7/task\n");
  machine.add_group("sys/fs/cgroup/jobs/7/task", "max", 100);
  machine.add_group("sys/fs/cgroup/jobs/7", std::to_string(300 * 1024 * 1024), 250);
  machine.add_group("sys/fs/cgroup/jobs", std::to_string(900 * 1024 * 1024), 250);
  CHECK(machine.available().bytes == 50 * kMiB);
  CHECK(machine.available().limit == machine.path / "sys/fs/cgroup/jobs/7");
  machine.add("sys/fs/cgroup/jobs/7/memory.stat", "anon 5\ninactive_file 104857600\n");
  CHECK(machine.available().bytes == 150 * kMiB);
  machine.add_group("sys/fs/cgroup/jobs/7", std::to_string(300 * 1024 * 1024), 500);
  machine.add("sys/fs/cgroup/jobs/7/memory.stat", "anon 5\n");
  CHECK(machine.available().bytes == 0);
}

TEST_CASE("in a container the limit is at the top, and groups of version 1 count too") {
  const Machine container("0::/\n");
  container.add_group("sys/fs/cgroup", std::to_string(200 * 1024 * 1024), 40);
  CHECK(container.available().bytes == 160 * kMiB);
  const Machine docker("9:cpu,memory:/docker/0a1b\n8:pids:/\n");  // a name from outside
  docker.add("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
  docker.add("sys/fs/cgroup/memory/memory.usage_in_bytes", "20971520\n");
  CHECK(docker.available().bytes == 80 * kMiB);
}
