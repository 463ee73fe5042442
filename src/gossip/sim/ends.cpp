// The oracle's judgement of what is left in the end: restarts, sums, healing, progress, queues.
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <set>

#include "gossip/sim/connection.hpp"
#include "gossip/sim/judge.hpp"
#include "gossip/sim/process.hpp"

namespace gossamer::gossip::sim {

/// Peers that are left, in parts that links still join.
std::vector<std::vector<int>> Judge::components() const {
  std::vector<std::vector<int>> parts;
  std::set<int> seen;
  for (int i = 0; i < n_; ++i) {
    if (!peer(i).alive || !seen.insert(i).second) continue;
    std::vector<int> part{i};
    for (std::size_t k = 0; k < part.size(); ++k)
      for (const int j : parts_.algorithm->partners(part[k], *parts_.schedule))
        if (peer(j).alive && lost_in(part[k], j) == kNever && lost_in(j, part[k]) == kNever && seen.insert(j).second)
          part.push_back(j);
    std::ranges::sort(part);
    parts.push_back(part);
  }
  return parts;
}

void Judge::judge_restarts() {
  const auto n = static_cast<Round>(n_);
  std::set<Round> due_anywhere;
  for (const auto& [ends, t] : losses_) due_anywhere.insert(t + n);
  for (int i = 0; i < n_; ++i)
    for (const RoundRecord& record : peer(i).rounds)
      // On a directed graph a peer may be so far ahead that the news comes too late for it: then it tells of the loss anew.
      if (record.restarted && parts_.policy == Policy::sync && is_static() && symmetric_)
        hold(due_anywhere.contains(record.round), "restarts", "peer {} began again in round {}, {} rounds after no loss", i,
             record.round, n);
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
            hold(there->restarted, "restarts",
                 "peer {} lost peer {} in round {}, and peer {} did not begin again in round {}", told, lost, t, i, t + n);
      }
}
/// The last round in which anybody of the part lost a link; none: kNever.
Round Judge::last_loss(const std::vector<int>& part) const {
  Round last = kNever;
  for (const auto& [ends, t] : losses_)
    if (std::ranges::binary_search(part, ends.first)) last = last == kNever ? t : std::max(last, t);
  return last;
}

/// W of the part in round t, links that are lost left out.
Eigen::MatrixXd Judge::matrix_of(const std::vector<int>& part, Round t) const {
  const auto size = static_cast<Eigen::Index>(part.size());
  Eigen::MatrixXd rows = Eigen::MatrixXd::Identity(size, size);
  for (Eigen::Index a = 0; a < size; ++a)
    for (const topology::Neighbour& j : w(t).hears(part[static_cast<std::size_t>(a)])) {
      const auto b = std::ranges::lower_bound(part, j.peer);
      if (b == part.end() || *b != j.peer || lost_in(part[static_cast<std::size_t>(a)], j.peer) != kNever ||
          lost_in(j.peer, part[static_cast<std::size_t>(a)]) != kNever)
        continue;
      rows(a, b - part.begin()) += j.weight;
      rows(a, a) -= j.weight;
    }
  return rows;
}

