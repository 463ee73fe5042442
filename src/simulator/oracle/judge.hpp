// What the oracle's parts share: the evidence of a trace, put in order by evidence.cpp. oracle.cpp
// judges rounds and their logs, means.cpp what they make of means, own_pace.cpp algorithms that mix
// nothing; ends.cpp what is left in the end, healing.cpp which links count then, convergence.cpp
// where parts have come to. Internal to the oracle.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

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

#include "simulator/oracle/oracle.hpp"
#include "simulator/oracle/reference.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::gossip::sim {

inline constexpr Round kNever = std::numeric_limits<Round>::max();

/// What a peer used of another one's row in a mix.
struct Used {
  Round round = 0;
  std::size_t values = 0;
  int life = -1;  ///< whose row it was; -1: no link to that peer was ever there
};

/// A link as one of its ends had it, from when it was there to when it was lost.
struct Term {
  int other = 0;    ///< the life at the other end
  int opening = 0;  ///< both ends' terms of one connection have the same
  bool from_start = false;
  bool used = false;  ///< this end mixed something of the other one's
  Round back = 0;     ///< the round in which this end was told that it is there: it takes no part
                      ///< before the next one
  Round entered = kNever;  ///< the first round in which either end used the other's row
  Round lost = kNever;     ///< the round in which this end was told that it is lost
  Time back_at{0}, lost_at{Time::max()};
  bool holds(Round t) const { return (from_start || back < t) && t <= lost; }
};

class Judge {
 public:
  Judge(const Scenario& scenario, const Parts& parts, const Trace& trace)
      : scenario_(scenario),
        parts_(parts),
        trace_(trace),
        n_(scenario.peers),
        last_(static_cast<Round>(scenario.rounds)) {}

  Verdict verdict() {
    read_links();
    read_records();
    read_entries();
    judge_faults();
    judge_chains();
    judge_log();
    judge_edges();
    judge_replay();
    judge_mean();
    judge_running_sums();
    judge_pairs();
    judge_restarts();
    judge_ends();
    judge_progress();
    judge_queues();
    judge_lent();
    judge_disks();
    return std::move(verdict_);
  }

 private:
  static constexpr std::size_t kMostSentences = 3;  // of one property

  template <class... Arguments>
  void hold(bool holds, const char* property, fmt::format_string<Arguments...> sentence,
            Arguments&&... arguments) {
    ++verdict_.checked[property];
    if (holds || ++wrong_[property] > kMostSentences) return;
    verdict_.violations.push_back(fmt::format(
        "{}: {}", property, fmt::format(sentence, std::forward<Arguments>(arguments)...)));
  }

  // A life is named by its place in the trace, a peer by its id; the first lives of peers have
  // their ids.
  const Life& life(int a) const { return trace_.lives[static_cast<std::size_t>(a)]; }
  int lives() const { return static_cast<int>(trace_.lives.size()); }
  int peer_of(int a) const { return life(a).peer; }
  const RoundRecord* record(int a, Round t) const {
    const auto found = records_.find({a, t});
    return found == records_.end() ? nullptr : found->second;
  }
  const MixForm* mix(int a, Round t, Channel channel) const {
    const auto found = mixes_.find({a, t, channel});
    return found == mixes_.end() ? nullptr : &found->second;
  }
  bool settled(int a, Round t) const {
    return record(a, t) != nullptr && !record(a, t)->end.empty();
  }
  bool synchronous() const {
    return parts_.policy == Policy::sync || parts_.policy == Policy::deadline;
  }
  bool is_static() const { return parts_.schedule->period() == 1; }
  std::size_t width(Channel channel) const {
    return parts_.rows[channel].length(static_cast<std::size_t>(scenario_.length));
  }
  /// Whether the row goes to neighbours in every round, to be mixed or as it is.
  bool travels(Channel channel) const { return parts_.rows[channel].mixed || shared() == channel; }
  std::optional<Channel> shared() const;

  /// W of a round; kept, as one of a random sequence is made anew by every call.
  const topology::MixingMatrix& w(Round t) const {
    auto& kept = matrices_[parts_.schedule->period() == 0
                               ? t
                               : t % static_cast<Round>(parts_.schedule->period())];
    if (!kept) kept = parts_.schedule->at(t);
    return *kept;
  }

  // What was when: evidence.cpp.
  void read_links();
  void read_records();
  void read_used(int a, const RoundRecord& record, Channel channel);
  void read_entries();
  Row read_by_others(const Row& in, int peer, Round t) const;
  Term* term_at(int a, int j, Round t);
  const Term* term_at(int a, int j, Round t) const {
    return const_cast<Judge*>(this)->term_at(a, j, t);
  }
  const Term* other_end(int a, const Term& term) const;
  const Term* link_between(int a, int b) const;

