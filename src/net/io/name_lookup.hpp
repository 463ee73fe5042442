// The addresses of names. The system's lookup blocks, for half a minute where a name server does
// not answer, so each name has a thread of its own while it is looked up: unless very many hang, it
// delays no other name, and never the end of the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gossamer::net {

/// Thread: the one that runs the executor, but for what is said otherwise.
class NameLookup {
 public:
  /// Numbers, as text.
  using Addresses = std::vector<std::string>;
  using Done = std::function<void(const Result<Addresses>&)>;
  using Lookup = std::function<Result<Addresses>(const std::string& name)>;
  /// Runs a function later on the thread of the lookups' user. Any thread, while the NameLookup
  /// exists.
  using Post = std::function<void(std::function<void()>)>;

  /// Names that are looked up at once; further ones wait.
  static constexpr std::size_t kMostThreads = 64;

  /// `lookup` is called on threads of its own, and may outlive this object.
  explicit NameLookup(Post post, Lookup lookup = system_lookup);
  /// Lookups under way are abandoned: no callback follows.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Calls `done` later, from Post, with the addresses of the name or the reason why it has none,
  /// in words. A name that is being looked up already is not looked up again.
  void resolve(const std::string& name, Done done);

  /// getaddrinfo(): the addresses for TCP of the families that this machine has. Any thread.
  static Result<Addresses> system_lookup(const std::string& name);

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the threads
};

}  // namespace gossamer::net
