// Utilities of the tests of peer/: a temporary folder, a configuration, a run and its files.
//   const Folder folder;  const Left left = run_in(folder.path / "a", {"run.peers=4", …});
//   left.summary["final_hash"]
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gossip/algorithm.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/config/config.hpp"
#include "peer/log/run_files.hpp"
#include "peer/runtime/run.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer::testing {

namespace fs = std::filesystem;

/// A temporary folder, removed by the destructor.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "gossamer-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// Limits the size of files to `bytes` during its lifetime, as a full disk does.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    before_signal_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, before_signal_);
  }

 private:
  rlimit before_{};
  void (*before_signal_)(int) = nullptr;
};

inline std::string written(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

inline std::string content_of(const fs::path& path) {
  auto content = read_file(path, 1 << 30);
  REQUIRE_MESSAGE(content.ok(), (content.ok() ? "" : content.error().message));
  return *content;
}

using Overrides = std::vector<Override>;

inline Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The default configuration with `overrides`.
inline Config configured(const Overrides& overrides) {
  auto config = load_config("", overrides);
  REQUIRE_MESSAGE(config.ok(), (config.ok() ? "" : config.error().message));
  return std::move(config).value();
}

inline Setup set_up(const Overrides& overrides) {
  auto setup = make_setup(configured(overrides));
  REQUIRE_MESSAGE(setup.ok(), (setup.ok() ? "" : setup.error().message));
  return std::move(setup).value();
}

/// Topologies such that every algorithm accepts at least one.
inline const std::vector<std::string>& fitting_kinds() {
  static const std::vector<std::string> kinds{"ring", "path", "complete", "random_matching"};
  return kinds;
}

/// `problem` on the first of them that its algorithm accepts, with lazy weights if necessary.
inline Overrides fitted(const Overrides& problem) {
  for (const std::string& kind : fitting_kinds())
    for (const char* lazy : {"true", "false"}) {
      Overrides on_it =
          problem + Overrides{"topology.kind=" + kind, std::string("topology.lazy=") + lazy};
      if (make_setup(configured(on_it)).ok()) return on_it;
    }
  FAIL("none of the topologies fits");
  return problem;
}

struct Problem {
  std::string name;
  Overrides overrides;
};

inline const std::vector<Problem>& problems() {
  static const std::vector<Problem> all{
      {"softmax on digits",
       {"model.kind=softmax", "data.kind=digits", "data.batch=8", "optimizer.momentum=0.5"}},
      {"linear on quadratic",
       {"model.kind=linear", "data.kind=quadratic", "data.batch=4", "data.gradient_noise=0.1"}}};
  return all;
}

/// Every algorithm of the catalog, in each order or form that it has, and with two servers.
inline std::vector<Overrides> algorithms_of_the_catalog() {
  std::vector<Overrides> all;
  for (const gossip::AlgorithmKind& kind : gossip::algorithms::catalog()) {
    all.push_back({"algorithm.kind=" + kind.name});
    for (const ParameterSpec& spec : kind.parameters) {
      if (spec.name == "order") all.push_back({all.back().front(), "algorithm.order=awc"});
      if (spec.name == "form")
        for (const std::string form : {"root", "all_to_all"})
          all.push_back({all.back().front(), "algorithm.form=" + form});
      if (spec.name == "servers") all.push_back({all.back().front(), "algorithm.servers=2"});
      if (spec.name == "local_steps") {
        if (spec.default_value == ParameterValue(std::int64_t{1})) all.push_back(all.back());
        all.back().emplace_back("algorithm.local_steps=2");
      }
      if (spec.name == "length")
        all.back().emplace_back("algorithm.length=2500");  // three chunks of 4 KiB
    }
  }
  return all;
}

/// Whether results depend on the order of events, without any policy.
inline bool by_the_clock(const Overrides& algorithm) {
  return algorithm.front() == "algorithm.kind=async_server" ||
         algorithm.front() == "algorithm.kind=ad_psgd";
}

inline bool trains(const Overrides& algorithm) {
  return algorithm.front() != "algorithm.kind=consensus";
}

/// The files of a run.
struct Left {
  Json summary;
  std::optional<Error> stopped;
  ProcessLog log;
  TensorFile final;

  std::string hash() const { return summary["final_hash"]; }
  /// The final parameters of a peer.
  std::vector<float> row(int peer) const {
    std::vector<float> row;
    for (const Tensor& tensor : final.tensors)
      if (tensor.name.starts_with(fmt::format("peer{}.", peer)))
        row.insert(row.end(), tensor.values.begin(), tensor.values.end());
    REQUIRE_FALSE(row.empty());
    return row;
  }
  /// The records of this type.
  std::vector<Json> records(const std::string& sort) const {
    std::vector<Json> found;
    for (const Json& record : log.records)
      if (record["record"] == sort) found.push_back(record);
    return found;
  }
};

inline Left run_in(const fs::path& folder, const Overrides& overrides, RunRequest request = {}) {
  const Setup setup = set_up(overrides);
  request.folder = folder;
  auto outcome = run(setup, std::move(request));
  REQUIRE_MESSAGE(outcome.ok(), (outcome.ok() ? "" : outcome.error().message));
  auto logs = read_logs(folder);
  REQUIRE_MESSAGE(logs.ok(), (logs.ok() ? "" : logs.error().message));
  auto final = read_safetensors(folder / "final-0.safetensors");
  REQUIRE_MESSAGE(final.ok(), (final.ok() ? "" : final.error().message));
  CHECK(Json::parse(content_of(folder / "summary.json")) == outcome->summary);
  return {outcome->summary, outcome->stopped, std::move(logs->front()), std::move(final).value()};
}

/// Restores the folder to the state after a kill that followed the checkpoint of `round`: later
/// checkpoints are removed, and the log has all records up to then and more.
inline void turn_back(const fs::path& folder, gossip::Round round) {
  remove_later_checkpoints(folder / "checkpoints", 0, round, real_disk());
  std::string log = content_of(folder / "log-0.jsonl");
  written(folder / "log-0.jsonl", log.substr(0, log.size() - 30));  // its last line torn
  for (const char* name : {"final-0.safetensors", "summary.json"}) fs::remove(folder / name);
}

}  // namespace gossamer::peer::testing
