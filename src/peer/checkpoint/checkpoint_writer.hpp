// One checkpoint on its way to the disk. Nodes come at their round one by one, and each one's rows
// go straight to their place in the file: a checkpoint takes no memory for rows.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "peer/checkpoint/checkpoint.hpp"

namespace gossamer::peer {

/// Thread: one at a time.
class CheckpointWriter {
 public:
  /// `manifest`: where that is to be. Errors (data) name the file and the system's reason, here and
  /// below.
  static Result<std::unique_ptr<CheckpointWriter>> create(const Setup& setup,
                                                          const std::vector<int>& hosted,
                                                          const std::filesystem::path& manifest,
                                                          Disk& disk);

  /// A tensor's values, in host memory; each tensor once. An error too: a value that is not finite.
  Status add(const std::string& tensor, std::span<const float> values);
  /// The tensors' file gets its name, then the manifest, which says that there is a checkpoint.
  /// `manifest`: all but hashes.
  Status commit(Manifest manifest);

 private:
  CheckpointWriter(std::filesystem::path manifest, SafetensorsHead head, WholeFile file, Disk& disk)
      : path_(std::move(manifest)),
        head_(std::move(head)),
        hashes_(head_.tensors.size()),
        file_(std::move(file)),
        disk_(disk) {}

  std::filesystem::path path_;
  SafetensorsHead head_;
  std::vector<std::string> hashes_;  ///< as head_.tensors
  std::optional<WholeFile> file_;    ///< none once it is committed
  Disk& disk_;
};

}  // namespace gossamer::peer
