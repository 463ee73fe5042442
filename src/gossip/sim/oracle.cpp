#include "gossip/sim/oracle.hpp"

#include <fmt/format.h>

#include <Eigen/SVD>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "gossip/sim/connection.hpp"
#include "gossip/sim/forms.hpp"
#include "gossip/sim/process.hpp"
#include "topology/spectrum.hpp"

namespace gossamer::gossip::sim {
namespace {

constexpr std::size_t kMostSentences = 3;  // of one property
constexpr Round kNever = std::numeric_limits<Round>::max();

Time seconds(double count) { return Time(std::llround(count * 1e9)); }

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
           "peer {} logged in round {} that peer {} deviated in round {}, whom it does not hear", i, record.round, deviation.from, deviation.round);
      if (found == used_.end()) continue;
      hold(found->second == Used{record.round, width(channel)}, "log", "peer {} logged twice in round {} what peer {} gave", i, record.round, deviation.from);
      found->second = {deviation.missing ? record.round : deviation.used_round, deviation.missing ? deviation.values : width(channel)};
    }
  }

  void judge_faults() {
    hold(trace_.complaints.empty(), "faults", "{}", trace_.complaints.empty() ? "" : trace_.complaints.front());
  }

  /// From round to round a peer keeps what it has, but where rows begin again.
  void judge_chains() {
    for (int i = 0; i < n_; ++i) {
      const RoundRecord* before = nullptr;
      for (const RoundRecord& record : peer(i).rounds) {
        for (std::size_t k = 0; k < parts_.rows.size(); ++k) {
          const RowSpec& spec = parts_.rows[k];
          const bool parameters = spec.initial == RowSpec::Initial::parameters;
          if (before == nullptr || (record.restarted && spec.rejoin == RowSpec::Rejoin::restart && spec.survives)) {
            FloatRow due(static_cast<std::size_t>(scenario_.length), 0.0F);
            if (parameters) due = before == nullptr ? start_of(scenario_, i) : record.begin[0];
            due.resize(due.size() + spec.extra, 1.0F);
            hold(record.begin[k] == due, "chain", "peer {} did not begin with row {} as it is due in round {}", i, spec.name, record.round);
          } else if (spec.survives) {
            hold(record.begin[k] == before->end[k], "chain", "peer {} changed row {} between rounds {} and {}", i, spec.name, before->round, record.round);
          }
        }
        hold(before == nullptr ? record.round == 0 : record.round > before->round && (record.round == before->round + 1 || parts_.policy == Policy::deadline),
             "chain", "peer {} did round {} out of turn", i, record.round);
        before = &record;
      }
    }
  }

  void judge_log() {
    for (const auto& [key, used] : used_) {
      const auto& [i, t, channel, j] = key;
      const bool whole = used.values == width(channel);
      const Round lost = lost_in(i, j);
      if (lost < t) hold(used.values == 0, "log", "peer {} used {} values of peer {} in round {}, though their link was lost in round {}", i, used.values, j, t, lost);
      switch (parts_.policy) {
        case Policy::sync:
          hold(used.round == t && (whole || lost <= t), "log", "peer {} used {} values of round {} of peer {} in round {}, though their link was there", i, used.values, used.round, j, t);
          break;
        case Policy::deadline:
          hold(used.round == t && (whole || used.values == 0), "log", "peer {} used {} values of round {} of peer {} in round {}", i, used.values, used.round, j, t);
          break;
        case Policy::stale: {
          const auto bound = static_cast<Round>(scenario_.staleness);
          const Round done_by_it = used.values == 0 ? 0 : used.round;
          hold(lost <= t || t + 1 <= done_by_it + bound, "log", "peer {} mixed round {} of peer {} in round {}, more than {} behind", i, done_by_it, j, t, bound);
          [[fallthrough]];
        }
        case Policy::async:
          hold(whole || used.values == 0, "log", "peer {} used part of a row of peer {} in round {}", i, j, t);
          if (used.values == 0) break;
          Round& newest = newest_[{i, channel, j}];
          hold(used.round >= newest, "log", "peer {} used round {} of peer {} in round {}, after round {}", i, used.round, j, t, newest);
          newest = std::max(newest, used.round);
      }
    }
  }

  /// What i used of j and j of i, where both have done the round.
  void judge_edges() {
    if (!synchronous() || !symmetric_) return;
    for (const auto& [key, used] : used_) {
      const auto& [i, t, channel, j] = key;
      if (i > j || !peer(j).alive) continue;
      const auto back = used_.find({j, t, channel, i});
      if (back == used_.end() && settled(j, t)) continue;  // not symmetric in this round
      const std::size_t theirs = back == used_.end() ? 0 : back->second.values;
      if (back == used_.end() && !skipped(j, t)) continue;  // its process goes on later, or it never came so far
      const Round first = std::min(lost_in(i, j), lost_in(j, i)), second = std::max(lost_in(i, j), lost_in(j, i));
      const bool while_breaking = first <= t && (second == kNever || t <= second);
      hold(used.values == theirs || while_breaking, "edges", "in round {} peer {} used {} values of peer {}, and that one {} (channel {})", t, i, used.values, j, theirs, channel);
      if (used.values != theirs) ++verdict_.one_sided;
    }
  }
  bool skipped(int i, Round t) const {
    return std::ranges::any_of(peer(i).skipped, [t](const Deviation& deviation) { return deviation.round == t; });
  }

  /// Σ of what i's mix adds: W's formula on what was used, value by value.
  std::optional<Row> replayed(int i, Round t, const MixForm& own, unsigned kept_shares) {
    const topology::MixingMatrix* matrix = &w(t);
    const bool columns = matrix->row_surplus(i) != 0;
    Row out = own.in;
    double own_weight = matrix->self_weight(i);
    unsigned share = 0;
    if (columns)
      for (int j = 0; j < n_; ++j)
        for (const topology::Neighbour& gives : matrix->hears(j))
          if (gives.peer == i && (lost_in(i, j) < t || (lost_in(i, j) == t && (kept_shares >> share++ & 1U) == 1))) own_weight += gives.weight;
    for (double& value : out) value *= columns ? own_weight : 1;
    scale_ = own.in;
    for (double& value : scale_) value = std::abs(value);
    for (const topology::Neighbour& j : matrix->hears(i)) {
      const Used& used = used_.at({i, t, own.channel, j.peer});
      if (used.values == 0) continue;
      const MixForm* theirs = mix(j.peer, used.round, own.channel);
      if (theirs == nullptr || theirs->in.size() != own.in.size()) return std::nullopt;
      for (std::size_t k = 0; k < used.values; ++k) {
        out[k] += j.weight * (theirs->in[k] - (columns ? 0 : own.in[k]));
        scale_[k] = std::max(scale_[k], std::abs(theirs->in[k]) + theirs->slack);
      }
    }
    return out;
  }

  void judge_replay() {
    for (const auto& [key, own] : mixes_) {
      const auto& [i, t, channel] = key;
      if (own.in.empty() || own.out.empty()) continue;
      const double terms = 4 * (static_cast<double>(w(t).hears(i).size()) + 4);
      // A peer that keeps what it gave to a lost one does so from the first mix that it begins after the loss: in the round of
      // the loss, either.
      unsigned open = 0;
      for (int j = 0; j < n_; ++j) open += w(t).row_surplus(i) != 0 && lost_in(i, j) == t ? 1 : 0;
      double least = std::numeric_limits<double>::infinity();
      std::string sentence = fmt::format("peer {} mixed in round {} a row that nobody sent", i, t);
      for (unsigned kept = 0; kept < 1U << open; ++kept) {
        const auto due = replayed(i, t, own, kept);
        if (!due) break;
        double worst = 0;
        for (std::size_t k = 0; k < due->size(); ++k) {
          const double bound = terms * kRounding * (scale_[k] + own.slack) + 1e-37, error = std::abs(own.out[k] - (*due)[k]);
          if (const double part = error / bound; !(part <= worst)) {
            worst = part;
            if (!(part <= 1) && worst < least)
              sentence = fmt::format("peer {} has {:.9g} at value {} of channel {} after round {}, where {:.9g} was due, to {:.2g}", i, own.out[k], k, channel, t, (*due)[k], bound);
          }
        }
        least = std::min(least, worst);
      }
      hold(least <= 1, "replay", "{}", sentence);
      verdict_.rounding = std::max(verdict_.rounding, least);
    }
  }

  /// Where both ends agree, what an edge gives to one end it takes from the other.
  void judge_mean() {
    if (!synchronous()) return;
    std::vector<Row> drifts(parts_.rows.size());
    for (Round t = 0; t < last_; ++t)
      for (std::size_t c = 0; c < parts_.rows.size(); ++c) {
        if (!parts_.rows[c].mixed) continue;
        const auto channel = static_cast<Channel>(c);
        Row sum(width(channel)), sided(width(channel));
        double scale = 0;
        bool any = false, complete = true;
        for (int i = 0; i < n_; ++i) {
          const MixForm* own = mix(i, t, channel);
          if (own == nullptr || own->in.empty() || own->out.empty()) {
            complete = false;
            continue;
          }
          any = true;
          const auto out = replayed(i, t, *own, 0);
          if (!out) return;  // the replay says so
          for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += (*out)[k] - own->in[k], scale = std::max(scale, scale_[k]);
          for (const topology::Neighbour& j : w(t).hears(i)) {
            const std::size_t ours = used_.at({i, t, channel, j.peer}).values;
            const auto back = used_.find({j.peer, t, channel, i});
            const std::size_t theirs = back == used_.end() ? 0 : back->second.values;
            complete = complete && ours == sum.size();
            const MixForm* other = mix(j.peer, t, channel);
            for (std::size_t k = theirs; k < ours; ++k) sided[k] += j.weight * (other->in[k] - own->in[k]);
          }
        }
        if (!any || !(symmetric_ || complete)) continue;
        double most = 0;
        for (std::size_t k = 0; k < sum.size(); ++k) most = std::max(most, std::abs(sum[k] - (symmetric_ ? sided[k] : 0)));
        hold(most <= 1e-12 * n_ * std::max(scale, 1.0), "mean", "round {} changed the sum over the peers on channel {} by {:.3g}", t, channel, most);
        if (drifts[c].empty()) drifts[c].resize(sum.size());
        for (std::size_t k = 0; symmetric_ && k < sum.size(); ++k) drifts[c][k] += sided[k] / n_;
      }
    for (const Row& drift : drifts) {
      double squares = 0;
      for (const double value : drift) squares += value * value;
      verdict_.drift = std::max(verdict_.drift, std::sqrt(squares));
    }
  }

  /// Peers that are left, in parts that links still join.
  std::vector<std::vector<int>> components() const {
    std::vector<std::vector<int>> parts;
    std::set<int> seen;
    for (int i = 0; i < n_; ++i) {
      if (!peer(i).alive || !seen.insert(i).second) continue;
      std::vector<int> part{i};
      for (std::size_t k = 0; k < part.size(); ++k)
        for (const int j : parts_.algorithm->partners(part[k], *parts_.schedule))
          if (peer(j).alive && lost_in(part[k], j) == kNever && lost_in(j, part[k]) == kNever && seen.insert(j).second) part.push_back(j);
      std::ranges::sort(part);
      parts.push_back(part);
    }
    return parts;
  }

  void judge_restarts() {
    const auto n = static_cast<Round>(n_);
    std::set<Round> due_anywhere;
    for (const auto& [ends, t] : losses_) due_anywhere.insert(t + n);
    for (int i = 0; i < n_; ++i)
      for (const RoundRecord& record : peer(i).rounds)
        // On a directed graph a peer may be so far ahead that the news comes too late for it: then it tells of the loss anew.
        if (record.restarted && parts_.policy == Policy::sync && is_static() && symmetric_)
          hold(due_anywhere.contains(record.round), "restarts", "peer {} began again in round {}, {} rounds after no loss", i, record.round, n);
    if (!is_static() || parts_.policy != Policy::sync || !symmetric_) return;
    for (const std::vector<int>& part : components())
      for (const int told : part)
        for (int lost = 0; lost < n_; ++lost) {
          const Round t = lost_in(told, lost);
          if (t == kNever) continue;
          // News of what was lost while the part itself was still losing links may have gone astray; then it was news again.
          if (t != last_loss(part)) continue;
          for (const int i : part)
            if (const RoundRecord* there = record(i, t + n))
              hold(there->restarted, "restarts", "peer {} lost peer {} in round {}, and peer {} did not begin again in round {}", told, lost, t, i, t + n);
        }
  }
  /// The last round in which anybody of the part lost a link; none: kNever.
  Round last_loss(const std::vector<int>& part) const {
    Round last = kNever;
    for (const auto& [ends, t] : losses_)
      if (std::ranges::binary_search(part, ends.first)) last = last == kNever ? t : std::max(last, t);
    return last;
  }

  /// W of the part in round t, links that are lost left out.
  Eigen::MatrixXd matrix_of(const std::vector<int>& part, Round t) const {
    const auto size = static_cast<Eigen::Index>(part.size());
    Eigen::MatrixXd rows = Eigen::MatrixXd::Identity(size, size);
    for (Eigen::Index a = 0; a < size; ++a)
      for (const topology::Neighbour& j : w(t).hears(part[static_cast<std::size_t>(a)])) {
        const auto b = std::ranges::lower_bound(part, j.peer);
        if (b == part.end() || *b != j.peer || lost_in(part[static_cast<std::size_t>(a)], j.peer) != kNever || lost_in(j.peer, part[static_cast<std::size_t>(a)]) != kNever) continue;
        rows(a, b - part.begin()) += j.weight;
        rows(a, a) -= j.weight;
      }
    return rows;
  }

  /// What is left together in the end: its sums, how near its peers are, and to what.
  void judge_ends() {
    if (!synchronous() || !symmetric_) return;
    for (const std::vector<int>& part : components()) {
      bool whole = true;
      for (const int i : part) whole = whole && peer(i).finished && settled(i, last_ - 1);
      // A link within the part that one end alone has given up keeps its deviations in the log; such parts stay unjudged.
      const Round last = last_loss(part);
      const Round calm = last == kNever ? 0 : last + static_cast<Round>(n_) + 1;
      if (!whole || calm >= last_) continue;
      judge_sums(part);
      if (parts_.policy == Policy::sync && is_static()) judge_healing(part, calm);
    }
  }

  double most_at(const std::vector<int>& part, std::size_t k) const {
    double most = 1;
    for (const int i : part)
      for (const RoundRecord& record : peer(i).rounds)
        for (const float value : record.begin[k]) most = std::max(most, std::abs(static_cast<double>(value)));
    return most;
  }

  /// Σ y = Σ g of gradient tracking, Σ d = 0 of D² and EXTRA, Σ w = n of push-sum.
  void judge_sums(const std::vector<int>& part) {
    if (parts_.policy != Policy::sync) return;
    const bool tracks = scenario_.algorithm == "gradient_tracking", pushes = scenario_.algorithm == "push_sum";
    if (!tracks && !pushes && scenario_.algorithm != "d2" && scenario_.algorithm != "extra") return;
    const std::size_t first = pushes ? static_cast<std::size_t>(scenario_.length) : 0, end = pushes ? first + 1 : static_cast<std::size_t>(scenario_.length);
    for (std::size_t k = first; k < end; ++k) {
      double sum = 0, due = pushes ? static_cast<double>(part.size()) : 0;
      for (const int i : part) {
        const RoundRecord& record = *this->record(i, last_ - 1);
        sum += record.end[1][k];
        if (tracks) due += record.end[2][k];
      }
      const double bound = 16 * kRounding * static_cast<double>(last_) * static_cast<double>(part.size()) * most_at(part, 1);
      hold(std::abs(sum - due) <= bound, "sums", "the peers {} have the sum {:.9g} at value {} of row {}, where {:.9g} is due, to {:.2g}", names(part), sum, k, parts_.rows[1].name, due, bound);
    }
  }

  std::string names(const std::vector<int>& part) const {
    std::string text;
    for (const int i : part) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
    return text;
  }

  void judge_healing(const std::vector<int>& part, Round calm) {
    const auto size = static_cast<double>(part.size());
    const Eigen::MatrixXd left = matrix_of(part, calm), mean = Eigen::MatrixXd::Constant(left.rows(), left.cols(), 1 / size);
    const double rho = part.size() == 1 ? 0 : Eigen::JacobiSVD<Eigen::MatrixXd>(left - mean).singularValues()(0), gap = 1 - rho;
    const auto rounds = static_cast<double>(last_ - calm);
    const double apart = distance(part, calm, false, {}), apart_after = distance(part, last_ - 1, true, {});
    const double floor = 64 * kRounding * most_at(part, 0) * std::sqrt(static_cast<double>(scenario_.length)) / std::max(gap, 1e-3);
    if (scenario_.algorithm == "consensus") {
      const double bound = std::pow(rho, rounds) * apart + floor;
      hold(apart_after <= bound, "healing", "the peers {} are {:.3g} apart after {} rounds without a fault, where a gap of {:.3g} makes it {:.3g}", names(part), apart_after, rounds, gap, bound);
      return;
    }
    Row optimum(static_cast<std::size_t>(scenario_.length));
    for (const int i : part) {
      const FloatRow target = target_of(scenario_, i);
      for (std::size_t k = 0; k < optimum.size(); ++k) optimum[k] += target[k] / size;
    }
    const double before = distance(part, calm, false, optimum), after = distance(part, last_ - 1, true, optimum);
    const bool exact = scenario_.algorithm == "gradient_tracking" || scenario_.algorithm == "d2" || scenario_.algorithm == "extra";
    // What is exact needs this many times as long as its gap and its step size say, to be a thousandth as far as it was.
    constexpr double kPatience = 30;
    if (exact && rounds >= kPatience / std::min(gap, scenario_.rate))
      hold(after <= 1e-3 * (before + 1) + floor / scenario_.rate, "healing", "{}'s peers {} are {:.3g} from their optimum after {} rounds without a fault, where they were {:.3g} before", scenario_.algorithm, names(part), after, rounds, before);
    // f_i are alike but for their optima, so the mean of D-PSGD's rows goes straight to the part's.
    if (scenario_.algorithm == "dpsgd") {
      const double shrunk = std::pow(1 - scenario_.rate, rounds * scenario_.local_steps);
      const double mean_before = mean_distance(part, calm, false, optimum), mean_after = mean_distance(part, last_ - 1, true, optimum);
      hold(mean_after <= shrunk * mean_before * (1 + 1e-3) + floor / scenario_.rate, "healing", "the mean of the peers {} is {:.3g} from their optimum, where {:.3g} was due", names(part), mean_after, shrunk * mean_before);
    }
  }

  Row row_at(int i, Round t, bool end) const {
    const RoundRecord& record = *this->record(i, t);
    const FloatRow& row = end ? record.end[0] : record.begin[0];
    return {row.begin(), row.end()};
  }
  Row mean_of(const std::vector<int>& part, Round t, bool end) const {
    Row mean(static_cast<std::size_t>(scenario_.length));
    for (const int i : part) {
      const Row row = row_at(i, t, end);
      for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += row[k] / static_cast<double>(part.size());
    }
    return mean;
  }
  static double norm_between(const Row& a, const Row& b) {
    double squares = 0;
    for (std::size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
    return std::sqrt(squares);
  }
  /// Root mean square distance to `point`; to their mean where that is empty.
  double distance(const std::vector<int>& part, Round t, bool end, Row point) const {
    if (point.empty()) point = mean_of(part, t, end);
    double squares = 0;
    for (const int i : part) squares += std::pow(norm_between(row_at(i, t, end), point), 2);
    return std::sqrt(squares / static_cast<double>(part.size()));
  }
  double mean_distance(const std::vector<int>& part, Round t, bool end, const Row& point) const {
    return norm_between(mean_of(part, t, end), point);
  }

  void judge_progress() {
    hold(!trace_.out_of_time, "progress", "the run was not over after {:.3f} s of virtual time and {} events", std::chrono::duration<double>(trace_.end).count(), trace_.events);
    for (int i = 0; i < n_; ++i)
      if (peer(i).alive)
        hold(peer(i).finished, "progress", "peer {} stands in round {}, and nothing is on its way to it", i, peer(i).rounds.empty() ? 0 : peer(i).rounds.back().round);
  }

  /// Of each connection a window of chunks; of each neighbour in the process, who is at most so many rounds ahead, whole rows.
  void judge_queues() {
    const auto chunk = kFrameOverheadBytes + static_cast<std::uint64_t>(scenario_.chunk_values) * sizeof(float);
    for (int i = 0; i < n_; ++i) {
      std::uint64_t bound = 0;
      for (const int j : parts_.algorithm->partners(i, *parts_.schedule)) {
        if (scenario_.homes[static_cast<std::size_t>(i)] != scenario_.homes[static_cast<std::size_t>(j)]) {
          bound += static_cast<std::uint64_t>(scenario_.window) * chunk;
          continue;
        }
        const auto period = static_cast<std::uint64_t>(std::max(parts_.schedule->period(), 1));
        const std::uint64_t ahead = symmetric_ ? 2 : static_cast<std::uint64_t>(n_) * period + 1;
        for (std::size_t c = 0; c < parts_.rows.size(); ++c)
          if (parts_.rows[c].mixed) bound += ahead * (width(static_cast<Channel>(c)) * sizeof(float) + kFrameOverheadBytes * width(static_cast<Channel>(c)));
      }
      hold(peer(i).most_waiting_bytes <= bound, "queues", "{} bytes waited at peer {}, where at most {} may", peer(i).most_waiting_bytes, i, bound);
    }
  }

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

}  // namespace

