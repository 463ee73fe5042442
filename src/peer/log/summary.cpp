#include "peer/log/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "base/rows.hpp"
#include "gpu/device_rows.hpp"
#include "peer/log/recorder.hpp"

namespace gossamer::peer {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Json spread(const std::vector<double>& values) {
  double sum = 0, smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  for (double value : values) {
    sum += value;
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  // A NaN among them makes the mean NaN, and then none of the three is a figure.
  const bool whole = std::isfinite(sum);
  return {{"mean", number(sum / static_cast<double>(values.size()))},
          {"min", whole ? number(smallest) : Json()},
          {"max", whole ? number(largest) : Json()}};
}

/// Of rows in host memory.
std::vector<train::Evaluation> evaluate(const Setup& setup, const RowViews& rows) {
  std::vector<train::Evaluation> results(rows.size(), {kNone, kNone});
  if (!setup.learner) return results;
  const bool in_place = setup.device->host_accessible();
  const gpu::DeviceRows<float> copies(*setup.device, in_place ? 0 : rows.size(), setup.parameters);
  std::vector<train::EvaluateRequest<float>> requests;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!in_place) setup.device->upload(copies.row(i).data(), rows[i].data(), rows[i].size_bytes());
    requests.push_back({in_place ? rows[i].data() : copies.row(i).data(), {}});
  }
  setup.learner->evaluate(requests);
  for (std::size_t i = 0; i < rows.size(); ++i) results[i] = requests[i].result;
  return results;
}

std::string percent(const Json& value) {
  return value.is_null() ? "–" : fmt::format("{:.2f} %", value.get<double>() * 100);
}
std::string digits(const Json& value) {
  return value.is_null() ? "–" : fmt::format("{:.4g}", value.get<double>());
}

}  // namespace

NetworkMetrics network_metrics(const Setup& setup, const RowViews& rows) {
  const std::vector<double> mean = mean_row(rows);
  NetworkMetrics figures;
  figures.consensus_distance = consensus_distance(rows, mean);
  // One node's average is its own row, bit by bit: a mean in double, rounded, would be too, and
  // this says so.
  Rows<float> averaged(1, mean.size());
  std::transform(mean.begin(), mean.end(), averaged.row(0).begin(),
                 [](double value) { return static_cast<float>(value); });
  figures.averaged = evaluate(setup, {averaged.row(0)}).front();
  const bool known =
      setup.data && setup.data->optimum && setup.data->optimum->size() == mean.size();
  figures.distance_to_optimum = known ? distance_to_optimum(rows, *setup.data->optimum) : kNone;
  return figures;
}

Json make_summary(const Setup& setup, const RunTotals& totals, const RowViews& rows) {
  std::vector<std::string> hashes;
  for (std::span<const float> row : rows) hashes.push_back(hash_hex(row));
  std::vector<double> losses, accuracies;
  for (const train::Evaluation& evaluation : evaluate(setup, rows)) {
    losses.push_back(evaluation.loss);
    accuracies.push_back(evaluation.accuracy);
  }
  const NetworkMetrics figures = network_metrics(setup, rows);

  Json summary;
  summary["schema"] = 1;
  summary["run_id"] = setup.config.run_id();
  summary["final_hash"] = final_hash(hashes);
  summary["reason"] = totals.reason;
  summary["peers"] = setup.config.run.peers;
  summary["servers"] = setup.servers();
  summary["lost"] = totals.lost;
  summary["rounds"] = totals.rounds;
  summary["parameters"] = setup.parameters;
  summary["wall_seconds"] = totals.wall_seconds;
  summary["virtual_seconds"] = number(totals.virtual_seconds);
  summary["node_steps"] = totals.node_steps;
  summary["node_steps_per_second"] =
      number(static_cast<double>(totals.node_steps) / totals.wall_seconds);
  summary["bytes_sent"] = totals.bytes_sent;
  summary["topology"] = report_json(setup.report);
  summary["config"] = config_json(setup.config);
  Json& final = summary["final"];
  final["train_loss"] = spread(totals.train_losses);
  final["test_loss"] = spread(losses);
  final["test_accuracy"] = spread(accuracies);
  final["averaged_accuracy"] = number(figures.averaged.accuracy);
  final["averaged_loss"] = number(figures.averaged.loss);
  final["consensus_distance"] = number(figures.consensus_distance);
  final["distance_to_optimum"] = number(figures.distance_to_optimum);
  return summary;
}

std::string summary_text(const Json& summary) {
  const Json& final = summary["final"];
  std::string text =
      fmt::format("{} after {} rounds: {} peers, {}, {} parameters\n",
                  summary["reason"].get<std::string>(), summary["rounds"].get<std::uint64_t>(),
                  summary["peers"].get<int>(), summary["topology"]["topology"].get<std::string>(),
                  summary["parameters"].get<std::uint64_t>());
  if (const auto lost = summary["lost"].get<std::vector<int>>(); !lost.empty())
    text += fmt::format("  {} peers were lost and are left out: {}\n", lost.size(),
                        fmt::join(lost, ", "));
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<24}{}\n", name, value);
  };
  if (!final["test_accuracy"]["mean"].is_null())
    line(
        "test accuracy",
        fmt::format("{} (peers {} to {}), averaged model {}",
                    percent(final["test_accuracy"]["mean"]), percent(final["test_accuracy"]["min"]),
                    percent(final["test_accuracy"]["max"]), percent(final["averaged_accuracy"])));
  if (!final["test_loss"]["mean"].is_null()) line("test loss", digits(final["test_loss"]["mean"]));
  line("consensus distance", digits(final["consensus_distance"]));
  if (!final["distance_to_optimum"].is_null())
    line("distance to optimum", digits(final["distance_to_optimum"]));
  line("bytes sent", fmt::format("{}", summary["bytes_sent"].get<std::uint64_t>()));
  if (!summary["virtual_seconds"].is_null() && summary["virtual_seconds"] > 0)
    line("virtual time", fmt::format("{:.3f} s", summary["virtual_seconds"].get<double>()));
  line("wall time", fmt::format("{:.2f} s, {} node steps/s", summary["wall_seconds"].get<double>(),
                                digits(summary["node_steps_per_second"])));
  line("final hash", summary["final_hash"].get<std::string>());
  return text;
}

}  // namespace gossamer::peer