  // Rounds and their logs: oracle.cpp.
  void judge_faults();
  void judge_chains();
  void judge_log();
  void judge_edges();
  bool takes_over(int a, const RoundRecord& first) const;
  bool is_alone(int a, Round t) const;
  bool skipped(int a, Round t) const;
  enum class Share { given, kept, either };
  Share share_of(int a, int j, Round t) const;
  enum class Kept { row, column, either };
  Kept kept_by(int a, Round t, Channel channel) const;
  std::optional<Row> replayed(int a, Round t, const MixForm& own, bool columns,
                              unsigned kept_shares);
  void judge_replay();

  // Means: means.cpp.
  struct SumOfRound;
  bool breaks_off(int a, int j, Round t) const;
  void add_edge(int a, const topology::Neighbour& j, Round t, const MixForm& own, SumOfRound& sum);
  std::optional<SumOfRound> sum_of_round(Round t, Channel channel);
  void judge_mean();

  // What goes at each peer's own pace: own_pace.cpp.
  struct Account;
  /// Which of a neighbour's sums a life used last, and by which link it came.
  struct LastUse {
    const Term* term = nullptr;
    Round round = 0;
  };
  Time end_of(int a, const RoundRecord& record) const;
  Share part_of(int a, int j, const RoundRecord& record, const std::map<int, LastUse>& last) const;
  void judge_use_of_sum(int a, const RoundRecord& record, std::size_t place, const Used& used);
  Account account_of(int a, const RoundRecord& record, std::map<int, LastUse>& last);
  void judge_running_sums();
  /// What the peers' sums came to beside their steps until the first one was done, and what
  /// rounding may have made of it.
  struct Total {
    Row change, bound;
    Time until;
    std::map<int, const RoundRecord*> last;  ///< of each life
    Round gifts;                             ///< rounds of peers that gave, to the end
  };
  void judge_sums_of(int a, Total& total);
  bool undisturbed() const;
  void judge_total(Total& total);
  void judge_pairs();

  // What is left in the end: ends.cpp.
  std::vector<std::vector<int>> components() const;
  bool ended_unseen(const std::vector<int>& part) const;
  void judge_restarts();
  void judge_restarts_of(const std::vector<int>& part);
  /// When what happens to links is over for a part.
  struct Calm {
    Round last = kNever;  ///< the last round in which a link of it that counted was lost, or one
                          ///< came back; none: kNever
    bool told = false;    ///< and all heard of it in time: no other one had to come back first
    Time since{0};        ///< from here on every link that is there is to count
    Round from = 0;       ///< and from this round on nothing changes any more
  };
  Round agreed_at_most(int a, Time when) const;
  bool holds_together(const std::vector<int>& part, Time by) const;
  Calm calm_of(const std::vector<int>& part) const;
  Round round_at(int a, Time when) const;
  bool joined(int a, int b) const;
  void judge_arrivals();
  void judge_reach(const std::vector<int>& part, const Calm& calm);
  void judge_use(const std::vector<int>& part, const Calm& calm);
  void judge_latest(const std::vector<int>& part, const Calm& calm);
  void judge_agreements(const std::vector<int>& part, const Calm& calm);
  Eigen::MatrixXd matrix_of(const std::vector<int>& part, Round t) const;
  bool leads_back(const std::vector<int>& part) const;
  void judge_ends();
  double most_at(const std::vector<int>& part, std::size_t k) const;
  void judge_sums(const std::vector<int>& part);
  std::string names(const std::vector<int>& part) const;
  void judge_convergence(const std::vector<int>& part, Round calm);
  Row row_at(int i, Round t, bool end) const;
  Row mean_of(const std::vector<int>& part, Round t, bool end) const;
  static double norm_between(const Row& a, const Row& b);
  double distance(const std::vector<int>& part, Round t, bool end, Row point) const;
  double mean_distance(const std::vector<int>& part, Round t, bool end, const Row& point) const;
  void judge_progress();
  void judge_queues();
  void judge_lent();
  void judge_disks();

  const Scenario& scenario_;
  const Parts& parts_;
  const Trace& trace_;
  const int n_;
  const Round last_;
  bool symmetric_ = true;
  bool any_back_ = false;  ///< a link was there again
  Verdict verdict_;
  mutable std::map<Round, std::shared_ptr<const topology::MixingMatrix>> matrices_;
  std::map<std::string, std::size_t> wrong_;
  std::map<std::pair<int, int>, std::vector<Term>>
      terms_;                     ///< by life and the other one's peer, in the order of time
  std::map<int, Round> changed_;  ///< by life: the round in which a link of its own was lost or
                                  ///< came back for the first time
  std::map<std::pair<int, Round>, const RoundRecord*> records_;
  std::map<std::tuple<int, Round, Channel>, MixForm> mixes_;
  std::map<std::tuple<int, Round, Channel, int>, Used> used_;
  std::map<std::tuple<int, Channel, int>, Round> newest_;
  Row scale_;  ///< of the last replayed(): the largest value that went in, by place
};

}  // namespace gossamer::gossip::sim
