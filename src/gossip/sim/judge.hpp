// What the oracle's parts share: the evidence of a trace, put in order. oracle.cpp judges rounds and their logs, ends.cpp what
// is left in the end. Internal to the oracle.
#pragma once

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gossip/sim/forms.hpp"
#include "gossip/sim/oracle.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::gossip::sim {

inline constexpr Round kNever = std::numeric_limits<Round>::max();

/// What a peer used of another one's row in a mix.
struct Used {
  Round round = 0;
  std::size_t values = 0;
  bool operator==(const Used&) const = default;
};

class Judge {
 public:
  Judge(const Scenario& scenario, const Parts& parts, const Trace& trace)
      : scenario_(scenario), parts_(parts), trace_(trace), n_(scenario.peers), last_(static_cast<Round>(scenario.rounds)) {}

  Verdict verdict() {
    read_losses();
    read_records();
    judge_faults();
    judge_chains();
    judge_log();
    judge_edges();
    judge_replay();
    judge_mean();
    judge_restarts();
    judge_ends();
    judge_progress();
    judge_queues();
    return std::move(verdict_);
  }

 private:
  static constexpr std::size_t kMostSentences = 3;  // of one property

  template <class... Arguments>
  void hold(bool holds, const char* property, fmt::format_string<Arguments...> sentence, Arguments&&... arguments) {
    ++verdict_.checked[property];
    if (holds || ++wrong_[property] > kMostSentences) return;
    verdict_.violations.push_back(fmt::format("{}: {}", property, fmt::format(sentence, std::forward<Arguments>(arguments)...)));
  }

  const PeerRecord& peer(int i) const { return trace_.peers[static_cast<std::size_t>(i)]; }
  const RoundRecord* record(int i, Round t) const {
    const auto found = records_.find({i, t});
    return found == records_.end() ? nullptr : found->second;
  }
  const MixForm* mix(int i, Round t, Channel channel) const {
    const auto found = mixes_.find({i, t, channel});
    return found == mixes_.end() ? nullptr : &found->second;
  }
  bool settled(int i, Round t) const { return record(i, t) != nullptr && !record(i, t)->end.empty(); }
  /// The round in which i was told that its link to j is lost; kNever: it was not.
  Round lost_in(int i, int j) const {
    const auto found = losses_.find({i, j});
    return found == losses_.end() ? kNever : found->second;
  }
  bool synchronous() const { return parts_.policy == Policy::sync || parts_.policy == Policy::deadline; }
  bool is_static() const { return parts_.schedule->period() == 1; }
  std::size_t width(Channel channel) const {
    return static_cast<std::size_t>(scenario_.length) + parts_.rows[channel].extra;
  }

  /// W of a round; kept, as one of a random sequence is made anew by every call.
  const topology::MixingMatrix& w(Round t) const {
    auto& kept = matrices_[parts_.schedule->period() == 0 ? t : t % static_cast<Round>(parts_.schedule->period())];
    if (!kept) kept = parts_.schedule->at(t);
    return *kept;
  }

  void read_losses() {
    for (const LossRecord& loss : trace_.losses) losses_.emplace(std::pair(loss.peer, loss.other), loss.round);
  }

  void read_records() {
    for (int t = 0; t < std::max(parts_.schedule->period(), 1); ++t)
      symmetric_ = symmetric_ && w(static_cast<Round>(t)).symmetric();
    for (int i = 0; i < n_; ++i)
      for (const RoundRecord& record : peer(i).rounds) {
        records_[{i, record.round}] = &record;
        RoundForm form = form_of(scenario_, record);
        for (const std::string& wrong : form.wrong) hold(false, "replay", "in round {}, peer {} {}", record.round, i, wrong);
        for (MixForm& mix : form.mixes) {
          if (!record.end.empty()) read_used(i, record, mix.channel);
          else mix.out.clear();  // what was used for it was not logged
          mixes_[{i, record.round, mix.channel}] = std::move(mix);
        }
      }
  }

  /// Of everybody whom i hears in a round: what was used of the row.
  void read_used(int i, const RoundRecord& record, Channel channel) {
    for (const topology::Neighbour& j : w(record.round).hears(i))
      used_[{i, record.round, channel, j.peer}] = {record.round, width(channel)};
    for (const Deviation& deviation : record.deviations) {
      if (deviation.channel != channel) continue;
      const auto found = used_.find({i, record.round, channel, deviation.from});
      hold(found != used_.end() && deviation.round == record.round, "log",
           "peer {} logged in round {} that peer {} deviated in round {}, whom it does not hear", i, record.round,
           deviation.from, deviation.round);
      if (found == used_.end()) continue;
      hold(found->second == Used{record.round, width(channel)}, "log", "peer {} logged twice in round {} what peer {} gave", i,
           record.round, deviation.from);
      found->second = {deviation.missing ? record.round : deviation.used_round,
                       deviation.missing ? deviation.values : width(channel)};
    }
  }

  // Rounds and their logs: oracle.cpp.
  void judge_faults();
  void judge_chains();
  void judge_log();
  void judge_edges();
  bool skipped(int i, Round t) const;
  std::optional<Row> replayed(int i, Round t, const MixForm& own, unsigned kept_shares);
  void judge_replay();
  void judge_mean();

  // What is left in the end: ends.cpp.
  std::vector<std::vector<int>> components() const;
  void judge_restarts();
  Round last_loss(const std::vector<int>& part) const;
  Eigen::MatrixXd matrix_of(const std::vector<int>& part, Round t) const;
  void judge_ends();
  double most_at(const std::vector<int>& part, std::size_t k) const;
  void judge_sums(const std::vector<int>& part);
  std::string names(const std::vector<int>& part) const;
  void judge_healing(const std::vector<int>& part, Round calm);
  Row row_at(int i, Round t, bool end) const;
  Row mean_of(const std::vector<int>& part, Round t, bool end) const;
  static double norm_between(const Row& a, const Row& b);
  double distance(const std::vector<int>& part, Round t, bool end, Row point) const;
  double mean_distance(const std::vector<int>& part, Round t, bool end, const Row& point) const;
  void judge_progress();
  void judge_queues();

  const Scenario& scenario_;
  const Parts& parts_;
  const Trace& trace_;
  const int n_;
  const Round last_;
  bool symmetric_ = true;
  Verdict verdict_;
  mutable std::map<Round, std::shared_ptr<const topology::MixingMatrix>> matrices_;
  std::map<std::string, std::size_t> wrong_;
  std::map<std::pair<int, int>, Round> losses_;
  std::map<std::pair<int, Round>, const RoundRecord*> records_;
  std::map<std::tuple<int, Round, Channel>, MixForm> mixes_;
  std::map<std::tuple<int, Round, Channel, int>, Used> used_;
  std::map<std::tuple<int, Channel, int>, Round> newest_;
  Row scale_;  ///< of the last replayed(): the largest value that went in, by place
};

}  // namespace gossamer::gossip::sim
