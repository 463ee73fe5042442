// A folder where each process writes where it can be called, so that ports need not be agreed on
// beforehand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/address.hpp"

namespace gossamer::net {

class Rendezvous {
 public:
  /// Files of other runs (other `run_id`s) in `folder` count as not written.
  Rendezvous(std::filesystem::path folder, std::string run_id);
  /// Takes away what it wrote, if it is still there.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Writes `address` for each of the peers, each file whole or not at all. The error names the
  /// file.
  Status announce(const std::vector<int>& peers, const Address& address);
  /// Writes again what is no longer there: another process with one of our ids, refused elsewhere,
  /// took its file away. With `insist`, also what such a process has written over.
  void keep(bool insist);
  /// Where `peer` can be called; the error says that it is not known yet, and why.
  Result<Address> find(int peer) const;

 private:
  std::filesystem::path file(int peer) const;

  std::filesystem::path folder_;
  std::string run_id_;
  std::vector<int> announced_;
  Address address_;
};

}  // namespace gossamer::net
