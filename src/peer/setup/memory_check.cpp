#include "peer/setup/memory_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "gpu/device_rows.hpp"

namespace gossamer::peer {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A GPU of the device whose free memory is too small for its share of the nodes.
struct MemoryShortfall {
  std::size_t nodes = 0;       ///< nodes of this process that the GPU would hold
  std::size_t free_bytes = 0;  ///< free memory of the GPU
  std::size_t capacity = 0;    ///< nodes that would fit on all GPUs together
};

/// Of the GPUs that are too small, the one with the least free memory; none if `hosted` nodes of
/// `bytes` each fit.
std::optional<MemoryShortfall> find_shortfall(gpu::Memory& device, std::size_t bytes,
                                              std::size_t hosted) {
  const auto gpus = static_cast<std::size_t>(device.gpu_count());
  std::optional<MemoryShortfall> worst;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::size_t gpu_index = 0; gpu_index < gpus; ++gpu_index) {
    const std::size_t nodes = gpu::DeviceRows<float>::count_on(gpu_index, gpus, hosted);
    const std::size_t free = device.memory_info(static_cast<int>(gpu_index)).free;
    fewest = std::min(fewest, free / bytes);
    if (nodes * bytes > free && (!worst || free < worst->free_bytes))
      worst = {.nodes = nodes, .free_bytes = free};
  }
  if (worst) worst->capacity = fewest * gpus;
  return worst;
}

/// Bytes of the encoded channels of a peer (gossip/messaging/coded_messenger.hpp).
std::size_t coding_bytes(const Setup& setup) {
  if (setup.codec->fidelity() == gossip::Fidelity::exact) return 0;
  const std::size_t messages =
      gpu::DeviceRows<float>::bytes(2, setup.codec->words(setup.parameters)) +
      gpu::DeviceRows<float>::bytes(1, setup.codec->scratch(setup.parameters));
  if (setup.algorithm->requirements().codec == gossip::Fidelity::partial) return messages;
  std::size_t mixed = 0;
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    mixed += row.mixed ? 1 : 0;
  return mixed * (messages + gpu::DeviceRows<float>::bytes(2, setup.parameters));
}

/// Bytes of the neighbours' rows that a peer keeps whole: for a rule under a policy in lockstep
/// (gossip/mixing/gathering_mixer.hpp), and with copies of its own rows under the other policies
/// (gossip/mixing/buffered_mix.hpp).
std::size_t kept_bytes(const Setup& setup) {
  const bool lockstep = gossip::is_lockstep(setup.config.exchange.kind());
  if (setup.rule.is_mean() && lockstep) return 0;
  std::size_t neighbours = 0, bytes = 0;
  for (int i = 0; i < setup.workers(); ++i)
    neighbours = std::max(neighbours, setup.algorithm->partners(i, *setup.schedule).size());
  const std::size_t rows = lockstep ? neighbours : 3 * neighbours + (neighbours + 1);
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    if (row.mixed || row.shared)
      bytes += gpu::DeviceRows<float>::bytes(rows, row.length(setup.parameters));
  return bytes;
}

/// Bytes of a peer's share of the messages of hostile peers (gossip/mixing/adversary.hpp).
std::size_t attack_bytes(const Setup& setup) {
  if (!setup.attack.make) return 0;
  std::size_t rows = 0;
  for (const int peer : setup.attack.hostile)
    rows += 1 + setup.algorithm->partners(peer, *setup.schedule).size();
  const auto peers = static_cast<std::size_t>(setup.workers());
  return (rows + peers - 1) / peers * gpu::DeviceRows<float>::bytes(1, setup.parameters);
}

std::size_t rows_of_node(const Setup& setup) {
  std::size_t rows = 0;
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    rows += static_cast<std::size_t>(row.parts) * (row.mixed ? 2 : 1);
  // The gradient, and the optimizer's.
  if (setup.trains()) rows += 1 + setup.workload->spec().optimizer_rows.size();
  return rows;
}

}  // namespace

std::size_t memory_of_node(const Setup& setup) {
  std::size_t extras = 0;
  for (const gossip::RowSpec& row : setup.algorithm->rows(*setup.schedule))
    extras += gpu::DeviceRows<float>::bytes(row.mixed ? 2 : 1, row.extra);
  return extras + rows_of_node(setup) * gpu::DeviceRows<float>::bytes(1, setup.parameters) +
         setup.workload->spec().workspace.own + coding_bytes(setup) + kept_bytes(setup) +
         attack_bytes(setup);
}

Status check_memory(const Setup& setup, std::size_t hosted) {
  if (setup.device->host_accessible()) return {};
  const std::size_t rows = rows_of_node(setup);
  const std::size_t workspace = setup.workload->spec().workspace.own;
  const std::size_t bytes = memory_of_node(setup);
  const auto shortfall = find_shortfall(*setup.device, bytes, hosted);
  if (!shortfall) return {};
  const bool one = setup.device->gpu_count() == 1;
  return invalid_error(fmt::format(
      "out of memory on {}: {} need {:.2f} GiB ({} rows of {} values and {:.1f} MiB of "
      "workspace each), {:.2f} GiB are free{}: {} peers would fit{}; use fewer peers "
      "in this process, a smaller model or batch, or local.device = cpu",
      setup.device->description(),
      one ? fmt::format("{} peers", hosted)
          : fmt::format("{} of the {} peers are on one GPU and", shortfall->nodes, hosted),
      static_cast<double>(bytes * shortfall->nodes) / kGiB, rows, setup.parameters,
      static_cast<double>(workspace) / 1024 / 1024,
      static_cast<double>(shortfall->free_bytes) / kGiB, one ? "" : " there", shortfall->capacity,
      one ? "" : " on all GPUs"));
}

}  // namespace gossamer::peer
