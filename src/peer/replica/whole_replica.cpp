#include "peer/replica/whole_replica.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "peer/runtime/run.hpp"
#include "peer/setup/node_tensors.hpp"
#include "peer/storage/safetensors.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

Status write_whole(const Setup& setup, const Config& config, const WorkerPlace& worker,
                   const std::vector<std::vector<float>>& rows) {
  const std::vector<train::ModelPart>& parts = setup.workload->spec().split->parts();
  const std::string prefix = tensor_prefix(setup, worker.replica);
  std::vector<Tensor> tensors;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const train::ParameterBlock& block : parts[p].blocks)
      tensors.push_back({fmt::format("{}.{}", prefix, block.name),
                         {block.shape.begin(), block.shape.end()},
                         std::span(rows[p]).subspan(block.offset, block.length)});
  return write_safetensors(run_folder(config) / fmt::format("final-{}.safetensors", worker.replica),
                           tensors,
                           {{"format", "pt"},
                            {"gossamer", kVersion},
                            {"run_id", config.run_id()},
                            {"rounds", std::to_string(config.run.rounds)}});
}

}  // namespace

Status collect_replica(const Setup& setup, const Config& config, const WorkerPlace& worker,
                       ReplicaLinks& links, std::span<const float> row) {
  try {
    if (worker.part > 0) {
      links.send(0, row);
      return {};
    }
    const std::vector<train::ModelPart>& parts = setup.workload->spec().split->parts();
    std::vector<std::vector<float>> rows{{row.begin(), row.end()}};
    for (std::size_t p = 1; p < parts.size(); ++p) {
      rows.emplace_back(parts[p].parameters());
      links.receive(static_cast<int>(p), rows.back());
    }
    return write_whole(setup, config, worker, rows);
  } catch (const train::WorkerLost& lost) {
    return Error{ErrorKind::lost_peer, lost.what()};
  }
}

}  // namespace gossamer::peer
