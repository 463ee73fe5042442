#include "peer/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {

namespace fs = std::filesystem;

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::create(const Setup& setup,
                                                                   const std::vector<int>& hosted,
                                                                   const fs::path& manifest,
                                                                   Disk& disk) {
  std::vector<Tensor> tensors;
  for (const int node : hosted)
    for (const StatePiece& piece : state_pieces(setup, node))
      tensors.push_back({piece.name, piece.shape, {}});
  const Metadata metadata{
      {"format", "pt"}, {"gossamer", kVersion}, {"run_id", setup.config.run_id()}};
  SafetensorsHead head = safetensors_head(tensors, metadata);
  GOSSAMER_TRY(WholeFile file, WholeFile::create(tensors_beside(manifest), disk));
  GOSSAMER_TRY_STATUS(file.write(0, head.bytes));
  return std::unique_ptr<CheckpointWriter>(
      new CheckpointWriter(manifest, std::move(head), std::move(file), disk));
}

Status CheckpointWriter::add(const std::string& tensor, std::span<const float> values) {
  const TensorPlace* place = head_.find(tensor);
  GOSSAMER_CHECK(place != nullptr && place->values == values.size(),
                 "a tensor that the checkpoint has no place for");
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    return Error{ErrorKind::diverged, fmt::format("{} is no longer finite", tensor)};
  hashes_[static_cast<std::size_t>(place - head_.tensors.data())] = hash_hex(values);
  return file_->write(place->begin,
                      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

Status CheckpointWriter::commit(Manifest manifest) {
  manifest.head = hash_hex(head_.bytes);
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    GOSSAMER_CHECK(!hashes_[i].empty(), "a checkpoint is committed when all of it is there");
    manifest.tensors.emplace_back(head_.tensors[i].name, hashes_[i]);
  }
  GOSSAMER_TRY_STATUS(file_->commit());
  file_.reset();
  return write_file(path_, manifest_text(manifest), disk_);
}

}  // namespace gossamer::peer
