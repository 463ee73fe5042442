// From a kind's name to the matrices of a run: build, weigh, check, keep.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "topology/checks.hpp"
#include "topology/participants/changing_schedule.hpp"
#include "topology/weights.hpp"

namespace gossamer::topology {
namespace {

MixingMatrix matrix_of(WeightRows rows, const WeightOptions& weighing) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::erase_if(rows[i], [i](const Neighbour& entry) {
      return entry.peer == static_cast<int>(i) || entry.weight == 0;
    });
  return MixingMatrix(std::move(rows), weighing.only_columns() ? Diagonal::completes_column
                                                               : Diagonal::completes_row);
}

Result<WeightRows> weigh_and_check(const Topology& topology, Round round,
                                   const WeightOptions& options) {
  const Graph graph = topology.graph(round);
  GOSSAMER_TRY(WeightRows rows, weigh_round(topology, graph, round, options));
  GOSSAMER_TRY_STATUS(check_round(rows, graph, round, options));
  return rows;
}

/// The checked rounds of a period, the check over all of them together included.
Result<std::vector<WeightRows>> checked_period(const Topology& topology,
                                               const WeightOptions& options) {
  std::vector<WeightRows> all;
  for (Round t = 0; t < static_cast<Round>(topology.period()); ++t) {
    GOSSAMER_TRY(WeightRows rows, weigh_and_check(topology, t, options));
    all.push_back(std::move(rows));
  }
  GOSSAMER_TRY_STATUS(check_jointly_connected(all));
  return all;
}

/// The same of a topology without period, of whose sampled rounds none is kept: only the first few,
/// until together they connect all peers.
Status check_sampled(const Topology& topology, const WeightOptions& options) {
  std::vector<WeightRows> kept;
  Status connected = Error{};
  for (Round t = 0; t < sampled_rounds(topology.peers()); ++t) {
    GOSSAMER_TRY(WeightRows rows, weigh_and_check(topology, t, options));
    if (connected.ok()) continue;
    kept.push_back(std::move(rows));
    if (std::has_single_bit(t + 1)) connected = check_jointly_connected(kept);
  }
  return connected.ok() ? connected : check_jointly_connected(kept);
}

/// n, period, and of every row of every matrix the hash of its (peer, weight's bits), as 64-bit
/// words: a matrix of many entries is not copied for it.
std::string hash_of(const std::vector<std::shared_ptr<const MixingMatrix>>& period) {
  std::vector<std::uint64_t> hashes = {static_cast<std::uint64_t>(period.front()->peers()),
                                       period.size()},
                             row;
  for (const auto& w : period)
    for (int i = 0; i < w->peers(); ++i) {
      row.clear();
      for (const Neighbour& entry : w->in_neighbours(i)) {
        row.push_back(static_cast<std::uint64_t>(entry.peer));
        row.push_back(std::bit_cast<std::uint64_t>(entry.weight));
      }
      hashes.push_back(hash64(std::as_bytes(std::span(row))));
    }
  return hash_hex(std::as_bytes(std::span(hashes)));
}

class PeriodicSchedule final : public MixingSchedule {
 public:
  PeriodicSchedule(std::vector<WeightRows> rounds, WeightOptions weighing, std::vector<int> lattice)
      : participants_(static_cast<int>(rounds.front().size())),
        weighing_(std::move(weighing)),
        lattice_(std::move(lattice)) {
    for (WeightRows& rows : rounds)
      period_.push_back(
          std::make_shared<const MixingMatrix>(matrix_of(std::move(rows), weighing_)));
    hash_ = hash_of(period_);
  }

  int peers() const override { return period_.front()->peers(); }
  int period() const override { return static_cast<int>(period_.size()); }
  const Participants& participants() const override { return participants_; }
  std::shared_ptr<const MixingMatrix> at(Round t) const override {
    return period_[t % period_.size()];
  }
  std::string hash() const override { return hash_; }
  const WeightOptions& weighing() const override { return weighing_; }
  const std::vector<int>& lattice() const override { return lattice_; }

