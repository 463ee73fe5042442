#include "peer/checkpoint/checkpointer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/log/recorder.hpp"
#include "peer/runtime/host_view.hpp"

namespace gossamer::peer {

namespace fs = std::filesystem;

Status Checkpointer::add(NodeSnapshot node) {
  const auto [found, is_new] = pending_.try_emplace(node.round);
  Pending& pending = found->second;
  Status status = is_new ? begin(node.round, pending) : Status();
  if (status.ok() && pending.writer) {
    if (setup_.trainer && !setup_.is_server(node.state.node))
      node.state.figures.loss = setup_.trainer->losses_of(node.state.node);
    status = add(node, pending);
  }
  const bool whole = ++pending.nodes == request_.hosted.size();
  if (status.ok() && pending.writer && whole) status = commit(pending);
  if (!status.ok()) pending.writer.reset();
  // A node that joined later than others comes by for none of the rounds before: what those wrote
  // of them will never be whole.
  if (whole) pending_.erase(pending_.begin(), std::next(found));
  if (status.ok()) return {};
  return Error{status.error().kind, fmt::format("there is no checkpoint of round {}: {}",
                                                node.round, status.error().message)};
}

Status Checkpointer::begin(gossip::Round round, Pending& pending) {
  std::error_code error;
  fs::create_directories(request_.folder, error);
  if (error)
    return Error{ErrorKind::data, fmt::format("cannot make the folder {}: {}",
                                              request_.folder.string(), error.message())};
  request_.disk->sync_path(request_.folder.parent_path());
  GOSSAMER_TRY(pending.writer, CheckpointWriter::create(
                                   setup_, request_.hosted,
                                   checkpoint_path(request_.folder, round, request_.hosted.front()),
                                   *request_.disk));
  Manifest& manifest = pending.manifest;
  manifest.round = round;
  manifest.run_id = setup_.config.run_id();
  if (configuration_.empty())
    configuration_ = setup_.configuration_hash();  // it reads all of the data
  manifest.configuration = configuration_;
  manifest.config = config_json(setup_.config);
  return {};
}

Status Checkpointer::add(const NodeSnapshot& node, Pending& pending) {
  const HostView rows(*setup_.device, node.rows);
  for (const StatePiece& piece : state_pieces(setup_, node.state.node))
    GOSSAMER_TRY_STATUS(
        pending.writer->add(piece.name, rows.rows()[piece.row].subspan(piece.first, piece.length)));
  Manifest& manifest = pending.manifest;
  manifest.wall_seconds = std::max(manifest.wall_seconds, node.wall_seconds);
  const auto place =
      std::ranges::lower_bound(manifest.nodes, node.state.node, {}, &NodeState::node);
  manifest.nodes.insert(place, node.state);
  return {};
}

Status Checkpointer::commit(Pending& pending) {
  if (const int failed = request_.disk->sync_path(request_.log); failed < 0)
    return Error{ErrorKind::data,
                 fmt::format("cannot write {}: {}", request_.log.string(), std::strerror(-failed))};
  const gossip::Round round = pending.manifest.round;
  GOSSAMER_TRY_STATUS(pending.writer->commit(std::move(pending.manifest)));
  drop_other_checkpoints(request_.folder, request_.hosted.front(), round,
                         static_cast<std::size_t>(setup_.config.checkpoint.keep), *request_.disk);
  return {};
}

}  // namespace gossamer::peer
