// The schedule of a run whose participants change: with each change the topology is made anew, for
// the peers that take part from then on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// Immutable, but for a copy that copy_if_open() returns.
class ChangingSchedule final : public MixingSchedule {
 public:
  /// Schedules by their number of peers: those of the changes; of an open run, of each number.
  using BySize = std::map<int, std::shared_ptr<const MixingSchedule>>;
  ChangingSchedule(Participants participants, std::shared_ptr<const BySize> by_size);

  int peers() const override { return participants_.peers(); }
  int period() const override { return 0; }
  int longest_period() const override;
  std::unique_ptr<ChangingSchedule> copy_if_open() const override;
  const Participants& participants() const override { return participants_; }
  std::vector<const MixingSchedule*> parts() const override;
  std::shared_ptr<const MixingMatrix> at(Round t) const override;
  std::string hash() const override { return hash_; }
  const WeightOptions& weighing() const override { return parts_.front()->schedule->weighing(); }
  const std::vector<int>& lattice() const override { return lattice_; }
  RandomLaw law() const override;

  /// Participants::set_changes() of an open run's copy. Thread: one at a time.
  void set_changes(const std::vector<ParticipantChange>& changes);

 private:
  /// From a change of participants to the next.
  struct Part {
    std::vector<int> peers;
    std::shared_ptr<const MixingSchedule> schedule;
    /// Those of its period, among all peers; none of one without period.
    std::vector<std::shared_ptr<const MixingMatrix>> matrices;
  };
  std::shared_ptr<const Part> part_of(const std::vector<int>& peers) const;
  std::shared_ptr<const MixingMatrix> made(const Part& part, Round t) const;
  void make_parts();

  Participants participants_;
  std::shared_ptr<const BySize> by_size_;
  std::vector<std::shared_ptr<const Part>> parts_;  ///< by change
  std::string hash_;
  std::vector<int> lattice_;  ///< none: the peers of a part are not all peers
};

/// make_schedule() of a request with participants, or of an open run. Each part's W is checked as
/// if it were a run of its own, and begins with its own round 0; of an open run, the W of each
/// number of peers is checked. Errors of a part name the round from which it lasts, or its number
/// of peers.
Result<std::unique_ptr<MixingSchedule>> make_changing_schedule(const ScheduleRequest& request);

}  // namespace gossamer::topology
