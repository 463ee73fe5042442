// How a process proves its key on its connections and checks the keys of others, against a list of
// members that may change while the network runs.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/scheduler.hpp"
#include "net/tls/context.hpp"
#include "net/tls/members.hpp"
#include "net/tls/tls_socket.hpp"

namespace gossamer::net {

/// The key that the other end of a connection has shown. It is proved when the handshake is
/// complete, and no byte is read before.
struct ShownKey {
  std::optional<PublicKey> key;

  std::string text() const { return key ? to_string(*key) : std::string("no key"); }
};

/// Thread: the scheduler's. Outlives the sockets that it makes.
class Authenticator {
 public:
  Authenticator(gossip::Scheduler& scheduler, Credentials credentials)
      : scheduler_(scheduler),
        key_(credentials.key),
        context_(credentials.key),
        members_(std::move(credentials.members)) {}
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  const PublicKey& own_key() const { return key_.public_key(); }
  /// What a process that refuses the key lacks, as a clause about that process.
  std::string describe_refusal() const {
    return fmt::format(
        "it does not know the key of this process, {}: add it to the list of members of that "
        "process (net.members, or the keys in net.peers)",
        to_string(own_key()));
  }
  /// If the own key is not that of all the peers `hosted`, a sentence that says so.
  std::string describe_objection(std::vector<int> hosted) const {
    std::erase_if(hosted, [this](int id) { return members_.has(id, own_key()); });
    if (hosted.empty()) return {};
    return fmt::format(
        "the key of this process, {}, {} peer {}: processes with this list of members refuse it",
        to_string(own_key()),
        members_.has_expired(hosted[0], own_key()) ? "has expired for" : "is no longer that of",
        fmt::join(hosted, ", "));
  }
  Signature sign(std::string_view text) const { return key_.sign(text); }
  const MemberList& members() const { return members_; }
  void set_members(MemberList members) { members_ = std::move(members); }

  /// Encrypts an incoming connection, whose other end may have the key of any member.
  std::unique_ptr<Socket> accept(std::unique_ptr<Socket> socket, std::shared_ptr<ShownKey> shown) {
    return encrypted(scheduler_, std::move(socket), context_, TlsRole::server,
                     [this, shown = std::move(shown)](const PublicKey& key) {
                       shown->key = key;
                       return members_.has(key);
                     });
  }
  /// Encrypts an outgoing connection, whose other end may have the key of any member.
  std::unique_ptr<Socket> connect_to_any(std::unique_ptr<Socket> socket,
                                         std::shared_ptr<ShownKey> shown) {
    return encrypted(scheduler_, std::move(socket), context_, TlsRole::client,
                     [this, shown = std::move(shown)](const PublicKey& key) {
                       shown->key = key;
                       return members_.has(key);
                     });
  }
  /// Encrypts an outgoing connection, whose other end must have a key of peer `id`.
  std::unique_ptr<Socket> connect(std::unique_ptr<Socket> socket, int id,
                                  std::shared_ptr<ShownKey> shown) {
    return encrypted(scheduler_, std::move(socket), context_, TlsRole::client,
                     [this, id, shown = std::move(shown)](const PublicKey& key) {
                       shown->key = key;
                       return members_.has(id, key);
                     });
  }

 private:
  gossip::Scheduler& scheduler_;
  KeyPair key_;
  TlsContext context_;
  MemberList members_;
};

}  // namespace gossamer::net
