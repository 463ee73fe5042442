#include "peer/checkpoint/checkpointer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/config/config_json.hpp"
#include "peer/setup/host_view.hpp"

namespace gossamer::peer {

namespace fs = std::filesystem;

Status Checkpointer::add(NodeSnapshot node) {
  const auto [found, is_new] = pending_.try_emplace(node.round);
  PendingCheckpoint& pending = found->second;
  const int node_id = node.state.node;
  Status status = is_new ? begin(node.round, pending) : Status();
  // A node that joins the network anew repeats rounds. Its state, and those that other nodes have
  // added, are not of one course of the run: the round gets no checkpoint.
  if (pending.nodes.contains(node_id)) pending.writer.reset();
  if (status.ok() && pending.writer) status = add(node, pending);
  pending.nodes.insert(node_id);
  const bool complete = pending.nodes.size() == pending.due;
  if (status.ok() && pending.writer && complete) status = commit(pending);
  if (!status.ok()) pending.writer.reset();
  // A node that joined after the others has no state of earlier rounds, so their checkpoints can
  // never be completed.
  if (complete) pending_.erase(pending_.begin(), std::next(found));
  if (status.ok()) return {};
  return Error{status.error().kind, fmt::format("there is no checkpoint of round {}: {}",
                                                node.round, status.error().message)};
}

Status Checkpointer::begin(gossip::Round round, PendingCheckpoint& pending) {
  std::vector<int> nodes = setup_.counted(request_.hosted, round);
  pending.due = nodes.size();
  std::error_code error;
  fs::create_directories(request_.folder, error);
  if (error)
    return data_error(
        fmt::format("cannot create the folder {}: {}", request_.folder.string(), error.message()));
  request_.disk->sync_path(request_.folder.parent_path());
  GOSSAMER_TRY(pending.writer, CheckpointWriter::create(
                                   setup_, std::move(nodes),
                                   checkpoint_path(request_.folder, round, request_.hosted.front()),
                                   *request_.disk));
  Manifest& manifest = pending.manifest;
  manifest.round = round;
  manifest.run_id = setup_.config.run_id();
  if (configuration_.empty())
    configuration_ = checkpoint_configuration(setup_, setup_.part);  // reads all of the data
  manifest.part = setup_.part;
  manifest.configuration = configuration_;
  manifest.config = config_json(setup_.config);
  return {};
}

Status Checkpointer::add(NodeSnapshot& node, PendingCheckpoint& pending) {
  const HostView rows(*setup_.device, node.rows);
  for (const StateTensor& tensor : state_tensors(setup_, node.state.node))
    GOSSAMER_TRY_STATUS(pending.writer->add(
        tensor.name, rows.rows()[tensor.row].subspan(tensor.first, tensor.length)));
  if (const int id = node.state.node; setup_.trains()) {
    if (!setup_.is_server(id)) node.state.metrics.loss = setup_.workload->loss_sum(id);
    if (const std::string bytes = setup_.workload->save_state(id); !bytes.empty()) {
      GOSSAMER_TRY(node.state.program, pending.writer->add_state(bytes));
    }
  }
  Manifest& manifest = pending.manifest;
  manifest.wall_seconds = std::max(manifest.wall_seconds, node.wall_seconds);
  const auto position =
      std::ranges::lower_bound(manifest.nodes, node.state.node, {}, &NodeState::node);
  manifest.nodes.insert(position, std::move(node.state));
  return {};
}

Status Checkpointer::commit(PendingCheckpoint& pending) {
  GOSSAMER_TRY_STATUS(request_.sync_log());
  const gossip::Round round = pending.manifest.round;
  GOSSAMER_TRY_STATUS(pending.writer->commit(std::move(pending.manifest)));
  prune_checkpoints(request_.folder, request_.hosted.front(), round,
                    static_cast<std::size_t>(setup_.config.checkpoint.keep), *request_.disk);
  return {};
}

}  // namespace gossamer::peer
