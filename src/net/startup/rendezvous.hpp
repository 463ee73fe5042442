// The rendezvous folder: each process writes its address there, so that ports need not be agreed on
// beforehand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/io/address.hpp"

namespace gossamer::net {

class Rendezvous {
 public:
  /// Files of other runs (with another `run_id`) in `folder` are ignored. `settings`: as
  /// Identity::settings, or empty; they stand in the files, for messages.
  Rendezvous(std::filesystem::path folder, std::string run_id, std::string settings = {});
  /// Removes the files that it wrote, if they still hold its address.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Writes `address` for each of the peers, each file whole or not at all. Error (data): a file
  /// cannot be written; it is named.
  Status announce(const std::vector<int>& peers, const Address& address);
  /// Writes a file again that is gone: another process with one of these ids, rejected elsewhere,
  /// removed it. With `overwrite`, also a file that such a process has replaced.
  void restore(bool overwrite);
  /// The address of `peer`. Error (network): it is not known yet; the reason is given.
  Result<Address> find(int peer) const;
  /// That the file of `peer` is of another run, with the first setting that differs; empty if it is
  /// not.
  std::string other_run(int peer) const;

 private:
  /// The lines of a whole file.
  struct Entry {
    std::string address, run_id, settings;
  };
  std::filesystem::path file(int peer) const;
  Result<Entry> read(int peer) const;
  std::string other_run(int peer, const Entry& entry) const;

  std::filesystem::path folder_;
  std::string run_id_, settings_;
  std::vector<int> announced_;
  Address address_;
};

}  // namespace gossamer::net
