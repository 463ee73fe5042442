// A disk that fails at a chosen call, or stops there for good, as for a process that is killed; and
// that can be left as after a power cut, when only what was synced is still there. For tests and
// simulations.
//   FailingDisk disk; disk.fail_at(7, FailingDisk::Failure::tear, ENOSPC); …;
//   disk.cut_power(FailingDisk::Names::old);
#pragma once

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "base/input_file.hpp"
#include "base/result.hpp"
#include "peer/storage/disk.hpp"

namespace gossamer::simulator {

/// Works on the real disk, and keeps record of what would survive a power cut.
class FailingDisk final : public peer::Disk {
 public:
  enum class Failure {
    fail,       ///< the call does nothing and reports the reason; the next ones work
    tear,       ///< the same, but a write has written half
    stop,       ///< neither this call nor any later one does anything: killed before it
    stop_torn,  ///< the same, but a write has written half
  };

  /// Counting from the next call, 0.
  void fail_at(int call, Failure failure, int reason = EIO) {
    calls_ = 0, at_ = call, failure_ = failure, reason_ = reason;
  }
  /// No further call fails.
  void clear_failure() { at_ = -1; }
  int calls() const { return calls_; }
  std::size_t open_files() const { return open_.size(); }
  bool failed() const { return at_ >= 0 && calls_ > at_; }

  /// Names in folders that were not synced are as they were, or as they became. Contents that were
  /// not synced are lost.
  enum class Names { old, current };
  void cut_power(Names names) {
    const Entries survivors = names == Names::old ? durable_ : now_;
    for (const auto& [path, file] : now_) std::filesystem::remove(path);
    for (const auto& [path, file] : survivors) {
      std::ofstream(path, std::ios::binary) << file->durable;
      file->content = file->durable;
    }
    now_ = durable_ = survivors;
  }

  int create(const std::filesystem::path& path) override {
    return act([&] {
      const int descriptor = peer::real_disk().create(path);
      if (descriptor >= 0) now_[path] = open_[descriptor] = std::make_shared<File>();
      return descriptor;
    });
  }
  std::int64_t write(int descriptor, std::uint64_t offset, std::string_view bytes) override {
    constexpr std::size_t kMostAtOnce = 1000;  // a disk may write less than it was asked to
    bytes = bytes.substr(0, kMostAtOnce);
    const auto write = [&](std::string_view part) {
      std::string& content = open_.at(descriptor)->content;
      content.resize(std::max<std::size_t>(content.size(), offset + part.size()));
      content.replace(offset, part.size(), part);
      return peer::real_disk().write(descriptor, offset, part);
    };
    const bool torn =
        calls_ == at_ && (failure_ == Failure::tear || failure_ == Failure::stop_torn);
    if (torn) write(bytes.substr(0, bytes.size() / 2));
    return act([&] { return write(bytes); });
  }
  int sync(int descriptor) override {
    return act([&] {
      File& file = *open_.at(descriptor);
      file.durable = file.content;
      return 0;
    });
  }
  int close(int descriptor) override {
    open_.erase(descriptor);
    const int closed =
        peer::real_disk().close(descriptor);  // the files of a killed process are closed too
    return act([&] { return closed; });
  }
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return act([&] {
      const int renamed = peer::real_disk().rename(from, to);
      if (renamed == 0) now_[to] = now_.extract(from).mapped();
      return renamed;
    });
  }
  int remove(const std::filesystem::path& path) override {
    return act([&] {
      now_.erase(path);
      return peer::real_disk().remove(path);
    });
  }
  int sync_path(const std::filesystem::path& path) override {
    return act([&] {
      std::erase_if(durable_, [&](const auto& entry) { return entry.first.parent_path() == path; });
      for (const auto& [name, file] : now_)
        if (name.parent_path() == path) durable_[name] = file;
      return 0;
    });
  }
  /// One more call, in the place of the sync of a log, which is no file of this disk.
  Status sync_log() {
    const int synced = act([] { return 0; });
    return synced < 0 ? Status(file_error("write", "log", -synced)) : Status();
  }

 private:
  struct File {
    std::string content, durable;
  };
  using Entries = std::map<std::filesystem::path, std::shared_ptr<File>>;

  template <class Call>
  auto act(Call call) -> decltype(call()) {
    const int number = calls_++;
    const bool stops = failure_ == Failure::stop || failure_ == Failure::stop_torn;
    if (at_ >= 0 && (number == at_ || (stops && number > at_))) return -reason_;
    return call();
  }

  int calls_ = 0, at_ = -1, reason_ = EIO;
  Failure failure_ = Failure::fail;
  Entries now_, durable_;
  std::map<int, std::shared_ptr<File>> open_;
};

}  // namespace gossamer::simulator
