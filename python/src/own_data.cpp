#include "own_data.hpp"

#include <nanobind/nanobind.h>

#include <span>
#include <utility>

#include "train/shard_summary.hpp"

namespace gossamer::python {

peer::Shards shards_of(const ShardTuples& tuples) {
  peer::Shards shards;
  for (const auto& [samples, means, variances] : tuples)
    shards.push_back({samples, means, variances});
  return shards;
}

std::tuple<std::vector<double>, std::vector<double>> moments(
    const nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig,
                            nanobind::device::cpu>& rows) {
  const nanobind::gil_scoped_release released;
  train::ShardSummary summary =
      train::summarise(std::span(rows.data(), rows.size()), rows.shape(1));
  return {std::move(summary.means), std::move(summary.variances)};
}

}  // namespace gossamer::python
