#include "peer/log/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "base/id_list.hpp"
#include "base/rows.hpp"
#include "peer/config/config_json.hpp"
#include "peer/log/topology_json.hpp"

namespace gossamer::peer {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Those of `values`, which are of the peers `of`, that are of the peers `wanted`. Both ascend.
template <class Values>
Values values_of(const Values& values, const std::vector<int>& of, const std::vector<int>& wanted) {
  Values chosen;
  for (std::size_t k = 0; k < of.size() && k < values.size(); ++k)
    if (std::ranges::binary_search(wanted, of[k])) chosen.push_back(values[k]);
  return chosen;
}

std::vector<int> without(std::vector<int> peers, const std::vector<int>& others) {
  std::erase_if(peers,
                [&others](int peer) { return std::ranges::find(others, peer) != others.end(); });
  return peers;
}

/// The workers that took no part in the last of `rounds` rounds.
std::vector<int> absent_peers(const Setup& setup, gossip::Round rounds) {
  return without(first_ids(setup.workers()), setup.counted_workers(rounds));
}

std::string percent(const Json& value) {
  return value.is_null() ? "–" : fmt::format("{:.2f} %", value.get<double>() * 100);
}
std::string four_digits(const Json& value) {
  return value.is_null() ? "–" : fmt::format("{:.4g}", value.get<double>());
}
/// "epsilon 3.1 at delta 1e-05", and whether others could repeat the noise.
std::string privacy_text(const Json& summary) {
  const Json& privacy = summary["config"]["privacy"];
  return fmt::format("epsilon {} at delta {} (largest of the peers){}",
                     four_digits(summary["final"]["epsilon"]["max"]),
                     privacy["delta"].get<double>(),
                     privacy["noise"] == "secret" ? "" : ", if the noise were secret");
}

}  // namespace