Time time_limit(const Scenario& scenario, const Parts& parts) {
  // A round takes the slowest peer's steps, and for each mixed row a passage of its chunks over the narrowest connection,
  // which those of a process's peers do not share.
  double slowest = 1, held_up = 0;
  int breaks = 0;
  const double frame = static_cast<double>(kFrameOverheadBytes) + 4.0 * scenario.chunk_values;
  double narrowest = scenario.bandwidth_mbit_s > 0 ? scenario.bandwidth_mbit_s * 1e6 / 8 : 1e12;
  for (const Fault& fault : scenario.fault_list()) {
    if (fault.kind == FaultKind::slow) slowest *= std::max(fault.amount, 1.0);
    held_up += fault.lasts + fault.amount * (fault.kind == FaultKind::delay ? 4 : 0);
    if (fault.kind == FaultKind::slow_reader) held_up += fault.lasts + 64 * frame / std::max(fault.amount, 1.0);
    ++breaks;
  }
  const double spread = std::exp(4 * scenario.step_spread);  // no step of a run takes so many times the mean
  double mixes = 0, chunks = 0;
  for (const RowSpec& row : parts.rows)
    if (row.mixed) {
      mixes += 1;
      chunks += std::ceil(static_cast<double>(scenario.length + static_cast<int>(row.extra)) / scenario.chunk_values);
    }
  const double passage = (scenario.latency_ms + scenario.jitter_ms) / 1e3;
  // With a window full or the buffers on the way, a chunk waits until one before it has come.
  const double trips = 2 * mixes + chunks / std::min(scenario.window, scenario.buffer_chunks);
  const double round = scenario.local_steps * scenario.step_ms / 1e3 * slowest * spread + trips * passage + chunks * frame / narrowest;
  return seconds(10 + 3 * scenario.rounds * round + held_up + breaks * (scenario.silence + std::chrono::duration<double>(kResetTime).count()) * scenario.peers);
}

Verdict judge(const Scenario& scenario, const Parts& parts, const Trace& trace) { return Judge(scenario, parts, trace).verdict(); }

}  // namespace gossamer::gossip::sim
