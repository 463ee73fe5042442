// Writes one checkpoint. The nodes of a process complete a round one after another, and the rows of
// each are written directly to their position in the file, so no rows are buffered in memory.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class CheckpointWriter {
 public:
  /// Creates the tensor file of a checkpoint of `hosted`. `manifest`: path of the manifest. Errors
  /// (data) name the file and the system's reason, here and below.
  static Result<std::unique_ptr<CheckpointWriter>> create(const Setup& setup,
                                                          const std::vector<int>& hosted,
                                                          const std::filesystem::path& manifest,
                                                          Disk& disk);

  /// Writes the values of a tensor, in host memory. Each tensor is added once. Error (diverged): a
  /// value is not finite.
  Status add(const std::string& tensor, std::span<const float> values);
  /// Adds the program's state of a peer to the state file, which is created with the first one.
  Result<ProgramState> add_state(std::string_view bytes);
  /// Renames the tensor file and the state file, and then writes the manifest, which makes the
  /// checkpoint valid. `manifest`: complete except for the hashes.
  Status commit(Manifest manifest);

 private:
  CheckpointWriter(std::filesystem::path manifest, SafetensorsHeader header, AtomicFile file,
                   Disk& disk)
      : path_(std::move(manifest)),
        header_(std::move(header)),
        hashes_(header_.tensors.size()),
        file_(std::move(file)),
        disk_(disk) {}

  std::filesystem::path path_;
  SafetensorsHeader header_;
  std::vector<std::string> hashes_;  ///< in the order of header_.tensors
  std::optional<AtomicFile> file_;   ///< empty after the commit
  std::optional<AtomicFile> state_file_;
  std::uint64_t state_bytes_ = 0;  ///< written to it
  Disk& disk_;
};

}  // namespace gossamer::peer
