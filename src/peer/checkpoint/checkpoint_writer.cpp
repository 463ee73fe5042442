#include "peer/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::vector<std::string> states;
  for (const int node : hosted)
    for (const StateTensor& tensor : state_tensors(setup, node)) {
      tensors.push_back({tensor.name, tensor.shape, {}});
      if (!tensor.is_parameter) states.push_back(tensor.name);
    }
  const Metadata metadata{{"format", "pt"},
                          {"gossamer", kVersion},
                          {"run_id", setup.config.run_id()},
                          {kStateTensors, fmt::format("{}", fmt::join(states, ","))}};
  SafetensorsHeader header = make_safetensors_header(tensors, metadata);
  GOSSAMER_TRY(AtomicFile file, AtomicFile::create(tensors_path(manifest), disk));
  GOSSAMER_TRY_STATUS(file.write(0, header.bytes));
  return std::unique_ptr<CheckpointWriter>(
      new CheckpointWriter(manifest, std::move(header), std::move(file), disk));
}

Status CheckpointWriter::add(const std::string& tensor, std::span<const float> values) {
  const TensorInfo* info = header_.find(tensor);
  GOSSAMER_CHECK(info != nullptr && info->values == values.size(),
                 "the checkpoint has a tensor of this name and size");
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
    return Error{ErrorKind::diverged, fmt::format("{} is no longer finite", tensor)};
  hashes_[static_cast<std::size_t>(info - header_.tensors.data())] = hash_hex(values);
  return file_->write(info->begin,
                      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

Result<ProgramState> CheckpointWriter::add_state(std::string_view bytes) {
  if (!state_file_) {
    GOSSAMER_TRY(AtomicFile created, AtomicFile::create(state_path(path_), disk_));
    state_file_.emplace(std::move(created));
  }
  ProgramState state{state_bytes_, bytes.size(), hash_hex(bytes)};
  GOSSAMER_TRY_STATUS(state_file_->write(state.offset, bytes));
  state_bytes_ += state.bytes;
  return state;
}

Status CheckpointWriter::commit(Manifest manifest) {
  manifest.header_hash = hash_hex(header_.bytes);
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    GOSSAMER_CHECK(!hashes_[i].empty(),
                   "a checkpoint is committed after all its tensors were added");
    manifest.tensors.emplace_back(header_.tensors[i].name, hashes_[i]);
  }
  GOSSAMER_TRY_STATUS(file_->commit());
  file_.reset();
  if (state_file_) GOSSAMER_TRY_STATUS(state_file_->commit());
  state_file_.reset();
  return write_file(path_, manifest_text(manifest), disk_);
}

}  // namespace gossamer::peer