 private:
  Participants participants_;
  WeightOptions weighing_;
  std::vector<int> lattice_;
  std::vector<std::shared_ptr<const MixingMatrix>> period_;
  std::string hash_;
};

/// A random sequence: nothing is kept, since keeping would need a lock, and every round is built
/// when it is asked for.
class RandomSchedule final : public MixingSchedule {
 public:
  RandomSchedule(std::unique_ptr<Topology> topology, WeightOptions options,
                 const std::string& identity)
      : topology_(std::move(topology)),
        participants_(topology_->peers()),
        options_(std::move(options)),
        lattice_(topology_->lattice()),
        law_(topology_->law()),
        hash_(hash_hex(
            fmt::format("{} peers, {}, {}", topology_->peers(), to_string(options_), identity))) {
    if (options_.weights != resolve(*topology_, {}).weights) law_.mean_square_factor = {};
  }

  int peers() const override { return topology_->peers(); }
  int period() const override { return 0; }
  const Participants& participants() const override { return participants_; }
  std::shared_ptr<const MixingMatrix> at(Round t) const override {
    Result<WeightRows> rows = weigh_and_check(*topology_, t, options_);
    GOSSAMER_CHECK(rows.ok(),
                   "a random topology draws a graph that can be weighed, in every round");
    return std::make_shared<const MixingMatrix>(matrix_of(std::move(rows).value(), options_));
  }
  std::string hash() const override { return hash_; }
  const WeightOptions& weighing() const override { return options_; }
  const std::vector<int>& lattice() const override { return lattice_; }
  RandomLaw law() const override { return law_; }

 private:
  std::unique_ptr<Topology> topology_;
  Participants participants_;
  WeightOptions options_;
  std::vector<int> lattice_;
  RandomLaw law_;
  std::string hash_;
};

/// The kind, every parameter, given or not, and the seed, in words.
std::string identity_of(const TopologyKind& kind, const ScheduleRequest& request) {
  std::string identity = fmt::format("{}, seed {}", kind.name, request.context.seed);
  if (request.weights.allow_negative) identity += ", negative weights allowed";
  for (const ParameterSpec& spec : kind.parameters) {
    const auto given = request.values.find(spec.name);
    const ParameterValue& value =
        given == request.values.end() ? spec.default_value : given->second;
    identity += fmt::format(", {} = {}", spec.name, gossamer::to_string(value));
  }
  return identity;
}

}  // namespace

Result<TopologyKind> find_kind(const std::string& name) {
  std::string names;
  for (TopologyKind& kind : kinds::catalog()) {
    if (kind.name == name) return std::move(kind);
    names += (names.empty() ? "" : ", ") + kind.name;
  }
  return invalid_error(fmt::format("topology.kind: '{}' is not one of {}", name, names));
}

Result<std::unique_ptr<MixingSchedule>> make_schedule(std::unique_ptr<Topology> topology,
                                                      const WeightOptions& options,
                                                      const std::string& identity) {
  const int period = topology->period();
  GOSSAMER_CHECK(topology->peers() >= 1 && period >= 0,
                 "a topology has peers, and a period or none");
  const WeightOptions weighing = resolve(*topology, options);
  if (period == 0) {
    GOSSAMER_TRY_STATUS(check_sampled(*topology, weighing));
    return std::unique_ptr<MixingSchedule>(
        std::make_unique<RandomSchedule>(std::move(topology), weighing, identity));
  }
  GOSSAMER_TRY(std::vector<WeightRows> rounds, checked_period(*topology, weighing));
  return std::unique_ptr<MixingSchedule>(
      std::make_unique<PeriodicSchedule>(std::move(rounds), weighing, topology->lattice()));
}

Result<std::unique_ptr<MixingSchedule>> make_schedule(const ScheduleRequest& request) {
  GOSSAMER_TRY(const TopologyKind kind, find_kind(request.kind));
  const int n = request.context.peers;
  if (n < 1 || n > kMaximumPeers)
    return invalid_error(
        fmt::format("topology {} cannot be built for {} peers: give 1 to {}; n = {} works",
                    kind.name, n, kMaximumPeers, 16));
  if (request.open || !request.participants.empty()) return make_changing_schedule(request);
  GOSSAMER_TRY(const ParameterValues values,
               check_values("topology", kind.parameters, request.values));
  TopologyContext context = request.context;
  context.allow_negative = request.weights.allow_negative;
  GOSSAMER_TRY(std::unique_ptr<Topology> topology, kind.make(context, values));
  return make_schedule(std::move(topology), request.weights, identity_of(kind, request));
}

}  // namespace gossamer::topology
