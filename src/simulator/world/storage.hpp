// What a process of the simulated world keeps of its peers beyond its end. The program's
// checkpoints, and the disks that they are on, lie above the protocol; the world asks for them
// through this.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/world/scenario.hpp"
#include "simulator/world/trace.hpp"

namespace gossamer::gossip::sim {

/// What happens to one call of a disk.
enum class DiskFault {
  fail,  ///< it does nothing, and says so
  tear,  ///< the same, but a write has written half
  kill,  ///< the same, and the process comes no further
};

/// How a process ends.
enum class Outage {
  process,    ///< alone: what it wrote is there
  old_names,  ///< with its machine: what was not synced is gone,
  new_names,  ///< or of it, names are as they became
};

/// What became of a state that a process was to keep.
enum class Kept {
  not_yet,  ///< others of its peers have not come by
  yes,      ///< it was said to be on the disk
  no,       ///< it was said not to be, and there is a DiskFault that explains it
  refused,  ///< the same without one
};

class Storage {
 public:
  virtual ~Storage() = default;
  /// A process begins, for the first time or again, with the disk as it is.
  virtual void begin(int process, const std::vector<int>& hosted) = 0;
  /// A peer of it comes by. When the last one has, there is nothing of later rounds any more: that
  /// was of another past.
  virtual Kept save(int process, const SavedState& state) = 0;
  /// By peer, ascending, the newest states of one round that the process can read; empty: there are
  /// none.
  virtual std::vector<SavedState> find(int process, const std::vector<int>& hosted) = 0;
  virtual void end(int process, Outage outage) = 0;

  /// The call of its disk after `calls` more is struck.
  virtual void strike(int process, DiskFault fault, int calls) = 0;
  /// It is not, unless it was.
  virtual void relent(int process) = 0;
  /// Whether it was killed in the middle of a write, since it began.
  virtual bool killed(int process) const = 0;
};

using MakeStorage = std::function<std::unique_ptr<Storage>(const Scenario&)>;

/// Forgets nothing and is struck as a whole: `calls` are not counted, and nothing is torn.
class PerfectStorage final : public Storage {
 public:
  void begin(int process, const std::vector<int>& hosted) override;
  Kept save(int process, const SavedState& state) override;
  std::vector<SavedState> find(int process, const std::vector<int>& hosted) override;
  void end(int, Outage) override {}
  void strike(int process, DiskFault fault, int calls) override;
  void relent(int process) override;
  bool killed(int process) const override;

 private:
  struct Place {
    std::size_t hosted = 0;
    std::map<Round, std::map<int, SavedState>> rounds,
        pending;  ///< whole; of which some of its peers have come by
    std::optional<DiskFault> struck;
    bool killed = false;
  };
  std::map<int, Place> places_;
};

}  // namespace gossamer::gossip::sim
