// Rows of a node's state in the files of checkpoints: those of whole models and of their parts, one
// out of the other.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"
#include "peer/checkpoint/checkpoint_store.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {

/// The rows of a node in a checkpoint, as this process holds them: where it holds a part of the
/// model and the checkpoint has the whole, the values of that part. Thread: one at a time.
class SavedRows {
 public:
  /// `setup` outlives this object. Errors (data) name the file, here and below.
  static Result<SavedRows> open(const Setup& setup, const SavedStates::Node& saved);

  /// Reads `tensor` of state_tensors(setup, node) into values.size() = tensor.length values. Error
  /// (data): the file has no such tensor.
  Status read(const StateTensor& tensor, std::span<float> values) const;

 private:
  SavedRows(const Setup& setup, SafetensorsFile file) : setup_(&setup), file_(std::move(file)) {}
  Status read_run(std::size_t row, std::size_t first, std::span<float> values) const;

  const Setup* setup_;
  SafetensorsFile file_;
  std::vector<StateTensor> whole_;  ///< of the file, if this process takes a part of it
};

/// The rows of `node` of a whole model, by StateTensor::row, of the files that hold its parts, in
/// their order. Rows that no checkpoint has are empty. Errors (data) name the file: it lacks a
/// tensor, or the parts disagree on a value that all of them have (RowSpec::extra).
Result<std::vector<std::vector<float>>> whole_rows(
    const Setup& setup, int node, std::span<const std::filesystem::path> tensors_of_parts);

}  // namespace gossamer::peer
