#include "topology/participants/changing_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/hash.hpp"

namespace gossamer::topology {
namespace {

/// W of the peers `ids`, as it is among all n peers: the others are alone.
std::shared_ptr<const MixingMatrix> among_all(const MixingMatrix& w, const std::vector<int>& ids,
                                              int n, const WeightOptions& weighing) {
  std::vector<std::vector<Neighbour>> rows(static_cast<std::size_t>(n));
  for (int i = 0; i < w.peers(); ++i)
    for (const Neighbour& entry : w.in_neighbours(i))
      rows[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])].push_back(
          {ids[static_cast<std::size_t>(entry.peer)], entry.weight});
  return std::make_shared<const MixingMatrix>(std::move(rows), weighing.only_columns()
                                                                   ? Diagonal::completes_column
                                                                   : Diagonal::completes_row);
}

class ChangingSchedule final : public MixingSchedule {
 public:
  ChangingSchedule(Participants participants, std::vector<std::unique_ptr<MixingSchedule>> parts)
      : participants_(std::move(participants)), parts_(std::move(parts)) {
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      auto& matrices = matrices_.emplace_back();
      for (Round t = 0; t < static_cast<Round>(parts_[k]->period()); ++t)
        matrices.push_back(made(k, t));
    }
  }

  int peers() const override { return participants_.peers(); }
  int period() const override { return 0; }
  const Participants& participants() const override { return participants_; }
  std::vector<const MixingSchedule*> parts() const override {
    std::vector<const MixingSchedule*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    return parts;
  }
  std::shared_ptr<const MixingMatrix> at(Round t) const override {
    const std::size_t k = participants_.index_at(t);
    const Round since = t - participants_.changes()[k].first;
    return matrices_[k].empty() ? made(k, since) : matrices_[k][since % matrices_[k].size()];
  }
  std::string hash() const override {
    std::string identity = fmt::format("{} peers", peers());
    for (std::size_t k = 0; k < parts_.size(); ++k)
      identity += fmt::format(", {} {}", participants_.texts()[k], parts_[k]->hash());
    return hash_hex(identity);
  }
  const WeightOptions& weighing() const override { return parts_.front()->weighing(); }
  const std::vector<int>& lattice() const override { return lattice_; }
  RandomLaw law() const override {
    RandomLaw law;
    law.alike = false;
    law.undirected =
        std::ranges::all_of(parts_, [](const auto& part) { return is_undirected(*part); });
    return law;
  }

 private:
  std::shared_ptr<const MixingMatrix> made(std::size_t k, Round t) const {
    return among_all(*parts_[k]->at(t), participants_.changes()[k].peers, peers(), weighing());
  }

  Participants participants_;
  std::vector<std::unique_ptr<MixingSchedule>> parts_;
  /// By part, those of its period; none of one without period.
  std::vector<std::vector<std::shared_ptr<const MixingMatrix>>> matrices_;
  std::vector<int> lattice_;  ///< none: the peers of a part are not all peers
};

}  // namespace

Result<std::unique_ptr<MixingSchedule>> make_changing_schedule(const ScheduleRequest& request) {
  constexpr const char* kKey = "run.participants";
  GOSSAMER_TRY(Participants participants,
               Participants::parse(request.participants, request.context.peers, kKey));
  ScheduleRequest plain = request;
  plain.participants.clear();
  if (participants.are_all()) return make_schedule(plain);
  std::vector<std::unique_ptr<MixingSchedule>> parts;
  for (const ParticipantChange& change : participants.changes()) {
    plain.context.peers = static_cast<int>(change.peers.size());
    auto part = make_schedule(plain);
    if (!part.ok())
      return invalid_error(fmt::format("{}: {} peers take part from round {} on: {}", kKey,
                                       change.peers.size(), change.first, part.error().message));
    parts.push_back(std::move(part).value());
  }
  return std::unique_ptr<MixingSchedule>(
      std::make_unique<ChangingSchedule>(std::move(participants), std::move(parts)));
}

}  // namespace gossamer::topology
