// What a process of the simulated world saves of its peers beyond its end. The world uses this
// interface only; the program's checkpoints, on simulated disks, are behind it
// (simulator/storage/simulated_disks.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::simulator {

/// What happens to one call of a disk.
enum class DiskFault {
  fail,  ///< it does nothing and reports an error
  tear,  ///< the same, but a write has written half
  kill,  ///< the same, and the process ends there
};

/// How a process ends.
enum class Outage {
  process,    ///< alone: what it wrote is on the disk
  old_names,  ///< with its machine: what was not synced is lost, and so are new names of files
  new_names,  ///< with its machine: contents that were not synced are lost, names are kept
};

/// What became of a state that a process was to save.
enum class SaveResult {
  pending,  ///< states of other peers of the process are missing
  saved,    ///< the disk acknowledged it
  failed,   ///< an error was reported, and an injected DiskFault explains it
  refused,  ///< an error was reported without one
};

class Storage {
 public:
  virtual ~Storage() = default;
  /// A process starts, or restarts, with the disk as it is.
  virtual void start(int process, const std::vector<int>& hosted) = 0;
  /// Adds a peer's state. When the last peer of the process has saved a round, states of later
  /// rounds, which are of an earlier incarnation, are gone.
  virtual SaveResult save(int process, const SavedState& state) = 0;
  /// By round, the states that the process can read, of every round of which it has those of all
  /// its peers; by peer, ascending.
  virtual std::map<Round, std::vector<SavedState>> load(int process,
                                                        const std::vector<int>& hosted) = 0;
  /// The process resumes from this round, and removes the states of later rounds.
  virtual void resume_at(int process, const std::vector<int>& hosted, Round round) = 0;
  virtual void end(int process, Outage outage) = 0;

  /// The call of the process's disk after `calls` more fails.
  virtual void inject(int process, DiskFault fault, int calls) = 0;
  /// Withdraws an injected fault that has not struck.
  virtual void clear_fault(int process) = 0;
  /// Whether the process was killed in the middle of a write since it started.
  virtual bool killed(int process) const = 0;
};

using MakeStorage = std::function<std::unique_ptr<Storage>(const Scenario&)>;

/// Loses nothing, and fails as a whole: `calls` are not counted, and nothing is torn.
class PerfectStorage final : public Storage {
 public:
  /// `participants`: a peer that takes no part has no state.
  explicit PerfectStorage(topology::Participants participants)
      : participants_(std::move(participants)) {}
  void start(int process, const std::vector<int>& hosted) override;
  SaveResult save(int process, const SavedState& state) override;
  std::map<Round, std::vector<SavedState>> load(int process,
                                                const std::vector<int>& hosted) override;
  void resume_at(int process, const std::vector<int>& hosted, Round round) override;
  void end(int, Outage) override {}
  void inject(int process, DiskFault fault, int calls) override;
  void clear_fault(int process) override;
  bool killed(int process) const override;

 private:
  struct ProcessDisk {
    std::vector<int> hosted;
    std::map<Round, std::map<int, SavedState>> rounds;   ///< complete
    std::map<Round, std::map<int, SavedState>> pending;  ///< of which some peers' are missing
    std::optional<DiskFault> fault;
    bool killed = false;
  };
  std::size_t counted(const std::vector<int>& hosted, Round round) const;

  topology::Participants participants_;
  std::map<int, ProcessDisk> disks_;
};

}  // namespace gossamer::simulator
