#include "theory/realised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "topology/krylov.hpp"

namespace gossamer::theory {
namespace {

constexpr int kProbes = 8;
using Values = Eigen::Matrix<double, 1, kProbes>;

/// Peers' rows by round, mixed as they were in the run: a peer's round when all that it used is
/// there.
class Replay {
 public:
  Replay(const MixingSchedule& schedule, const std::vector<Departure>& departures)
      : schedule_(schedule), peers_(static_cast<std::size_t>(schedule.peers())) {
    for (std::size_t i = 0; i < peers_.size(); ++i) peers_[i].versions.emplace_back();
    for (int v = 0; v < kProbes; ++v) {
      const Eigen::VectorXd x =
          topology::generic_vector(schedule.peers(), static_cast<std::uint64_t>(v)).normalized();
      for (std::size_t i = 0; i < peers_.size(); ++i)
        peers_[i].versions.front()(v) = x(static_cast<Eigen::Index>(i));
    }
    for (const Departure& departure : departures) {
      peers_[static_cast<std::size_t>(departure.peer)]
          .departures[{departure.round, departure.from}] = departure.used;
      if (departure.used && *departure.used < departure.round)
        delay_ = std::max(delay_, departure.round - *departure.used);
    }
  }

  /// Every peer has done round t − 1, and others as much more as that takes.
  Status reach(Round t) {
    for (int i = 0; i < schedule_.peers(); ++i) GOSSAMER_TRY_STATUS(advance(i, t));
    return {};
  }

  /// Divides all rows by the distance of round t's rows from their mean, which is returned; returns
  /// 0 and divides nothing where that distance is rounding alone. The newest row of all is taken
  /// from every row: a constant changes nothing, and what is left is small where peers agree, so
  /// that no digits of it are lost.
  double renormalise(Round t) {
    Values mean = Values::Zero();
    for (const Peer& peer : peers_) mean += peer.at(t) / static_cast<double>(peers_.size());
    double square = 0;
    for (const Peer& peer : peers_) square += (peer.at(t) - mean).squaredNorm();
    const double norm = std::sqrt(square), n = static_cast<double>(peers_.size());
    const bool nothing = norm <= 64 * std::sqrt(n) * std::numeric_limits<double>::epsilon();
    const auto furthest =
        std::max_element(peers_.begin(), peers_.end(),
                         [](const Peer& a, const Peer& b) { return a.done() < b.done(); });
    const Values newest = furthest->versions.back();
    for (Peer& peer : peers_) {
      for (; peer.first + delay_ < t && peer.first < t; ++peer.first) peer.versions.pop_front();
      for (Values& values : peer.versions) values = (values - newest) / (nothing ? 1 : norm);
    }
    matrices_.erase(matrices_.begin(), matrices_.lower_bound(t));
    return nothing ? 0 : norm;
  }

 private:
  struct Peer {
    std::deque<Values> versions;  ///< before rounds first, first + 1, …, done()
    Round first = 0;
    std::map<std::pair<Round, int>, std::optional<Round>> departures;

    Round done() const { return first + versions.size() - 1; }
    bool has(Round t) const { return t >= first && t <= done(); }
    const Values& at(Round t) const { return versions[t - first]; }
  };
  struct Wanted {
    int peer = 0;
    Round round = 0;
  };

  /// What of `from` peer i mixed with in round t; none: nothing.
  std::optional<Round> used(const Peer& peer, Round t, int from) const {
    const auto found = peer.departures.find({t, from});
    return found == peer.departures.end() ? std::optional(t) : found->second;
  }

  const topology::MixingMatrix& matrix(Round t) {
    auto& matrix = matrices_[t];
    if (!matrix) matrix = schedule_.at(t);
    return *matrix;
  }

  /// Advances peer i to round t, after the peers whose rows that needs.
  Status advance(int i, Round t) {
    std::vector<Wanted> stack{{i, t}};
    while (!stack.empty()) {
      const Wanted wanted = stack.back();
      Peer& peer = peers_[static_cast<std::size_t>(wanted.peer)];
      if (peer.done() >= wanted.round) {
        stack.pop_back();
      } else if (const auto needed = do_round(wanted.peer)) {
        const bool circle = std::any_of(stack.begin(), stack.end(),
                                        [&](const Wanted& w) { return w.peer == needed->peer; });
        if (circle || peers_[static_cast<std::size_t>(needed->peer)].first > needed->round)
          return data_error(fmt::format(
              "peer {} is said to have used peer {}'s row of round {} in round {}, which "
              "was not there then",
              wanted.peer, needed->peer, needed->round, peer.done()));
        stack.push_back(*needed);
      }
    }
    return {};
  }

  /// Does the peer's next round, or returns the row (peer and round) that it still needs.
  std::optional<Wanted> do_round(int i) {
    Peer& peer = peers_[static_cast<std::size_t>(i)];
    const Round t = peer.done();
    const Values& own = peer.at(t);
    Values x = own;
    for (const auto& [from, weight] : matrix(t).in_neighbours(i)) {
      const auto round = used(peer, t, from);
      if (!round) continue;
      const Peer& other = peers_[static_cast<std::size_t>(from)];
      if (!other.has(*round)) return Wanted{from, *round};
      x += weight * (other.at(*round) - own);
    }
    peer.versions.push_back(x);
    return std::nullopt;
  }

  const MixingSchedule& schedule_;
  std::vector<Peer> peers_;
  Round delay_ = 0;  ///< the longest
  std::map<Round, std::shared_ptr<const topology::MixingMatrix>> matrices_;
};

/// Least squares slope of logs[t] over the second half, at the phase of the period at which they
/// end.
double slope(const std::vector<double>& logs, std::size_t period) {
  const std::size_t last = logs.size() - 1;
  const std::size_t step = last / 2 >= period ? period : last - last / 2;
  std::vector<std::pair<double, double>> points;
  for (std::size_t t = last; t >= last / 2; t -= step) {
    points.emplace_back(static_cast<double>(t), logs[t]);
    if (t < step) break;
  }
  double t_mean = 0, log_mean = 0, products = 0, squares = 0;
  for (const auto& [t, log] : points) {
    t_mean += t / static_cast<double>(points.size());
    log_mean += log / static_cast<double>(points.size());
  }
  for (const auto& [t, log] : points) {
    products += (t - t_mean) * (log - log_mean);
    squares += (t - t_mean) * (t - t_mean);
  }
  return products / squares;
}

}  // namespace

Result<double> realised_gap(const MixingSchedule& schedule, Round rounds,
                            const std::vector<Departure>& departures) {
  if (rounds == 0) return data_error("no round was mixed");
  if (schedule.peers() == 1) return 1.0;
  Round last_departure = 0;
  for (const Departure& departure : departures)
    last_departure = std::max(last_departure, departure.round + 1);
  Replay replay(schedule, departures);
  std::vector<double> logs{0};
  for (Round t = 1; t <= rounds; ++t) {
    GOSSAMER_TRY_STATUS(replay.reach(t));
    const double norm = replay.renormalise(t);
    if (norm == 0 && (t >= last_departure || t == rounds)) return 1.0;
    logs.push_back(logs.back() + (norm > 0 ? std::log(norm) : 0));
  }
  return 1 - std::exp(slope(logs, static_cast<std::size_t>(std::max(schedule.period(), 1))));
}

}  // namespace gossamer::theory
