#include "topology/participants/changing_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

std::string hash_of(const Participants& participants, const ChangingSchedule::BySize& by_size) {
  std::string identity = fmt::format("{} peers", participants.peers());
  const std::vector<std::string> texts = participants.texts();
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const int size = static_cast<int>(participants.changes()[k].peers.size());
    identity += fmt::format(", {} {}", texts[k], by_size.at(size)->hash());
  }
  if (participants.is_open())
    for (const auto& [size, schedule] : by_size)
      identity += fmt::format(", {} of {} peers", schedule->hash(), size);
  return hash_hex(identity);
}

}  // namespace

ChangingSchedule::ChangingSchedule(Participants participants, std::shared_ptr<const BySize> by_size)
    : participants_(std::move(participants)),
      by_size_(std::move(by_size)),
      hash_(hash_of(participants_, *by_size_)) {
  make_parts();
}

int ChangingSchedule::longest_period() const {
  int longest = 0;
  for (const auto& [size, schedule] : *by_size_) {
    if (schedule->period() == 0) return 0;
    longest = std::max(longest, schedule->period());
  }
  return longest;
}

std::unique_ptr<ChangingSchedule> ChangingSchedule::copy_if_open() const {
  return participants_.is_open() ? std::make_unique<ChangingSchedule>(*this) : nullptr;
}

std::vector<const MixingSchedule*> ChangingSchedule::parts() const {
  std::vector<const MixingSchedule*> parts;
  for (const auto& part : parts_) parts.push_back(part->schedule.get());
  return parts;
}

std::shared_ptr<const MixingMatrix> ChangingSchedule::at(Round t) const {
  const std::size_t k = participants_.index_at(t);
  const Part& part = *parts_[k];
  // In an open run parts of the network may have taken the same change for different rounds.
  const Round since = participants_.is_open() ? t : t - participants_.changes()[k].first;
  return part.matrices.empty() ? made(part, since) : part.matrices[since % part.matrices.size()];
}

RandomLaw ChangingSchedule::law() const {
  RandomLaw law;
  law.alike = false;
  law.undirected =
      std::ranges::all_of(*by_size_, [](const auto& each) { return is_undirected(*each.second); });
  return law;
}

void ChangingSchedule::set_changes(const std::vector<ParticipantChange>& changes) {
  participants_.set_changes(changes);
  make_parts();
}

/// Of the same peers there is one part, and parts that were there before are kept.
void ChangingSchedule::make_parts() {
  std::map<std::vector<int>, std::shared_ptr<const Part>> known;
  for (auto& part : std::exchange(parts_, {})) known.emplace(part->peers, part);
  for (const ParticipantChange& change : participants_.changes()) {
    std::shared_ptr<const Part>& part = known[change.peers];
    if (part == nullptr) part = part_of(change.peers);
    parts_.push_back(part);
  }
}

std::shared_ptr<const ChangingSchedule::Part> ChangingSchedule::part_of(
    const std::vector<int>& peers) const {
  auto part = std::make_shared<Part>(Part{peers, by_size_->at(static_cast<int>(peers.size())), {}});
  for (Round t = 0; t < static_cast<Round>(part->schedule->period()); ++t)
    part->matrices.push_back(made(*part, t));
  return part;
}

std::shared_ptr<const MixingMatrix> ChangingSchedule::made(const Part& part, Round t) const {
  return among_all(*part.schedule->at(t), part.peers, peers(), part.schedule->weighing());
}

std::unique_ptr<ChangingSchedule> MixingSchedule::copy_if_open() const { return nullptr; }

Result<std::unique_ptr<MixingSchedule>> make_changing_schedule(const ScheduleRequest& request) {
  constexpr const char* kKey = "run.participants";
  const int n = request.context.peers;
  auto read = request.open ? Participants::parse_open(request.participants, n, kKey)
                           : Participants::parse(request.participants, n, kKey);
  GOSSAMER_TRY(Participants participants, std::move(read));
  ScheduleRequest plain = request;
  plain.participants.clear();
  plain.open = false;
  if (participants.are_all()) return make_schedule(plain);
  if (request.open && n > kMostOpenPeers)
    return invalid_error(
        fmt::format("run.open: an open run has {} peers at most, for each has a "
                    "link to each other one; run.peers is {}",
                    kMostOpenPeers, n));
  auto by_size = std::make_shared<ChangingSchedule::BySize>();
  const auto add = [&](int size, const std::string& where) -> Status {
    plain.context.peers = size;
    auto schedule = make_schedule(plain);
    if (!schedule.ok())
      return invalid_error(fmt::format("{}: {}", where, schedule.error().message));
    by_size->emplace(size, std::move(schedule).value());
    return {};
  };
  for (const ParticipantChange& change : participants.changes()) {
    const auto size = static_cast<int>(change.peers.size());
    if (by_size->contains(size)) continue;
    GOSSAMER_TRY_STATUS(add(
        size, fmt::format("{}: {} peers take part from round {} on", kKey, size, change.first)));
  }
  for (int size = 1; request.open && size <= n; ++size)
    if (!by_size->contains(size))
      GOSSAMER_TRY_STATUS(
          add(size, fmt::format("run.open: the topology has to exist for each number of peers up "
                                "to run.peers, and for {}",
                                size)));
  return std::unique_ptr<MixingSchedule>(
      std::make_unique<ChangingSchedule>(std::move(participants), std::move(by_size)));
}

}  // namespace gossamer::topology
