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
                   std::span<const float> row) {
  const std::string prefix = tensor_prefix(setup, worker.replica);
  std::vector<Tensor> tensors;
  for (const train::ParameterBlock& block : setup.workload->spec().split->blocks())
    tensors.push_back({fmt::format("{}.{}", prefix, block.name),
                       {block.shape.begin(), block.shape.end()},
                       row.subspan(block.offset, block.length)});
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
    // A part is sent when worker 0 asks for it. Until then that worker may wait for what the others
    // answer in the agreement on a step, which would be behind the part.
    double asked = 1;
    if (worker.part > 0) {
      train::receive_numbers<float>(links, 0, std::span(&asked, 1));
      links.send(0, row);
      return {};
    }
    const train::SplitModel& split = *setup.workload->spec().split;
    std::vector<float> whole(split.blocks().back().offset + split.blocks().back().length);
    std::vector<float> received;
    for (std::size_t w = 0; w < split.parts().size(); ++w) {
      const train::ModelPart& part = split.parts()[w];
      if (w > 0) {
        train::send_numbers<float>(links, static_cast<int>(w), std::span<const double>(&asked, 1));
        received.resize(part.parameters);
        links.receive(static_cast<int>(w), received);
      }
      put_part<float>(part, w > 0 ? received.data() : row.data(), whole);
    }
    return write_whole(setup, config, worker, whole);
  } catch (const train::WorkerLost& lost) {
    return Error{ErrorKind::lost_peer, lost.what()};
  }
}

}  // namespace gossamer::peer