Json mean_and_range(const std::vector<double>& values) {
  double sum = 0, smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  for (double value : values) {
    sum += value;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  const bool finite = std::isfinite(sum);
  return {{"mean", finite_or_null(sum / static_cast<double>(values.size()))},
          {"min", finite ? finite_or_null(smallest) : Json()},
          {"max", finite ? finite_or_null(largest) : Json()}};
}

NetworkMetrics network_metrics(const Setup& setup, const RowViews& rows,
                               const std::vector<int>& nodes) {
  NetworkMetrics metrics;
  Rows<float> averaged(1, rows.front().size());
  metrics.distance = consensus_distance(rows, averaged.row(0));
  metrics.averaged = setup.workload->evaluate({averaged.row(0)}, nodes).front();
  const auto& data = setup.workload->spec().data;
  const bool known = data && data->optimum && data->optimum->size() == averaged.row(0).size();
  metrics.distance_to_optimum = known ? distance_to_optimum(rows, *data->optimum) : kUnknown;
  metrics.averaged_distance_to_optimum =
      known ? distance_to_optimum({averaged.row(0)}, *data->optimum) : kUnknown;
  metrics.backdoor_success = setup.workload->backdoor_success(rows);
  return metrics;
}

std::vector<int> honest_peers(const Setup& setup, const std::vector<int>& nodes) {
  std::vector<int> honest = nodes;
  std::erase_if(honest, [&setup](int node) {
    return setup.is_server(node) || setup.attack.is_hostile(node);
  });
  return honest;
}

std::vector<int> current_workers(const Setup& setup, gossip::Round rounds) {
  std::vector<int> current = setup.counted_workers(rounds);
  std::erase_if(current, [&](int peer) { return !setup.is_current(peer, rounds); });
  return current;
}

std::vector<int> present_workers(const Setup& setup, gossip::Round rounds,
                                 const std::vector<int>& lost) {
  return without(setup.counted_workers(rounds), lost);
}

namespace {

Json deviations_json(const std::map<int, std::uint64_t>& by_sender) {
  std::uint64_t rows = 0;
  Json senders = Json::object();
  for (const auto& [peer, count] : by_sender) {
    rows += count;
    senders[std::to_string(peer)] = count;
  }
  return {{"rows", rows}, {"by_sender", senders}};
}

/// "1000 rows were missing or late, 900 of them of peer 3"
std::string deviations_text(const Json& deviations) {
  std::string most;
  std::uint64_t largest = 0;
  for (const auto& [peer, count] : deviations["by_sender"].items())
    if (count.get<std::uint64_t>() > largest) {
      most = peer;
      largest = count.get<std::uint64_t>();
    }
  return fmt::format("{} rows were missing or late in mixes, {} of them of peer {}",
                     deviations["rows"].get<std::uint64_t>(), largest, most);
}

/// The honest peers that have a model of the last round.
std::vector<int> summarised_peers(const Setup& setup, const RunTotals& totals,
                                  const std::vector<int>& present) {
  std::vector<int> current =
      honest_peers(setup, without(current_workers(setup, totals.rounds), totals.lost_peers));
  // If only hostile peers have one, they have given it to the others.
  return current.empty() ? honest_peers(setup, present) : current;
}

}  // namespace

Json make_summary(const Setup& setup, const RunTotals& totals, const RowViews& all_rows) {
  const std::vector<int> all = without(without(first_ids(setup.workers()), totals.lost_peers),
                                       totals.unseen_peers),
                         present = present_workers(setup, totals.rounds, totals.lost_peers),
                         honest = summarised_peers(setup, totals, present);
  std::vector<std::string> hashes;
  for (std::span<const float> row : values_of(all_rows, all, present))
    hashes.push_back(hash_hex(row));
  const RowViews rows = values_of(all_rows, all, honest);
  std::vector<double> losses, accuracies;
  const bool recorded = !setup.workload->spec().evaluates && !totals.evaluations.empty();
  for (const train::Evaluation& evaluation : recorded ? values_of(totals.evaluations, all, honest)
                                                      : setup.workload->evaluate(rows, honest)) {
    losses.push_back(evaluation.loss);
    accuracies.push_back(evaluation.accuracy);
  }
  const NetworkMetrics metrics = network_metrics(setup, rows, honest);

  Json summary;
  summary["schema"] = 1;
  summary["run_id"] = setup.config.run_id();
  summary["final_hash"] = final_hash(hashes);
  summary["reason"] = totals.reason;
  summary["peers"] = setup.config.run.peers;
  summary["servers"] = setup.servers();
  summary["lost_peers"] = totals.lost_peers;
  if (const auto absent = absent_peers(setup, totals.rounds); !absent.empty())
    summary["absent_peers"] = absent;
  if (!setup.attack.hostile.empty()) summary["hostile_peers"] = setup.attack.hostile;
  summary["rounds"] = totals.rounds;
  summary["parameters"] = setup.parameters;
  summary["wall_seconds"] = totals.wall_seconds;
  summary["virtual_seconds"] = finite_or_null(totals.virtual_seconds);
  summary["node_steps"] = totals.node_steps;
  summary["node_steps_per_second"] =
      finite_or_null(static_cast<double>(totals.node_steps) / totals.wall_seconds);
  summary["bytes_sent"] = totals.bytes_sent;
  if (totals.deviations) summary["deviations"] = deviations_json(*totals.deviations);
  summary["topology"] = topology_json(setup);
  summary["config"] = config_json(setup.config);
  Json& final = summary["final"];
  // Of peers that have just been given a model, some may never have trained.
  std::vector<double> train_losses = values_of(totals.train_losses, all, honest);
  if (current_workers(setup, totals.rounds) != setup.counted_workers(totals.rounds))
    std::erase_if(train_losses, [](double loss) { return !std::isfinite(loss); });
  final["train_loss"] = mean_and_range(train_losses);
  final["test_loss"] = mean_and_range(losses);
  final["test_accuracy"] = mean_and_range(accuracies);
  final["averaged_accuracy"] = finite_or_null(metrics.averaged.accuracy);
  final["averaged_loss"] = finite_or_null(metrics.averaged.loss);
  final["consensus_distance"] = finite_or_null(metrics.distance.all);
  final["distance_to_optimum"] = finite_or_null(metrics.distance_to_optimum);
  final["averaged_distance_to_optimum"] = finite_or_null(metrics.averaged_distance_to_optimum);
  if (!totals.epsilons.empty())
    final["epsilon"] = mean_and_range(values_of(totals.epsilons, all, honest_peers(setup, all)));
  if (!metrics.backdoor_success.empty())
    final["backdoor_success"] = mean_and_range(metrics.backdoor_success);
  return summary;
}

Json size_json(const Setup& setup) {
  return {{"peers", setup.config.run.peers},
          {"servers", setup.servers()},
          {"parameters", setup.parameters}};
}

std::string summary_text(const Json& summary) {
  const Json& final = summary["final"];
  std::string text =
      fmt::format("{} after {} rounds: {} peers, {}, {} parameters\n",
                  summary["reason"].get<std::string>(), summary["rounds"].get<std::uint64_t>(),
                  summary["peers"].get<int>(), summary["topology"]["topology"].get<std::string>(),
                  summary["parameters"].get<std::uint64_t>());
  if (const auto lost = summary["lost_peers"].get<std::vector<int>>(); !lost.empty())
    text += fmt::format("  {} peers were lost and are not included: {}\n", lost.size(),
                        fmt::join(lost, ", "));
  if (const auto absent = summary.find("absent_peers"); absent != summary.end())
    text += fmt::format("  peers that took no part in the last round, and are not included: {}\n",
                        ids_text(absent->get<std::vector<int>>()));
  if (const auto hostile = summary.find("hostile_peers"); hostile != summary.end())
    text += fmt::format("  hostile peers, which are not included: {} ({})\n",
                        fmt::join(hostile->get<std::vector<int>>(), ", "),
                        summary["config"]["attack"]["kind"].get<std::string>());
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<24}{}\n", name, value);
  };
  if (!final["test_accuracy"]["mean"].is_null())
    line(
        "test accuracy",
        fmt::format("{} (peers {} to {}), averaged model {}",
                    percent(final["test_accuracy"]["mean"]), percent(final["test_accuracy"]["min"]),
                    percent(final["test_accuracy"]["max"]), percent(final["averaged_accuracy"])));
  if (!final["test_loss"]["mean"].is_null())
    line("test loss", four_digits(final["test_loss"]["mean"]));
  if (final.contains("backdoor_success"))
    line("backdoor success",
         fmt::format("{} (peers {} to {})", percent(final["backdoor_success"]["mean"]),
                     percent(final["backdoor_success"]["min"]),
                     percent(final["backdoor_success"]["max"])));
  line("consensus distance", four_digits(final["consensus_distance"]));
  if (!final["distance_to_optimum"].is_null())
    line("distance to optimum",
         fmt::format("{}, averaged model {}", four_digits(final["distance_to_optimum"]),
                     four_digits(final["averaged_distance_to_optimum"])));
  if (final.contains("epsilon")) line("privacy", privacy_text(summary));
  if (const auto found = summary.find("deviations"); found != summary.end() && (*found)["rows"] > 0)
    line("deviations", deviations_text(*found));
  line("bytes sent", fmt::format("{}", summary["bytes_sent"].get<std::uint64_t>()));
  if (!summary["virtual_seconds"].is_null() && summary["virtual_seconds"] > 0)
    line("virtual time", fmt::format("{:.3f} s", summary["virtual_seconds"].get<double>()));
  line("wall time", fmt::format("{:.2f} s, {} node steps/s", summary["wall_seconds"].get<double>(),
                                four_digits(summary["node_steps_per_second"])));
  line("final hash", summary["final_hash"].get<std::string>());
  return text;
}

}  // namespace gossamer::peer