/// What is left together in the end: its sums, how near its peers are, and to what.
void Judge::judge_ends() {
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

double Judge::most_at(const std::vector<int>& part, std::size_t k) const {
  double most = 1;
  for (const int i : part)
    for (const RoundRecord& record : peer(i).rounds)
      for (const float value : record.begin[k]) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

/// Σ y = Σ g of gradient tracking, Σ d = 0 of D² and EXTRA, Σ w = n of push-sum.
void Judge::judge_sums(const std::vector<int>& part) {
  if (parts_.policy != Policy::sync) return;
  const bool tracks = scenario_.algorithm == "gradient_tracking", pushes = scenario_.algorithm == "push_sum";
  if (!tracks && !pushes && scenario_.algorithm != "d2" && scenario_.algorithm != "extra") return;
  const std::size_t first = pushes ? static_cast<std::size_t>(scenario_.length) : 0,
                    end = pushes ? first + 1 : static_cast<std::size_t>(scenario_.length);
  for (std::size_t k = first; k < end; ++k) {
    double sum = 0, due = pushes ? static_cast<double>(part.size()) : 0;
    for (const int i : part) {
      const RoundRecord& record = *this->record(i, last_ - 1);
      sum += record.end[1][k];
      if (tracks) due += record.end[2][k];
    }
    const double bound = 16 * kRounding * static_cast<double>(last_) * static_cast<double>(part.size()) * most_at(part, 1);
    hold(std::abs(sum - due) <= bound, "sums",
         "the peers {} have the sum {:.9g} at value {} of row {}, where {:.9g} is due, to {:.2g}", names(part), sum, k,
         parts_.rows[1].name, due, bound);
  }
}

std::string Judge::names(const std::vector<int>& part) const {
  std::string text;
  for (const int i : part) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  return text;
}

void Judge::judge_healing(const std::vector<int>& part, Round calm) {
  const auto size = static_cast<double>(part.size());
  const Eigen::MatrixXd left = matrix_of(part, calm), mean = Eigen::MatrixXd::Constant(left.rows(), left.cols(), 1 / size);
  const double rho = part.size() == 1 ? 0 : Eigen::JacobiSVD<Eigen::MatrixXd>(left - mean).singularValues()(0), gap = 1 - rho;
  const auto rounds = static_cast<double>(last_ - calm);
  const double apart = distance(part, calm, false, {}), apart_after = distance(part, last_ - 1, true, {});
  const double floor = 64 * kRounding * most_at(part, 0) * std::sqrt(static_cast<double>(scenario_.length)) / std::max(gap, 1e-3);
  if (scenario_.algorithm == "consensus") {
    const double bound = std::pow(rho, rounds) * apart + floor;
    hold(apart_after <= bound, "healing",
         "the peers {} are {:.3g} apart after {} rounds without a fault, where a gap of {:.3g} makes it {:.3g}", names(part),
         apart_after, rounds, gap, bound);
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
    hold(after <= 1e-3 * (before + 1) + floor / scenario_.rate, "healing",
         "{}'s peers {} are {:.3g} from their optimum after {} rounds without a fault, where they were {:.3g} before",
         scenario_.algorithm, names(part), after, rounds, before);
  // f_i are alike but for their optima, so the mean of D-PSGD's rows goes straight to the part's.
  if (scenario_.algorithm == "dpsgd") {
    const double shrunk = std::pow(1 - scenario_.rate, rounds * scenario_.local_steps);
    const double mean_before = mean_distance(part, calm, false, optimum),
                 mean_after = mean_distance(part, last_ - 1, true, optimum);
    hold(mean_after <= shrunk * mean_before * (1 + 1e-3) + floor / scenario_.rate, "healing",
         "the mean of the peers {} is {:.3g} from their optimum, where {:.3g} was due", names(part), mean_after,
         shrunk * mean_before);
  }
}

Row Judge::row_at(int i, Round t, bool end) const {
  const RoundRecord& record = *this->record(i, t);
  const FloatRow& row = end ? record.end[0] : record.begin[0];
  return {row.begin(), row.end()};
}
Row Judge::mean_of(const std::vector<int>& part, Round t, bool end) const {
  Row mean(static_cast<std::size_t>(scenario_.length));
  for (const int i : part) {
    const Row row = row_at(i, t, end);
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += row[k] / static_cast<double>(part.size());
  }
  return mean;
}
double Judge::norm_between(const Row& a, const Row& b) {
  double squares = 0;
  for (std::size_t k = 0; k < a.size(); ++k) squares += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(squares);
}
/// Root mean square distance to `point`; to their mean where that is empty.
double Judge::distance(const std::vector<int>& part, Round t, bool end, Row point) const {
  if (point.empty()) point = mean_of(part, t, end);
  double squares = 0;
  for (const int i : part) squares += std::pow(norm_between(row_at(i, t, end), point), 2);
  return std::sqrt(squares / static_cast<double>(part.size()));
}
double Judge::mean_distance(const std::vector<int>& part, Round t, bool end, const Row& point) const {
  return norm_between(mean_of(part, t, end), point);
}

void Judge::judge_progress() {
  hold(!trace_.out_of_time, "progress", "the run was not over after {:.3f} s of virtual time and {} events",
       std::chrono::duration<double>(trace_.end).count(), trace_.events);
  for (int i = 0; i < n_; ++i)
    if (peer(i).alive)
      hold(peer(i).finished, "progress", "peer {} stands in round {}, and nothing is on its way to it", i,
           peer(i).rounds.empty() ? 0 : peer(i).rounds.back().round);
}

/// Of each connection a window of chunks; of each neighbour in the process, who is at most so many rounds ahead, whole rows.
void Judge::judge_queues() {
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
        if (parts_.rows[c].mixed)
          bound +=
              ahead * (width(static_cast<Channel>(c)) * sizeof(float) + kFrameOverheadBytes * width(static_cast<Channel>(c)));
    }
    hold(peer(i).most_waiting_bytes <= bound, "queues", "{} bytes waited at peer {}, where at most {} may",
         peer(i).most_waiting_bytes, i, bound);
  }
}

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
  const double round =
      scenario.local_steps * scenario.step_ms / 1e3 * slowest * spread + trips * passage + chunks * frame / narrowest;
  const double all = 10 + 3 * scenario.rounds * round + held_up +
                 breaks * (scenario.silence + std::chrono::duration<double>(kResetTime).count()) * scenario.peers;
  return Time(std::llround(all * 1e9));
}

}  // namespace gossamer::gossip::sim
