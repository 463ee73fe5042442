// A schedule that caches the matrices of the last rounds that were requested. A random
// sequence builds a round's matrix anew at every call, which costs O(n): a process that hosts many
// peers would build it once for each of them.
#pragma once

#include <utility>
#include <vector>

#include "topology/mixing_matrix.hpp"

namespace gossamer::topology {

/// Thread: one at a time, unlike other schedules.
class RecentRounds final : public MixingSchedule {
 public:
  /// `schedule` outlives it.
  explicit RecentRounds(const MixingSchedule& schedule) : schedule_(schedule) {}

  int peers() const override { return schedule_.peers(); }
  int period() const override { return schedule_.period(); }
  int longest_period() const override { return schedule_.longest_period(); }
  const Participants& participants() const override { return schedule_.participants(); }
  std::vector<const MixingSchedule*> parts() const override { return schedule_.parts(); }
  std::shared_ptr<const MixingMatrix> at(Round t) const override;
  std::string hash() const override { return schedule_.hash(); }
  const WeightOptions& weighing() const override { return schedule_.weighing(); }
  const std::vector<int>& lattice() const override { return schedule_.lattice(); }
  RandomLaw law() const override { return schedule_.law(); }

 private:
  static constexpr std::size_t kKept =
      16;  ///< peers that wait for their neighbours are some rounds apart, seldom more

  const MixingSchedule& schedule_;
  mutable std::vector<std::pair<Round, std::shared_ptr<const MixingMatrix>>>
      recent_;                          ///< in order of last use
  mutable std::uint64_t revision_ = 0;  ///< of the participants, when they were made
};

}  // namespace gossamer::topology
